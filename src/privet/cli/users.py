"""Who may use the server: `privet users add`, `list`, `access`, `invite`, `disable` and `enable`."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from privet.cli.accounts import POLICY, AsName, Datasets, PolicyFile, RoleName, desk, in_words, person_tree, role_of
from privet.cli.ledger.amounts import print_json
from privet.cli.options import AsJson
from privet.cli.output import aligned

app = typer.Typer(no_args_is_help=True, help="Manage who may use the server, also while it runs.")

Name = Annotated[str, typer.Argument(help="The name of the account, which is the analyst's name in the ledger.")]


@app.command()
def add(
    name: Name,
    role: RoleName = "analyst",
    dataset: Datasets = None,
    policy: PolicyFile = POLICY,
    as_name: AsName = None,
    as_json: AsJson = False,
) -> None:
    """Add somebody, and print the one-time link with which they set their password.

    Example: privet users add ana --dataset people
    """
    with desk(policy, as_name, create=True) as at:
        chosen, datasets = role_of(role), at.checked(dataset)
        name = at.accounts.check_new(name)
        with at.recording(f"account {name}: added as {chosen} for {in_words(datasets)}", datasets):
            person = at.accounts.add(name, chosen, datasets)
        link = at.link(at.accounts.invite(name))
    _print_link(link, person_tree(person), as_json)


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
    states = {(True, True): "disabled", (True, False): "disabled", (False, True): "active", (False, False): "invited"}
    rows = [
        (person.name, str(person.role), in_words(person.datasets), states[person.disabled, person.has_password])
        for person in people
    ]
    print(aligned(("name", "role", "datasets", "state"), *rows))


@app.command()
def access(
    name: Name,
    role: Annotated[str | None, typer.Option("--role", help="The new role: analyst or steward.")] = None,
    dataset: Annotated[
        list[str] | None, typer.Option("--dataset", help="A dataset that they may ask, and no others. Can be repeated.")
    ] = None,
    every_dataset: Annotated[bool, typer.Option("--every-dataset", help="Let them ask every dataset.")] = False,
    policy: PolicyFile = POLICY,
    as_name: AsName = None,
    as_json: AsJson = False,
) -> None:
    """Change the role of somebody, or the datasets that they may ask. What you leave out stays.

    Example: privet users access ana --dataset people --dataset sales
    """
    from privet.errors import UserError

    if every_dataset and dataset:
        raise UserError("name datasets, or every dataset, not both")
    with desk(policy, as_name) as at:
        before = at.person(name)
        chosen = before.role if role is None else role_of(role)
        datasets = before.datasets if not dataset and not every_dataset else at.checked(dataset)
        concerned = None if datasets is None or before.datasets is None else datasets | before.datasets
        with at.recording(f"account {before.name}: now {chosen} for {in_words(datasets)}", concerned):
            person = at.accounts.set_access(name, chosen, datasets)
    _print_person(person_tree(person), f"{person.name}: {person.role} for {in_words(person.datasets)}", as_json)


@app.command()
def invite(name: Name, policy: PolicyFile = POLICY, as_name: AsName = None, as_json: AsJson = False) -> None:
    """Print a new one-time link to set a password. An earlier link stops working.

    Example: privet users invite ana
    """
    with desk(policy, as_name) as at:
        person = at.person(name)
        with at.recording(f"account {person.name}: new link to set a password", person.datasets):
            link = at.link(at.accounts.invite(name))
    _print_link(link, person_tree(person), as_json)


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


def _print_link(link: str, tree: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json({**tree, "link": link})
        return
    from privet.server.accounts.invitations import HOURS

    print(link)
    print(f"This link sets the password of {tree['name']}. It works once, within {HOURS} hours.", file=sys.stderr)
