"""A marker in every cell of the data is in no response, in no log and in no file that the server writes."""

from __future__ import annotations

from pathlib import Path

import httpx
from tests.server.api.serving import BY_REGION, CANARY, CANARY_NUMBER, COUNT, Running

STATEMENTS = [
    COUNT,
    BY_REGION,
    "SELECT AVG(income) AS a, SUM(age) AS s FROM people",
    "SELECT MEDIAN(age) AS a FROM people",
    "SELECT COUNT(*) AS n FROM people WHERE age / (age - age) > 1",
    "SELECT SUM(CASE WHEN age > 50 THEN income / age END) AS s FROM people",
    f"SELECT COUNT(*) AS n FROM people WHERE region = '{CANARY[:3]}'",
    "SELECT region FROM people",
    "SELECT MAX(person_id) FROM people",
    "SELECT * FROM people",
    "SELECT COUNT(*) FROM 'people.parquet'",
]


def test_the_canary_is_nowhere(running: Running, ann: httpx.Client, sam: httpx.Client) -> None:
    seen = []
    for sql in STATEMENTS:
        body = {"sql": sql, "epsilon": 0.5, "assuming": 10}
        for path in ("parse", "explain", "query"):
            sent = {"sql": sql} if path == "parse" else body
            seen.append(ann.post(f"/datasets/people/{path}", json=sent).text)
    assert sum('"rows"' in text for text in seen) >= 4, "some of these are answered"
    for client in (ann, sam):
        for path in ("", "/budget", "/history"):
            seen.append(client.get(f"/datasets/people{path}").text)  # noqa: PERF401
    seen += [sam.get("/ledger/receipts").text, running.log.getvalue()]
    folder = Path(running.server.policy.path).parent
    written = [path.read_bytes() for path in folder.iterdir() if path.suffix != ".parquet" and path.is_file()]
    assert len(written) >= 3
    for text in seen:
        assert CANARY not in text
        assert str(CANARY_NUMBER) not in text
    for raw in written:
        assert CANARY.encode() not in raw
        assert str(CANARY_NUMBER).encode() not in raw


def test_a_bug_tells_nothing_of_its_text(running: Running, ann: httpx.Client) -> None:
    from privet.server import reading

    def broken(*_: object) -> None:
        raise KeyError(CANARY)

    original, reading.parse = reading.parse, broken  # type: ignore[assignment]
    try:
        response = ann.post("/datasets/people/parse", json={"sql": COUNT})
    finally:
        reading.parse = original
    assert response.status_code == 500
    assert response.json()["detail"] == "Something went wrong in the server. Nothing was released."
    assert CANARY not in response.text + running.log.getvalue()
    assert '"event": "bug"' in running.log.getvalue()
    assert "KeyError" in running.log.getvalue()
    assert "Traceback" not in response.text
