"""The steward's commands by themselves, seen as the shell sees them."""

from __future__ import annotations

import sys

import pytest
import typer
from typer.testing import CliRunner, Result

from privet import cli
from privet.cli.import_csv import import_
from privet.cli.init import init

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
app.command()(init)
app.command("import")(import_)


def ran(*arguments: str, answers: tuple[str, ...] | None = None) -> Result:
    """A command that succeeds, with what is typed."""
    typed = None if answers is None else "".join(f"{answer}\n" for answer in answers)
    result = CliRunner().invoke(app, list(arguments), input=typed)
    assert result.exception is None, result.output
    assert result.exit_code == 0
    return result


def refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """What a command that is refused says; its exit code is 2."""
    monkeypatch.setattr(cli, "app", app)
    monkeypatch.setattr(sys, "argv", ["privet", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert "Traceback" not in err
    return err
