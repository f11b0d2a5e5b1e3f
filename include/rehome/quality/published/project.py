"""Write the gate results of a plan in the places that users of Great Expectations expect.

- ``<plan>/data_docs``: Data Docs of the plan's suites, results and failing rows. Access to them
   is that to the plan, and they are removed with it.
- ``<warehouse>/quality/gx``: a project for ``gx.get_context(mode="file", …)``, with data source,
   suites, validation definitions, checkpoints, and the results of the newest plans.

Jobs never write the same file, except definitions, which are identical bytes in all jobs. No gate
reads what is written here.
"""

from __future__ import annotations

import ast
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

from rehome.directory import Directory
from rehome.domain.resources import OPTIONAL
from rehome.quality.engine.context import checkpoint_of, quiet, suite_of
from rehome.quality.engine.expectation_results import ExpectationResult, row_text
from rehome.quality.engine.results import GateResult, Validation
from rehome.quality.engine.rules import Rule, about_resource, at_level, every_rule, suites

if TYPE_CHECKING:
    from great_expectations.data_context import AbstractDataContext


SITE = "data_docs"
"""The folder with Data Docs inside a plan's directory; entry page ``index.html``."""

RUNS_KEPT = 50
"""How many plans' results stay in the project."""

_RESULTS = "gx/uncommitted/validations"
_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_MARK = "definitions.sha256"
_STORE_ID = ".ge_store_backend_id"

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


@dataclass(frozen=True)
class Run:
    """One plan's pass through the gates.

    :param name: the plan's id.
    :param at: time of the gates.
    """

    name: str
    at: datetime


def publish(run: Run, results: Iterable[GateResult], plan_uri: str, project_uri: str = "") -> None:
    """Write the Data Docs of a plan, and its results to the project.

    :param project_uri: ``<warehouse>/quality``; "" = Data Docs alone.
    """
    validations = [item for result in results for item in result.validations]
    with tempfile.TemporaryDirectory(prefix="rehome-gx-") as scratch:
        context, root = _context(Path(scratch))
        keys = [_store(context, run, item) for item in validations]
        if project_uri:
            results_of_run = _files_of(root / _RESULTS)
            results_of_run.pop(_STORE_ID, None)  # it is one of the definitions
            put(results_of_run, f"{project_uri}/{_RESULTS}")
            keep_newest(project_uri, f"{_RESULTS}/*/*/*", RUNS_KEPT)
        for key, item in zip(keys, validations, strict=True):
            _tell(context, key, item)
        context.build_data_docs()
        site = root / "gx/uncommitted/data_docs/local_site"
        _make_standalone(site)
        put(_files_of(site), f"{plan_uri}/{SITE}")
    if project_uri:
        _define(project_uri)


def _context(root: Path) -> tuple[AbstractDataContext, Path]:
    import great_expectations as gx

    context = gx.get_context(mode="file", project_root_dir=root)
    context.variables.progress_bars = {"globally": False}
    return context, root


def _store(context: AbstractDataContext, run: Run, validation: Validation) -> Any:
    """Add a suite and its result; returns the result's key."""
    from great_expectations.core.run_identifier import RunIdentifier
    from great_expectations.data_context.types.resource_identifiers import (
        ExpectationSuiteIdentifier,
        ValidationResultIdentifier,
    )

    context.suites.add(suite_of(validation.suite, validation.rules))
    run_id = RunIdentifier(run_name=run.name, run_time=run.at)
    suite = ExpectationSuiteIdentifier(name=validation.suite)
    result = validation.result
    result.meta |= {"run_id": run_id, "validation_time": run.at}
    key = ValidationResultIdentifier(suite, run_id, result.batch_id)
    context.validation_results_store.store_validation_results(result, key, suite)
    return key


def _tell(context: AbstractDataContext, key: Any, validation: Validation) -> None:
    """Make a result readable: rule names, remedies, and offending rows by their keys. By default
    Data Docs show values of one column only.
    """
    result = validation.result
    rule_of_each = [rule for rule in validation.rules for _ in rule.expectations]
    for rule, item in zip(rule_of_each, result.results, strict=True):
        judged = ExpectationResult.of(item.to_json_dict())
        todo = "" if judged.holds else f" Remedy: {rule.remedy}"
        item.expectation_config.description = f"{rule.name}.{todo}"
        if judged.rows:
            item.result = {
                # An SQL query does not report the total number of rows.
                "unexpected_count": 0,
                **item.result,
                "partial_unexpected_counts": [],
                # Great Expectations does not escape these texts.
                "partial_unexpected_list": [escape(row_text(rule, row)) for row in judged.rows],
            }
    context.validation_results_store.store_validation_results(
        result, key, key.expectation_suite_identifier
    )


def _define(project_uri: str) -> None:
    """Write the project's definitions, unless this version is there already."""
    from great_expectations import __version__

    text = "".join([*(path.read_text(encoding="utf-8") for path in suites()), *OPTIONAL])
    mark = sha256(f"{__version__} {text}".encode()).hexdigest()
    project = Directory(project_uri)
    if project.exists(_MARK) and project.read_text(_MARK) == mark:
        return
    put({**definitions(), _MARK: mark.encode()}, project_uri)


@cache
def definitions() -> Mapping[str, bytes]:
    """The project's files by path; built once per process, which takes seconds."""
    with tempfile.TemporaryDirectory(prefix="rehome-gx-") as scratch:
        context, folder = _context(Path(scratch))
        quiet(context)
        for gate, table, rules in every_rule():
            checkpoint_of(context, gate, suite_of(f"{gate}.{table}", list(_filled_in(rules))))
        _settle(folder)
        return _files_of(folder)


def _filled_in(rules: Sequence[Rule]) -> Iterator[Rule]:
    """As they are defined: of the topmost level of racks, and of every optional resource."""
    for rule in rules:
        variants = [about_resource(at_level(rule, 1), resource) for resource in OPTIONAL]
        yield from dict.fromkeys(variants)


def _settle(folder: Path) -> None:
    """Replace ids by ids that depend only on the definitions: Great Expectations' own are random,
    so files of two jobs that write at the same time would not match.
    """
    texts = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix in (".json", ".yml", "")
    ]
    ids: dict[str, str] = {}

    def settle(match: re.Match[str]) -> str:
        number = str(len(ids))
        return ids.setdefault(match[0], str(uuid5(NAMESPACE_URL, f"rehome {number}")))

    for path in texts:
        path.write_text(_UUID.sub(settle, path.read_text(encoding="utf-8")), encoding="utf-8")


def _files_of(folder: Path) -> dict[str, bytes]:
    """Every file of a local folder, by its path below it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def put(files: Mapping[str, bytes], uri: str) -> None:
    """Write files below a URI in order: a reader that finds the last one finds all."""
    place = Directory(uri)
    fs, root = place.fs, place.path
    for path, content in files.items():
        target = f"{root}/{path}"
        fs.makedirs(target.rpartition("/")[0], exist_ok=True)
        fs.pipe_file(target, content)


def keep_newest(uri: str, pattern: str, most: int) -> None:
    """Remove folders below a URI, except those with the ``most`` newest names.

    :param pattern: of the folders; folders of one name are kept or removed together. The newest
        names are those with the greatest name among their subfolders.
    """
    place = Directory(uri)
    fs, root = place.fs, place.path
    newest: dict[str, str] = {}
    folders: dict[str, set[str]] = {}
    for path in fs.glob(f"{root}/{pattern}/*"):
        folder, _, inner = str(path).rstrip("/").rpartition("/")
        name = folder.rpartition("/")[2]
        newest[name] = max(newest.get(name, ""), inner)
        folders.setdefault(name, set()).add(folder)
    for name in sorted(newest, key=newest.__getitem__, reverse=True)[most:]:
        for folder in folders[name]:
            fs.rm(folder, recursive=True)


def _make_standalone(site: Path) -> None:
    """Rewrite every page of a site in place, and remove what only scripts and styles used.

    Great Expectations' pages load scripts, styles, fonts and pictures from seven other hosts, and
    draw the tables of the index by script. The rewritten pages do neither: they work in a sandbox,
    without Internet access, and do not reveal their readers to other hosts.
    """
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
    match = _TABLE.search(script[0])
    if match is None:
        return ""
    columns, rows = (ast.literal_eval(part) for part in match.groups())
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
