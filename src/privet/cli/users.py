"""Who may use the server: `privet users add`, `list`, `access`, `invite`, `disable` and `enable`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privet.cli.accounts import (
    POLICY,
    AsName,
    Desk,
    Listen,
    OpenIDClaim,
    PolicyFile,
    RoleName,
    desk,
    in_words,
    person_tree,
    role_of,
)
from privet.cli.ledger.amounts import print_json
from privet.cli.options import AsJson
from privet.cli.output import aligned

if TYPE_CHECKING:
    from privet.server.accounts import Person

app = typer.Typer(no_args_is_help=True, help="Manage who may use the server, also while it runs.")

Name = Annotated[str, typer.Argument(help="The name of the account, which is the analyst's name in the ledger.")]


EveryDataset = Annotated[
    bool, typer.Option("--every-dataset", help="Let them ask every dataset, and those that are added later.")
]


@app.command()
def add(
    name: Name,
    role: RoleName = "analyst",
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            "--dataset", help="A dataset that they may ask. Can be repeated. Required without --every-dataset."
        ),
    ] = None,
    every_dataset: EveryDataset = False,
    listen: Listen = None,
    openid: OpenIDClaim = None,
    policy: PolicyFile = POLICY,
    as_name: AsName = None,
    as_json: AsJson = False,
) -> None:
    """Add somebody, and print the one-time link with which they set their password.

    Example: privet users add ana --dataset people
    """
    with desk(policy, as_name, create=True, listen=listen) as at:
        chosen, datasets, openid = role_of(role), at.chosen(dataset, every_dataset), openid or None
        name = at.accounts.check_new(name)
        note = f"account {name}: added as {chosen} for {in_words(datasets)}{_signs_in(openid)}"
        with at.recording(note, datasets):
            person = at.accounts.add(name, chosen, datasets, openid=openid)
        link = at.link(at.accounts.invite(name))
    _print_link(at, link, person_tree(person), as_json)


@app.command("list")
def list_(policy: PolicyFile = POLICY, as_json: AsJson = False) -> None:
    """List everybody who has an account.

    Example: privet users list
    """
    with desk(policy) as at:
        people = at.accounts.people()
    if as_json:
        print_json([person_tree(person) for person in people])
        return
    rows = [(person.name, str(person.role), in_words(person.datasets), _state(person)) for person in people]
    print(aligned(("name", "role", "datasets", "state"), *rows))


@app.command()
def access(
    name: Name,
    role: Annotated[str | None, typer.Option("--role", help="The new role: analyst or steward.")] = None,
    dataset: Annotated[
        list[str] | None, typer.Option("--dataset", help="A dataset that they may ask, and no others. Can be repeated.")
    ] = None,
    every_dataset: EveryDataset = False,
    openid: OpenIDClaim = None,
    policy: PolicyFile = POLICY,
    as_name: AsName = None,
    as_json: AsJson = False,
) -> None:
    """Change the role of somebody, the datasets that they may ask, or how they sign in. What you leave out stays.

    Example: privet users access ana --dataset people --dataset sales
    """
    with desk(policy, as_name) as at:
        before = at.person(name)
        chosen = before.role if role is None else role_of(role)
        datasets = before.datasets if not dataset and not every_dataset else at.chosen(dataset, every_dataset)
        concerned = None if datasets is None or before.datasets is None else datasets | before.datasets
        note = f"account {before.name}: now {chosen} for {in_words(datasets)}{_signs_in(openid)}"
        with at.recording(note, concerned):
            person = at.accounts.set_access(name, chosen, datasets, openid=openid)
    now = f"{person.name}: {person.role} for {in_words(person.datasets)}{_signs_in(person.openid)}"
    _print_person(person_tree(person), now, as_json)


@app.command()
def invite(
    name: Name,
    listen: Listen = None,
    policy: PolicyFile = POLICY,
    as_name: AsName = None,
    as_json: AsJson = False,
) -> None:
    """Print a new one-time link to set a password, or to sign in. An earlier link stops working.

    Example: privet users invite ana
    """
    with desk(policy, as_name, listen=listen) as at:
        person = at.person(name)
        with at.recording(f"account {person.name}: new link to set a password", person.datasets):
            link = at.link(at.accounts.invite(name))
    _print_link(at, link, person_tree(person), as_json)


@app.command()
def disable(name: Name, policy: PolicyFile = POLICY, as_name: AsName = None, as_json: AsJson = False) -> None:
    """Lock somebody out at once: end their sessions and links, and revoke their tokens.

    Example: privet users disable ana
    """
    with desk(policy, as_name) as at:
        person = at.person(name)
        with at.recording(f"account {person.name}: disabled", person.datasets):
            person = at.accounts.disable(name, even_last=True)
    _print_person(person_tree(person), f"{person.name} is disabled.", as_json)


@app.command()
def enable(name: Name, policy: PolicyFile = POLICY, as_name: AsName = None, as_json: AsJson = False) -> None:
    """Let somebody sign in again. Tokens that were revoked stay revoked.

    Example: privet users enable ana
    """
    with desk(policy, as_name) as at:
        person = at.person(name)
        with at.recording(f"account {person.name}: enabled", person.datasets):
            person = at.accounts.enable(name)
    _print_person(person_tree(person), f"{person.name} is enabled.", as_json)


def _print_person(tree: dict[str, Any], text: str, as_json: bool) -> None:
    print_json(tree) if as_json else print(text)


def _state(person: Person) -> str:
    return "disabled" if person.disabled else "active" if person.has_password or person.linked else "invited"


def _signs_in(openid: str | None) -> str:
    from privet.server.accounts.people import signs_in

    return signs_in(openid)


def _print_link(at: Desk, link: str, tree: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json({**tree, "link": link})
        return
    from privet.server.accounts.invitations import HOURS

    print(link)
    does = f"sets the password of {tree['name']}" if at.passwords else f"signs {tree['name']} in"
    print(f"This link {does}. It works once, within {HOURS} hours.", file=sys.stderr)
    if not at.named:
        elsewhere = "If the server is elsewhere, add its --listen here, or set address in the policy."
        print(f"It leads to {at.origin}. {elsewhere}", file=sys.stderr)
