"""Tokens for programs: `privet tokens create`, `list` and `revoke`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from privet.cli.accounts import POLICY, AsName, Datasets, PolicyFile, RoleName, desk, in_words, role_of, token_tree
from privet.cli.ledger.amounts import print_json
from privet.cli.options import AsJson
from privet.cli.output import aligned

app = typer.Typer(no_args_is_help=True, help="Manage the tokens with which programs use the server.")


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="The account that the token belongs to.")],
    label: Annotated[str, typer.Option(help="What the token is for.")],
    role: RoleName = "analyst",
    dataset: Datasets = None,
    max_epsilon: Annotated[
        str | None, typer.Option(help="The most that questions with this token may cost together, such as 0.5 or 1/3.")
    ] = None,
    days: Annotated[int, typer.Option(help="The number of days until it expires.")] = 90,
    policy: PolicyFile = POLICY,
    as_name: AsName = None,
    as_json: AsJson = False,
) -> None:
    """Create a token, and print it. It is never shown again.

    Example: privet tokens create ana --label notebook --dataset people --max-epsilon 0.5
    """
    from privet.errors import argument
    from privet.exact import positive

    limit = (
        None if max_epsilon is None else positive(max_epsilon, name="max_epsilon", example=argument("max_epsilon", 0.5))
    )
    with desk(policy, as_name) as at:
        chosen, datasets = role_of(role), at.checked(dataset)
        person = at.person(name)
        most = "" if limit is None else f", epsilon {limit} at most"
        of = "all of the account's datasets" if datasets is None else in_words(datasets)
        note = f"account {person.name}: new token for {of} as {chosen}{most}"
        with at.recording(note, datasets):
            text, token = at.accounts.create_token(
                name, label, role=chosen, datasets=datasets, max_epsilon=limit, days=days
            )
    if as_json:
        print_json({"text": text, "token": token_tree(token)})
        return
    print(text)
    print(
        f"This is the only time that this token of {token.name} is shown. It expires on {token.expires:%Y-%m-%d}.",
        file=sys.stderr,
    )


@app.command("list")
def list_(
    user: Annotated[str | None, typer.Option(help="Only the tokens of this account.")] = None,
    policy: PolicyFile = POLICY,
    as_json: AsJson = False,
) -> None:
    """List tokens, newest first, without their secrets.

    Example: privet tokens list --user ana
    """
    from datetime import UTC, datetime

    from privet.exact import show

    with desk(policy) as at:
        tokens = at.accounts.tokens(None if user is None else at.person(user).name)
    if as_json:
        print_json([token_tree(token) for token in tokens])
        return
    now = datetime.now(UTC)
    rows = [
        (
            token.id,
            token.name,
            token.label,
            str(token.role),
            in_words(token.datasets) if token.datasets is not None else "all of the account's",
            "no limit" if token.max_epsilon is None else f"{show(token.spent)} of {show(token.max_epsilon)}",
            f"{token.expires:%Y-%m-%d}" if token.is_live(now) else "revoked" if token.revoked else "expired",
        )
        for token in tokens
    ]
    print(aligned(("id", "account", "label", "role", "datasets", "epsilon spent", "expires"), *rows))


@app.command()
def revoke(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The id of the token, which privet tokens list shows.")],
    policy: PolicyFile = POLICY,
    as_name: AsName = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a token at once.

    Example: privet tokens revoke 0123456789abcdef
    """
    from privet.errors import Remedy, UserError

    with desk(policy, as_name) as at:
        token = at.accounts.token(id_)
        if token is None:
            raise UserError("there is no token with this id", remedy=Remedy("See privet tokens list"))
        if token.revoked is None:
            with at.recording(f"account {token.name}: token {token.id} revoked", token.datasets):
                token = at.accounts.revoke_token(token.id)
    print_json(token_tree(token)) if as_json else print(f"The token {token.id} of {token.name} is revoked.")
