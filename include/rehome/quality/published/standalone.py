"""Make Data Docs self-contained.

Great Expectations' pages load scripts, styles, fonts and pictures from seven other hosts, and draw
the tables of the index by script. The rewritten pages do neither: they work in a sandbox, without
Internet access, and do not reveal their readers to other hosts.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

_TABLE = re.compile(r"columns: (\[.*?\]),\s+data: (\[.*?\]),\s+toolbar:", re.DOTALL)
_OUT = re.compile(
    r"<table\b[^>]*>\s*</table>|<script\b.*?</script>|<style\b.*?</style>|<link\b[^>]*>|<img\b[^>]*>|<button\b.*?</button>"
    r"|<footer\b.*?</footer>|<input\b[^>]*>|<label\b.*?</label>|<div class=\"card mb-3\">.*?</div>"
    r"|<strong>Actions</strong>|Validation Filter:",
    re.DOTALL,
)
_HOST = re.compile(r"""\b(href|src)=(["'])(?:https?:)?//[^"']*\2""")
_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 1.5rem; }
table { border-collapse: collapse; margin: .5rem 0 1rem; }
td, th { border: 1px solid #8886; padding: .3rem .6rem; text-align: left; vertical-align: top; }
ul { padding-left: 1.2rem; }
code, pre { white-space: pre-wrap; overflow-wrap: anywhere; }
.fa-check-circle::before { content: "\\2713 holds"; color: #18794e; }
.fa-times::before, .fa-times-circle::before { content: "\\2717 broken"; color: #c62a2f; }
.fa-exclamation-triangle::before { content: "\\26A0 crashed"; color: #ad5700; }
td a { white-space: nowrap; }
.ge-index-page-generated-by, .ge-breadcrumbs { list-style: none; padding: 0; }
"""


def make_standalone(site: Path) -> None:
    """Rewrite every page of a site in place, and remove what only scripts and styles used."""
    for page in site.rglob("*.html"):
        page.write_text(standalone(page.read_text(encoding="utf-8")), encoding="utf-8")
    for path in sorted((site / "static").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


def standalone(html: str) -> str:
    """A page without scripts and without resources of other hosts."""
    html = re.sub(r"<script\b.*?</script>", _with_table, html, flags=re.DOTALL)
    html = _HOST.sub("", _OUT.sub("", html))
    return html.replace("</head>", f"<style>{_STYLE}</style>\n</head>", 1)


def _with_table(script: re.Match[str]) -> str:
    """Replace a script that draws a table by the table."""
    found = _TABLE.search(script[0])
    if found is None:
        return ""
    columns, rows = (ast.literal_eval(part) for part in found.groups())
    return "\n".join(_table(columns, rows))


def _table(columns: list[dict[str, Any]], rows: list[dict[str, Any]]) -> Iterator[str]:
    shown = [column for column in columns if column.get("visible", True) not in (False, "false")]
    heads = "".join(f"<th>{escape(str(column['title']))}</th>" for column in shown)
    yield f"<table><thead><tr>{heads}<th></th></tr></thead><tbody>"
    for row in rows:
        # The cells are HTML that Great Expectations has made and escaped.
        cells = "".join(f"<td>{row.get(column['field'], '')}</td>" for column in shown)
        link = escape(str(row.get("_table_row_link_path", "")), quote=True)
        yield f'<tr>{cells}<td><a href="{link}">open</a></td></tr>'
    yield "</tbody></table>"
