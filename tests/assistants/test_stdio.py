"""`privet mcp` as a process, with the package's own client; and its options."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mcp import Client, StdioServerParameters
from tests import loops
from tests.cli.asking import COUNT, POLICY, Shell, made
from tests.cli.conftest import here, shell  # noqa: F401
from tests.client.real import PACE, served

import privet as pv


def test_a_process_asks_a_server(tmp_path: Path) -> None:
    """One connection over both: stdio to the process, HTTP to the server, whose ledger has one debit."""
    made(tmp_path, POLICY + PACE)
    with served(tmp_path / "privet.toml") as serving:
        command = StdioServerParameters(
            command=sys.executable,
            args=["-m", "privet", "mcp", "--server", serving.url, "--max-epsilon", "0.5"],
            env={**os.environ, "PRIVET_TOKEN": serving.token()},
        )

        async def run() -> None:
            async with Client(command) as client:
                tools = (await client.list_tools()).tools
                assert [each.name for each in tools] == ["list_tables", "explain", "ask", "budget", "verify"]
                ask = {"sql": COUNT, "epsilon": 0.5}
                first, again = [await client.call_tool("ask", ask) for _ in range(2)]
                assert not first.is_error, first
                assert first.structured_content["rows"] == again.structured_content["rows"]
                entry = first.structured_content["certificate"]["entry"]
                assert not (await client.call_tool("verify", {"entry": entry})).is_error
                more = await client.call_tool("ask", {"sql": "SELECT COUNT(*) AS n FROM people", "epsilon": "1/1000"})
                assert more.is_error
                assert "nothing is left of the 0.5 that this connection may spend" in str(more.content)

        loops.run(run())
        assert serving.datasets["people"].session(analyst="ana").spent == pv.PureDP(0.5)


def test_the_options(shell: Shell) -> None:  # noqa: F811
    for wrong, said in (
        ((), "Missing option '--max-epsilon'"),
        (("--max-epsilon", "0"), "max_epsilon must be a number greater than 0"),
        (("--max-epsilon", "1", "--policy", "p.toml", "--server", "https://x.org"), "not both"),
        (("--max-epsilon", "1", "--server", "https://x.org", "--analyst", "ana"), "a server knows who you are"),
        (("--max-epsilon", "1", "--dataset", "nobody"), "nobody"),
    ):
        done = shell.run("mcp", *wrong)
        assert done.code == 2, done
        assert said in done.err, done
