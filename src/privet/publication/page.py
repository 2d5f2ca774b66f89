"""The page of a publication: one HTML file that needs no other, no script and no network. Every text is escaped."""

from __future__ import annotations

from base64 import b64encode
from html import escape

from privet.publication.contents import PICTURES, TABLES, Answer, Publication
from privet.release.render import html as tables

MOST_LINES = 400
"""Groups in a table of the page."""
_FEW = 2  # columns that have room for bars
_CELLS = 12  # numbers in the text for a picture

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_STYLE = """
:root { color-scheme: light dark;
  --ink: #1b2430; --faint: #5b6673; --paper: #ffffff; --soft: #f3f5f8; --line: #d7dde5; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e7eaee; --faint: #9aa5b1; --paper: #14181d; --soft: #1d232b; --line: #343d48; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 54rem; padding: 1.5rem 1rem 4rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0.5rem 0 1rem; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 3rem 0 0.75rem; padding-top: 1.25rem;
  border-top: 1px solid var(--line); }
a { color: #2f6fc4; } @media (prefers-color-scheme: dark) { a { color: #8ab8f5; } }
.promise { background: var(--soft); border-left: 4px solid #3b7dd8; padding: 0.75rem 1rem; border-radius: 0 6px 6px 0; }
.promise p { margin: 0.25rem 0; }
.scroll { overflow-x: auto; margin: 1rem 0 0.5rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.35rem 0.75rem 0.35rem 0; border-bottom: 1px solid var(--line); }
thead th { border-bottom: 2px solid var(--line); font-size: 0.9rem; }
tbody th { font-weight: 500; }
.many .bar { display: none; }
@media (max-width: 32rem) { .bar { display: none; } th, td { padding-right: 0.5rem; } }
figure { margin: 1rem 0; max-width: 40rem; padding: 0.5rem;
  background: #ffffff; border: 1px solid var(--line); border-radius: 6px; }
figure.wide { max-width: none; }
figure img { display: block; width: 100%; height: auto; }
.notes { color: var(--faint); font-size: 0.9rem; padding-left: 1.1rem; margin: 0.5rem 0; }
.files { font-size: 0.9rem; }
pre { background: var(--soft); padding: 0.75rem; border-radius: 6px; white-space: pre-wrap; font-size: 0.85rem; }
summary { cursor: pointer; font-size: 0.9rem; }
footer { margin-top: 3rem; color: var(--faint); font-size: 0.85rem; }
"""


def html(of: Publication) -> str:
    """The whole page."""
    unit, _ = of.protects()
    contents = "".join(
        f'<li><a href="#{each.question.name}">{escape(each.question.title)}</a></li>\n' for each in of.answers
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{escape(of.title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>{escape(of.title)}</h1>
{_paragraphs(of.text)}<div class="promise">
<p><strong>These numbers are differentially private: {escape(str(of.guarantee))}, for all tables together.</strong></p>
<p>They protect {unit} in the data. Each contains noise, and is shown with the interval that its noise allows.</p>
<p>{escape(of.meaning())}</p>
</div>
<nav aria-label="Tables"><ul>
{contents}</ul></nav>
{"".join(_section(each) for each in of.answers)}<h2 id="verify">How to verify this page</h2>
{_verify(of)}</main>
<footer>Written by Privet {escape(of.version)} from the dataset {escape(of.dataset)}.</footer>
</body>
</html>
"""


def _section(answer: Answer) -> str:
    question, name = answer.question, answer.question.name
    table = tables.table(answer.release.view(), question.style, lines=MOST_LINES, more="the CSV file has all")
    notes = "".join(f"<li>{escape(note)}</li>\n" for note in answer.notes())
    suffixes = [*TABLES[1:], *(suffix for suffix in PICTURES if suffix in answer.drawn), TABLES[0]]
    words = {".csv": "CSV", ".parquet": "Parquet", ".json": "certificate", ".svg": "SVG", ".png": "PNG"}
    links = " · ".join(f'<a href="{name}{suffix}">{words[suffix]}</a>' for suffix in suffixes)
    return f"""<section>
<h2 id="{name}">{escape(question.title)}</h2>
{_paragraphs(question.text)}{_figure(answer)}<div class="{_width(answer)}">
{table}
</div>
<ul class="notes">
{notes}</ul>
<p class="files">Files: {links}</p>
<details><summary>The question</summary><pre>{escape(question.sql.strip())}</pre></details>
</section>
"""


def _width(answer: Answer) -> str:
    """How a table is laid out: where the picture has several columns, bars beside the numbers would take their room."""
    crowded = ".svg" in answer.drawn and len(answer.release.view().columns) > _FEW
    return "scroll many" if crowded else "scroll"


def _figure(answer: Answer) -> str:
    if ".svg" not in answer.drawn:
        return ""
    source = f"data:image/svg+xml;base64,{b64encode(answer.drawn['.svg']).decode()}"
    wide = ' class="wide"' if len(answer.release.view().columns) > 1 else ""
    return f'<figure{wide}><img src="{source}" alt="{escape(described(answer))}"></figure>\n'


def described(answer: Answer) -> str:
    """A picture in words: what it shows, and its numbers, as far as they fit."""
    view, style = answer.release.view(), answer.question.style
    by = f" by {', '.join(style.text(key.name) for key in view.keys)}" if view.keys else ""
    few = max(1, _CELLS // len(view.columns))
    keys = [[style.text(text, value) for text, value in zip(key.texts(), key.values, strict=True)] for key in view.keys]
    more = f", and {view.groups - few:,} more" if view.groups > few else ""
    drawn = ", ".join(style.text(each.name) for each in view.columns[:_CELLS])
    told = []
    for column in view.columns[:_CELLS]:
        numbers = [
            " ".join([*(texts[group] for texts in keys), *column.texts(group)]).rstrip()
            for group in range(min(view.groups, few))
        ]
        name = f"{style.text(column.name)}: " if len(view.columns) > 1 else ""
        told.append(f"{name}{'; '.join(numbers)}{more}.")
    return f"Chart of {drawn}{by}, with intervals. {' '.join(told)}"


def _paragraphs(text: str) -> str:
    parts = [part.strip() for part in text.split("\n\n") if part.strip()]
    return "".join(f"<p>{escape(part)}</p>\n" for part in parts)


def _signed(of: Publication) -> str:
    if of.is_signed:
        return "The public key of the data's steward shows that the certificates are theirs."
    return "This folder is not signed, so nothing shows that it is the steward's."


def _verify(of: Publication) -> str:
    link = of.answers[0].certificate.document["ledger"]
    return f"""<p>Every table has a certificate. It states the question, how far one person can change each number, the
noise, and the guarantee. With this folder, anyone can derive all of that anew, without the data, and compare the tables
and this page with the certificates:</p>
<pre>pip install privet
{of.command}</pre>
<p>{_signed(of)} Whoever has the ledger can also check
that the budget was debited: entry {escape(str(link.get("entry")))} of the dataset {escape(of.dataset)}. Nothing of this
proves that the noise was drawn: for that, you trust the steward.</p>
"""
