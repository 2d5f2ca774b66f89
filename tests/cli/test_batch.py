"""`privet batch` and `privet verify FOLDER`: a folder to publish, and every way to tamper with it."""

from __future__ import annotations

import copy
import html.parser
import json
import re
import shutil
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.asking import POLICY, Shell, made

from privet.codec import canonical
from privet.ledger import open_ledger
from privet.publication.contents import PICTURES, Answer, Manifest, Publication
from privet.publication.questions import parse
from privet.release.certificate import Certificate, answered, plain
from privet.release.recall import planned_again
from privet.release.signing import new_signing_key
from privet.release.verification import verify

EVIL = "<script>alert('x')</script>"
QUESTIONS = f"""
title = "Our town {EVIL}"
text = "First.\\n\\nSecond & last."
epsilon = 1

[[questions]]
name = "regions"
title = "By region"
sql = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"
labels = {{ n = "{EVIL}", south = "the | South" }}

[[questions]]
name = "pay"
weight = 2
sql = "SELECT region, AVG(income) AS n FROM people GROUP BY region ORDER BY n DESC"

[[questions]]
name = "smokers"
sql = "SELECT COUNT(*) AS n FROM people WHERE smoker"
within = {{ n = 20 }}
"""
FILES = 3 * 5 + 3
KEY = ("--key", "steward.key.pub")
LEDGER = ("--ledger", "people.ledger")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dataset, a file of questions and what became of it; copied for each test."""
    folder = tmp_path_factory.mktemp("published")
    made(folder, POLICY.replace('"elsewhere"', f'"{EVIL}"'.replace("'", "")))
    (folder / "questions.toml").write_text(QUESTIONS, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("sys.argv", ["privet", "batch", "questions.toml"])
        from privet import cli

        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert not ended.value.code
    return folder


@pytest.fixture
def here(published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(published, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy"


def written(here: Path) -> set[str]:
    """The names of the files."""
    return {path.name for path in (here / "questions").iterdir()}


class Texts(html.parser.HTMLParser):
    """What a browser would see of a page: its elements, their attributes, and the texts of cells."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.values: list[tuple[str, str | None]] = []
        self.cells: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.values += attrs
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1] += data


# --- writing -----------------------------------------------------------------------------------------------


def test_the_folder_is_whole_and_verified_with_key_and_ledger(shell: Shell, here: Path) -> None:
    assert len(written(here)) == FILES
    done = shell("verify", "questions", *KEY, *LEDGER)
    lines = done.out.splitlines()
    assert lines[FILES:] == ["", f"Verified: all {FILES} files passed."]
    assert not any("FAILED" in line for line in lines)
    assert sum("rules, signature, debit" in line for line in lines) == 3
    assert done.out.count(" together") == 3
    tree = shell.json("verify", "questions", "--json")
    assert [each["passed"] for each in tree] == [True] * FILES
    for name in ("people.parquet", "privet.toml", "steward.key", "people.ledger"):
        (here / name).unlink()
    last = shell.out("verify", "questions", *KEY).splitlines()[-1]
    assert last == f"Verified: all {FILES} files passed. Not checked: debits (--ledger)."
    assert shell.out("verify", "questions").endswith("Not checked: signatures (--key) and debits (--ledger).\n")


def test_the_page_stands_alone_and_nothing_in_it_is_markup_from_data(here: Path) -> None:
    page = (here / "questions" / "index.html").read_text(encoding="utf-8")
    seen = Texts(page)
    assert "script" not in seen.tags
    assert not {tag for tag in seen.tags if tag in ("link", "iframe", "object", "embed", "form", "base")}
    assert not any(name.startswith("on") for name, _ in seen.values)
    sources = [value or "" for name, value in seen.values if name in ("src", "href")]
    assert sources
    assert all(s.startswith(("data:image/svg+xml;base64,", "#")) or s in written(here) for s in sources)
    assert "http" not in page.replace("http-equiv", "")
    assert "&lt;script&gt;" in page
    answers = pq.read_table(here / "questions" / "regions.parquet").to_pydict()
    for n in answers["n"]:
        assert any(cell.split(" ")[0] == f"{n:,}" for cell in seen.cells), n
    assert any("the | South" in cell for cell in seen.cells)
    pictures = [value for name, value in seen.values if name == "alt"]
    assert len(pictures) == 3
    assert all(value and value.startswith("Chart of ") for value in pictures)
    text = (here / "questions" / "index.md").read_text(encoding="utf-8")
    assert "<script" not in text
    assert "the \\| South" in text


def test_a_dry_run_spends_nothing_and_writes_nothing(tmp_path: Path, shell: Shell, here: Path) -> None:
    (here / "other.toml").write_text(QUESTIONS.replace("epsilon = 1", "epsilon = 1.1"), encoding="utf-8")
    before = (here / "people.ledger").read_bytes()
    out = shell.out("batch", "other.toml", "--dry-run")
    assert "Shared     regions, pay: about the same groups" in out
    assert "for all together" in out
    assert not (here / "other").exists()
    assert (here / "people.ledger").read_bytes() == before


def test_a_dry_run_over_budget_says_so_and_ends_like_a_refusal(shell: Shell, here: Path) -> None:
    (here / "other.toml").write_text(QUESTIONS.replace("epsilon = 1", "epsilon = 9"), encoding="utf-8")
    done = shell.run("batch", "other.toml", "--dry-run")
    assert done.code == 3
    assert "not enough" in done.out
    assert re.search(r"this costs epsilon 9\.\d+, but only epsilon 1\.\d+ is left. Nothing was spent", done.err), (
        done.err
    )
    assert "Already paid for" in shell.out("batch", "questions.toml", "--dry-run", "--force"), "what is stored is free"


def test_a_dry_run_tells_the_errors_of_all_columns(shell: Shell, here: Path) -> None:
    (here / "other.toml").write_text("""
title = "Several kinds"
epsilon = 1
[[questions]]
name = "shares"
sql = "SELECT region, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM people GROUP BY region"
[[questions]]
name = "doubled"
sql = "SELECT 2 * COUNT(*) AS twice FROM people"
[[questions]]
name = "ages"
sql = "SELECT MEDIAN(age) AS age FROM people"
""", encoding="utf-8")  # fmt: skip
    out = shell.out("batch", "other.toml", "--dry-run")
    assert "share is computed from other columns." in out
    assert re.search(r"twice within \d+\.", out)
    assert re.search(r"age within \d+ rows of its rank on any data", out)


def test_nothing_is_overwritten_without_force_and_asking_again_is_free(shell: Shell, here: Path) -> None:
    page = (here / "questions" / "index.html").read_bytes()
    done = shell.run("batch", "questions.toml")
    assert done.code == 2
    assert "already exists" in done.err
    done = shell("batch", "questions.toml", "--force")
    assert "Paid for before" in done.err
    assert (here / "questions" / "index.html").read_bytes() == page
    with closing(open_ledger("people.ledger", read_only=True)) as ledger:
        assert sum(entry.kind == "reserved" for entry in ledger.history("people")) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("epsilon = 1", "epsilno = 1"), "there is no key 'epsilno'.*Did you mean 'epsilon'"),
        (("epsilon = 1", 'epsilon = "no"'), "epsilon"),
        (("epsilon = 1\n", ""), "weights divide one epsilon or rho"),
        (("epsilon = 1", "epsilon = true"), "epsilon must be a number"),
        (('name = "pay"', 'name = "../pay"'), "can't be the name of files"),
        (('name = "pay"', 'name = "index"'), "can't be the name of files"),
        (('name = "pay"', 'name = "regions"'), "two questions are named"),
        (("AVG(income)", "AVG(incone)"), "other.toml, question 'pay', line 1, column .*Did you mean income"),
        (("weight = 2", "epsilon = 0.1"), "the price is given twice"),
        (("{ n = 20 }", '{ n = ["20"] }'), "within must map names to numbers"),
        (("{ n = 20 }", "{ m = 20 }"), "other.toml: question 'smokers': within: there is no column 'm'"),
        (("south = ", "sotuh = "), "question 'regions'.*neither a column nor a key"),
        (("[[questions]]", "[[question]]"), "there is no key 'question'"),
        (("[[questions]]", "[[questions.a]]"), r"questions must be a list. Write: \[\[questions\]\]"),
        (('title = "Our', 'tilte = "Our'), "Did you mean 'title'"),
        (("title = ", "title : "), "not valid TOML"),
    ],
)
def test_a_wrong_file_is_refused_before_anything_is_paid(
    shell: Shell, here: Path, change: tuple[str, str], said: str
) -> None:
    (here / "other.toml").write_text(QUESTIONS.replace(*change), encoding="utf-8")
    before = (here / "people.ledger").read_bytes()
    done = shell.run("batch", "other.toml")
    assert done.code == 2, done.err
    assert re.search(said, done.err, re.S), done.err
    assert "other.toml" in done.err
    assert not (here / "other").exists()
    assert (here / "people.ledger").read_bytes() == before


def test_too_small_a_budget_leaves_nothing_behind(shell: Shell, here: Path) -> None:
    (here / "other.toml").write_text(QUESTIONS.replace("epsilon = 1", "epsilon = 9"), encoding="utf-8")
    done = shell.run("batch", "other.toml")
    assert done.code == 3
    assert "Nothing was spent" in done.err
    assert not list((here / "other").iterdir())


def test_numbers_are_read_digit_by_digit() -> None:
    batch = parse(QUESTIONS.replace("epsilon = 1", "epsilon = 0.1"))
    assert str(batch.options()["epsilon"]) == "0.1"
    assert batch.options()["weights"] == {"pay": 2}
    assert batch.options()["within"] == {"smokers": {"n": 20}}


# --- tampering ---------------------------------------------------------------------------------------------


def edited(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def resigned(folder: Path) -> None:
    """The manifest, as somebody without the key would renew it."""
    from privet.publication.contents import digest

    manifest = folder / "manifest.json"
    tree = json.loads(manifest.read_text(encoding="utf-8"))
    for path in folder.iterdir():
        if path.name in tree["document"]["files"]:
            tree["document"]["files"][path.name] = digest(path.read_bytes())
    manifest.write_text(json.dumps(tree, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def rewritten(folder: Path, changed: Mapping[str, dict[str, Any]] | None = None) -> None:
    """The folder, as somebody without the key would write it anew from other certificates."""
    read = Manifest.read((folder / "manifest.json").read_bytes())
    answers = []
    for question in read.questions:
        document = Certificate.from_json((folder / f"{question.name}.json").read_bytes()).document
        drawn = {suffix: (folder / f"{question.name}{suffix}").read_bytes() for suffix in PICTURES}
        answers.append(Answer(question, Certificate((changed or {}).get(question.name, document)), drawn))
    of = read.document
    for name, content in Publication(of["title"], of["text"], tuple(answers), of["privet"]).files(None).items():
        (folder / name).write_bytes(content)


def first_number(folder: Path, question: str) -> int:
    return int(pq.read_table(folder / f"{question}.parquet").to_pydict()["n"][0])


def change_csv(folder: Path) -> str:
    n = first_number(folder, "regions")
    edited(folder / "regions.csv", f",{n},", f",{n + 1},")
    return "regions.csv"


def change_parquet(folder: Path) -> str:
    path = folder / "regions.parquet"
    table = pq.read_table(path)
    numbers = pa.array([x + 1 for x in table["n"].to_pylist()], table["n"].type)
    changed = table.set_column(table.column_names.index("n"), "n", numbers)
    pq.write_table(changed.replace_schema_metadata(table.schema.metadata), path)
    return "regions.parquet"


def change_notes(folder: Path) -> str:
    path = folder / "regions.parquet"
    pq.write_table(pq.read_table(path).replace_schema_metadata({"privet": "{}"}), path)
    return "regions.parquet"


def change_page(folder: Path) -> str:
    n = first_number(folder, "smokers")
    edited(folder / "index.html", f">{n:,} <", f">{n + 1:,} <")
    return "index.html"


def change_promise(folder: Path) -> str:
    edited(folder / "index.html", "These numbers are differentially private: epsilon 1", "These numbers are: epsilon 0")
    return "index.html"


def change_markdown(folder: Path) -> str:
    edited(folder / "index.md", f"| {first_number(folder, 'smokers'):,}", "| 7")
    return "index.md"


def change_certificate(folder: Path) -> str:
    path = folder / "smokers.json"
    tree = json.loads(path.read_text(encoding="utf-8"))
    tree["document"]["answer"]["n"]["values"][0] += 1
    path.write_text(canonical(tree) + "\n", encoding="utf-8")
    return "smokers.json"


def swap_certificates(folder: Path) -> str:
    (folder / "regions.json").write_bytes((folder / "smokers.json").read_bytes())
    return "regions.json"


def change_question(folder: Path) -> str:
    """The statement on the page and in the manifest is another one than was answered."""
    for name in ("manifest.json", "index.html"):
        edited(folder / name, "FROM people WHERE smoker", "FROM people WHERE NOT smoker")
    return "smokers.json"


def drop_question(folder: Path) -> str:
    tree = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    tree["document"]["questions"] = tree["document"]["questions"][:2]
    (folder / "manifest.json").write_text(json.dumps(tree), encoding="utf-8")
    return "manifest.json"


def add_file(folder: Path) -> str:
    """A file that no certificate stands behind, but that the manifest lists."""
    (folder / "more.csv").write_text("n\n1\n", encoding="utf-8")
    tree = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    tree["document"]["files"]["more.csv"] = ""
    (folder / "manifest.json").write_text(json.dumps(tree), encoding="utf-8")
    return "manifest.json"


def remove_file(folder: Path) -> str:
    (folder / "pay.csv").unlink()
    return "pay.csv"


def change_guarantee(folder: Path) -> str:
    """The manifest promises more than the certificates; nothing else in the folder says so."""
    tree = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    tree["document"]["guarantee"]["epsilon"] = "1/10"
    (folder / "manifest.json").write_text(json.dumps(tree), encoding="utf-8")
    return "manifest.json"


def draw_twice(folder: Path) -> str:
    """One measurement is paid for, and shown with two noises: their mean has less noise than was paid for."""
    certificate = Certificate.from_json((folder / "pay.json").read_bytes())
    document = copy.deepcopy(certificate.document)
    document["noisy"] = [[[x + 1 for x in vector] for vector in part] for part in document["noisy"]]
    document["answer"] = plain(answered(planned_again(document).cells(document["noisy"])))
    verify(Certificate(document))  # by itself it is what a certificate should be
    rewritten(folder, {"pay": document})
    return "pay.json"


WITHOUT_A_KEY = [
    change_csv, change_parquet, change_notes, change_page, change_promise, change_markdown, change_certificate,
    swap_certificates, change_question, drop_question, add_file, remove_file,
    change_guarantee, draw_twice,
]  # fmt: skip


def test_the_page_names_the_command_that_checks_it(shell: Shell, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def commands() -> set[str]:
        texts = [(here / "questions" / name).read_text(encoding="utf-8") for name in ("index.html", "index.md")]
        return {found for text in texts for found in re.findall(r"privet (verify [^<\n]*)", text)}

    assert commands() == {"verify . --key steward.key.pub"}
    shutil.copy(here / "steward.key.pub", here / "questions")
    rewritten(here / "questions")  # nothing is signed now
    assert commands() == {"verify ."}
    assert "This folder is not signed" in (here / "questions" / "index.html").read_text(encoding="utf-8")
    monkeypatch.chdir(here / "questions")
    assert "FAILED" not in shell.out("verify", ".")


@pytest.mark.parametrize("tamper", WITHOUT_A_KEY, ids=lambda each: each.__name__)
def test_tampering_is_found_without_a_key_even_with_a_renewed_manifest(shell: Shell, here: Path, tamper: Any) -> None:
    guilty = tamper(here / "questions")
    resigned(here / "questions")
    done = shell.run("verify", "questions")
    assert done.code == 1
    failed = [line.split()[0] for line in done.out.splitlines() if "FAILED" in line]
    assert guilty in failed, done.out
    assert "failed" in done.err


def change_picture(folder: Path) -> None:
    path = folder / "regions.png"
    path.write_bytes(path.read_bytes() + b"!")


def change_title(folder: Path) -> None:
    for path in (folder / name for name in ("manifest.json", "index.html", "index.md")):
        path.write_text(path.read_text(encoding="utf-8").replace("By region", "By whatever"), encoding="utf-8")


@pytest.mark.parametrize("tamper", [change_picture, change_title], ids=lambda each: each.__name__)
def test_what_only_the_manifest_has_needs_its_signature(shell: Shell, here: Path, tamper: Any) -> None:
    tamper(here / "questions")
    resigned(here / "questions")
    shell("verify", "questions")
    done = shell.run("verify", "questions", *KEY)
    assert done.code == 1
    assert "manifest.json" in done.out.splitlines()[0]
    assert "FAILED: it is not signed with this key" in done.out


def test_another_key_another_ledger_and_no_publication(shell: Shell, here: Path) -> None:
    new_signing_key(here / "other.key")
    done = shell.run("verify", "questions", "--key", "other.key.pub")
    assert done.code == 1
    (here / "questions" / "more.csv").write_text("n\n1\n", encoding="utf-8")
    assert "not part of the publication" in shell.out("verify", "questions")
    (here / "empty").mkdir()
    assert "it is a folder, and has no manifest.json" in shell.refused(2, "verify", "empty")
    done = shell.run("verify", "questions", "--receipt", "1:00")
    assert done.code == 2
    for broken in ("{}", "[", '{"document": {"format": "privet-publication/1"}, "signature": null}'):
        (here / "questions" / "manifest.json").write_text(broken, encoding="utf-8")
        assert shell.run("verify", "questions").code == 1


def test_a_batch_whose_privacy_loss_is_not_computed_has_not_passed(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, POLICY.replace("{ epsilon = 3 }", '{ epsilon = 3, delta = "1e-5" }'))
    monkeypatch.chdir(tmp_path)
    asked = [
        f"[[questions]]\nname = 'q{i}'\nsql = 'SELECT COUNT(*) AS n FROM people WHERE age > {i}'" for i in range(30)
    ]
    head = "title = 'Ages'\nepsilon = 1\ndelta = '1e-6'\npictures = false\n"
    (tmp_path / "ages.toml").write_text(head + "\n".join(asked), encoding="utf-8")
    shell("batch", "ages.toml")
    assert shell.out("verify", "ages", *KEY).count("(computed anew)") == 30
    monkeypatch.setattr("privet.privacy.pld._pmfs", lambda: None)
    done = shell.run("verify", "ages", *KEY)
    assert done.code == 2
    assert "passed" not in done.out
    assert done.out.count("not checked: the guarantee of its batch") == 30
    assert "30 of 93 are not checked: q0.json, q1.json" in done.err
    assert "pip install 'privet[pld]'" in done.err
    assert "not checked" in shell.refused(2, "verify", "ages/q0.json")
    edited(tmp_path / "ages" / "q0.csv", "\n", "\n7")
    done = shell.run("verify", "ages", *KEY)
    assert done.code == 1, "what is wrong comes first"
    assert "1 of 93 failed: q0.csv" in done.err


def test_without_pictures_nothing_is_drawn(shell: Shell, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privet.publication.contents.drawings", lambda *_: pytest.fail("drawn"))
    (here / "plain.toml").write_text("pictures = false\n" + QUESTIONS, encoding="utf-8")
    shell("batch", "plain.toml")
    assert not list((here / "plain").glob("*.png"))
    assert "<img" not in (here / "plain" / "index.html").read_text(encoding="utf-8")
    assert "FAILED" not in shell.out("verify", "plain", *KEY, *LEDGER)
