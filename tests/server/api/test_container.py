"""The container file, as far as it can be checked without a container: what it copies, installs, starts and asks."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import typer
from tests.server.api.serving import Running, free_port

from privet import cli
from privet.policy.server_shape import checked_listen

ROOT = Path(__file__).parents[3]
FILE = (ROOT / "Containerfile").read_text(encoding="utf-8")
STEPS = [
    (name, rest)
    for name, _, rest in (line.partition(" ") for line in re.sub(r"\\\n\s*", "", FILE).splitlines())
    if name and name != "#"
]
PORT = "8765"


def of(name: str) -> list[str]:
    """What follows an instruction, each time."""
    return [rest for instruction, rest in STEPS if instruction == name]


def locked(name: str) -> dict[str, tuple[set[str], set[str]]]:
    """The packages of a lock file: for each with its version, its hashes and what needs it."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for block in re.split(r"\n(?=[a-z0-9])", (ROOT / name).read_text(encoding="utf-8")):
        head, _, via = block.partition("# via")
        needs = {each.strip("# ") for each in via.splitlines() if each.strip("# ")}
        found[head.split()[0]] = {*re.findall(r"--hash=(sha256:[0-9a-f]{64})", head)}, needs
    return found


def test_what_is_copied_exists_and_is_sent_to_the_builder() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert ignored[0] == "*", "nothing is sent unless it is named: no key, no data, no ledger"
    sent = {line[1:] for line in ignored if line.startswith("!")}
    sources = {source for rest in of("COPY") if "--from" not in rest for source in rest.split()[:-1]}
    assert sources == sent
    assert all((ROOT / source).exists() for source in sources)
    assert not of("ADD")
    assert not any(fnmatch(str(path.relative_to(ROOT)), "*.key") for path in (ROOT / "src").rglob("*"))


def test_what_is_installed_is_locked_and_what_builds_it_is_gone() -> None:
    installs = [line for rest in of("RUN") for line in rest.split("&&") if "pip install" in line]
    assert len(installs) == 2
    assert "--require-hashes" in installs[0]
    assert "-r container.lock" in installs[0]
    assert {"--no-deps", "--no-index", "--no-build-isolation"} < {*installs[1].split()}, "nothing is fetched for it"
    container, everything = locked("container.lock"), locked("requirements.lock")
    for package, (hashes, _) in container.items():
        assert hashes
        assert hashes == everything[package][0], package
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [project["optional-dependencies"][extra] for extra in ("server", "postgres", "objects")]
    direct = {re.split(r"[\[<>=]", each)[0] for each in sum(extras, project["dependencies"])}
    names = {package.partition("==")[0] for package in container}
    assert direct < names
    (gone,) = (line.split("--yes")[1].split() for rest in of("RUN") for line in rest.split("&&") if "uninstall" in line)
    kept = {package: needs for package, (_, needs) in container.items() if package.partition("==")[0] not in gone}
    for package, (_, needs) in container.items():
        if package.partition("==")[0] in gone:
            own = {need for need in needs if not need.startswith(("-c", "privet (pyproject.toml:container)"))}
            assert own <= {*gone}, f"{package} is needed by {own - {*gone}}"
    assert direct <= {package.partition("==")[0] for package in kept}
    assert "hatchling" in gone


def test_it_runs_as_nobody_and_writes_only_to_its_volume() -> None:
    assert of("USER") == ["10001:10001"]
    order = [name for name, _ in STEPS]
    assert order.index("USER") > max(at for at, name in enumerate(order) if name == "RUN")
    assert of("VOLUME") == ["/var/lib/privet"]
    assert "HOME=/var/lib/privet" in of("ENV")[1]
    assert of("STOPSIGNAL") == ["SIGTERM"]
    assert len(of("FROM")) == 2
    assert re.search(r"python:3\.\d+-slim", of("ARG")[0])
    assert not re.search("(?i)password|secret|token", re.sub("(?m)^#.*", "", FILE))


def test_its_command_is_one_of_ours() -> None:
    (entry,), (words,) = map(json.loads, of("ENTRYPOINT")), map(json.loads, of("CMD"))
    assert entry == ["privet"]
    assert words[0] == "serve"
    command = typer.main.get_command(cli.app)
    with command.make_context("privet", ["serve", "--help"], resilient_parsing=True) as above:
        serve = command.get_command(above, words[0])  # type: ignore[attr-defined]
        with serve.make_context("serve", words[1:], parent=above) as context:
            given = dict(context.params)
    assert given == {"policy": Path("/policy/privet.toml"), "listen": f"0.0.0.0:{PORT}"}
    assert checked_listen(given["listen"]) == f"0.0.0.0:{PORT}"
    assert of("EXPOSE") == [PORT]


def test_its_health_check_asks_the_server(running: Running) -> None:
    (options,) = of("HEALTHCHECK")
    program, flag, code = json.loads(options.partition("CMD ")[2])
    assert (program, flag) == ("python", "-c")
    assert f"127.0.0.1:{PORT}" in code
    for port, healthy in ((running.port, True), (free_port(), False)):
        done = subprocess.run([sys.executable, flag, code.replace(PORT, str(port))], capture_output=True, check=False)
        assert (done.returncode == 0) is healthy
