"""T22 on every engine: a marker in every cell shows in no answer, error, certificate, ledger or log of ours."""

from __future__ import annotations

import json
import logging
import traceback
from pathlib import Path

import pytest
from tests import movers
from tests.engines.canaries import COLUMNS, MARKS, NUMBER, ask_everything, rows

import privet as pv
from privet.engines.base import ArrowRows
from privet.errors import NoAnswer
from privet.privacy.adjacency import person
from privet.tables.relation import Table
from privet.tables.schema import Schema

SCHEMA = Schema.declare("canaries", protect=person("id", max_rows=2), columns=COLUMNS)


def marked(text: str) -> list[str]:
    """The marks in a text; the median of equal numbers may be that number."""
    return [mark for mark in MARKS if mark in text and mark != str(NUMBER)]


def test_no_cell_is_shown(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    table = movers.moved(name, Table(SCHEMA, ArrowRows(rows(10))))
    with pv.Session(
        [table], name="canaries", budget=pv.PureDP(100), ledger=tmp_path / "a.ledger", engine=name
    ) as session:
        released = ask_everything(table, session)
        texts = [str(each) for each in released] + [json.dumps(each.certificate, default=str) for each in released]
        if name in movers.MOVERS:  # its tables are gone when it is asked
            movers.lose(session.dataset.engine)
            with pytest.raises(pv.PrivetError) as caught:
                session.release(table.agg(s=pv.sum("price")), epsilon=1)
            texts.append("".join(traceback.format_exception(caught.value)))
            if isinstance(caught.value, NoAnswer):
                assert (caught.value.__cause__, caught.value.__context__) == (None, None)
        texts += [repr(session), repr(session.dataset.engine), *session.ledger.export("canaries")]
    printed = capfd.readouterr()
    texts += [printed.out, printed.err, caplog.text, (tmp_path / "a.ledger").read_bytes().decode("latin-1")]
    assert [marked(text) for text in texts if marked(text)] == []
    assert len(texts) > 10
