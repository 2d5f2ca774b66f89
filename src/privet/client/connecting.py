"""Connecting to a server: `pv.connect`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from privet.client.addresses import address
from privet.client.problems import clean
from privet.client.questions import RemoteDataset
from privet.client.session import RemoteSession
from privet.client.tokens import token_for
from privet.client.wire import Wire
from privet.errors import NoConnection, Subject, UserError, argument
from privet.exact import positive
from privet.names.spelling import there_are
from privet.release.signing import VerifyingKey, verifier
from privet.tables.schema import check_name
from privet.terms import Terms


def connect(
    url: str,
    *,
    token: str | None = None,
    dataset: str | None = None,
    key: VerifyingKey | None = None,
    timeout: float = 300.0,
    insecure: bool = False,
    asking: str = "",
) -> RemoteSession:
    """Open a session on a server: the same questions as with `pv.Session`, answered there and verified here.

    - `token`: by default that of the environment variable PRIVET_TOKEN, or the one that `privet login` stored.
    - `dataset`: needed if you may ask several, or pass the statement you are `asking`: its tables identify the dataset.
    - `key`: the steward's public key, which must have signed every answer. Without it, a server could invent numbers.
    - `timeout`: the seconds to wait for an answer. The error then has a request id to fetch it with, free of charge.
    - `insecure`: whether http:// is allowed to other machines. Anyone on the way can then read token and answers.
    """
    where = address(url, insecure=insecure)
    seconds = float(positive(timeout, name="timeout", example=argument("timeout", 300)))
    checked = None if key is None else verifier(key if not isinstance(key, str) else Path(key))
    wire = Wire(where, token_for(where, token), timeout=seconds)
    try:
        health, me = wire.get("health").tree, wire.get("me").tree
        name = _chosen(wire, asking) if dataset is None else dataset
        reply = wire.get("datasets", name, missing=True)
        if reply.status == 404:
            raise _no_dataset(name, _known(wire))
        tree = reply.tree
        try:
            analyst, version = check_name(me["name"], "analyst"), clean(health["version"], most=40)
            described = RemoteDataset(Terms.from_tree(tree["terms"]))
            if described.name != name:
                raise ValueError("it is another dataset")
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            raise NoConnection(
                f"{where} did not describe the dataset {clean(name, most=60)!r} as this version of Privet reads it: "
                f"{clean(error, most=200)}"
            ) from None
        return RemoteSession(wire, described, analyst, privet=version, key=checked)
    except BaseException:
        wire.close()
        raise


def _chosen(wire: Wire, asking: str) -> str:
    """The only dataset that can be asked, or the one whose tables a statement reads."""
    known = _known(wire)
    if len(known) == 1:
        return next(iter(known))
    if not known:
        raise UserError("there is no dataset that you may ask on this server", subject=Subject("dataset"))
    from privet.policy.policy import named_tables

    read = named_tables(asking)
    meant = [name for name, tables in known.items() if any(str(table).casefold() in read for table in tables)]
    if len(meant) == 1:
        return meant[0]
    if not asking:
        what = "the server has several datasets"
    else:
        what = "the question uses tables of several datasets" if meant else "the question uses no table of any dataset"
    raise UserError(
        what,
        allowed=f"The datasets are: {clean(', '.join(known), most=500)}",
        subject=Subject("dataset"),
        remedy=argument("dataset", clean(next(iter(known)), most=120), advice="Choose one dataset"),
    )


def _known(wire: Wire) -> dict[str, list[Any]]:
    """The datasets that can be asked, and the tables of each."""
    tree = wire.get("datasets").tree
    try:
        return {str(each["dataset"]): list(each["tables"]) for each in tree["datasets"]}
    except (LookupError, TypeError):
        raise NoConnection(f"{wire.address} did not send its datasets") from None


def _no_dataset(name: str, known: dict[str, list[Any]]) -> UserError:
    """The error for a dataset that does not exist, or that others may ask."""
    return UserError(
        f"there is no dataset {clean(name, most=60)!r} that you may ask on this server",
        allowed=clean(there_are(name, known, "datasets"), most=500),
        subject=Subject("dataset"),
    )
