"""Requests made by schemathesis from the OpenAPI document: nothing but the documented answers."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.server.api.serving import Running

from privet.server.accounts import Role
from privet.server.openapi import document

_CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


def narrowed() -> dict[str, Any]:
    """The document for one dataset that exists, so that most requests reach it."""
    made = copy.deepcopy(document())
    for methods in made["paths"].values():
        for operation in methods.values():
            for parameter in operation["parameters"]:
                if parameter["name"] == "dataset":
                    parameter["schema"] = {"enum": ["people"]}
    return made


def fuzzed(running: Running, folder: Path, *, examples: int, phases: str, role: Role) -> tuple[int, str]:
    """How many requests were made; and what schemathesis has to say if one of the answers was not documented."""
    text, _ = running.server.accounts.create_token("sam", "fuzz", role=role, datasets=None, max_epsilon=None, days=1)
    schema = folder / "openapi.json"
    schema.write_text(json.dumps(narrowed()), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "schemathesis.cli",
        "run",
        str(schema),
        "--url",
        running.url.removesuffix("/api/v1"),
    ]
    command += ["-H", f"Authorization: Bearer {text}", "--max-examples", str(examples), "--phases", phases]
    command += ["--checks", _CHECKS, "--workers", "1", "--suppress-health-check", "all", "--request-timeout", "60"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    made = re.search(r"(\d+) generated", done.stdout)
    bugs = [line for line in running.log.getvalue().splitlines() if '"event": "bug"' in line]
    failed = "" if done.returncode == 0 and made and not bugs else "\n".join([done.stdout, done.stderr, *bugs])
    return int(made[1]) if made else 0, failed
