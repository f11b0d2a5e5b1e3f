"""Write the gate results of a plan in the places that users of Great Expectations expect.

- ``<plan>/data_docs``: Data Docs of the plan's suites, results and failing rows. Access to them
   is that to the plan, and they are removed with it.
- ``<warehouse>/quality/gx``: a project for ``gx.get_context(mode="file", …)``, with data source,
   suites, validation definitions, checkpoints, and the results of the newest plans.

Jobs never write the same file, except definitions, which are identical bytes in all jobs. No gate
reads what is written here.
"""

from __future__ import annotations

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
from rehome.quality.published.standalone import make_standalone
from rehome.quality.published.tree import files_of, keep_newest, put

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
            results_of_run = files_of(root / _RESULTS)
            results_of_run.pop(_STORE_ID, None)  # it is one of the definitions
            put(results_of_run, f"{project_uri}/{_RESULTS}")
            keep_newest(project_uri, f"{_RESULTS}/*/*/*", RUNS_KEPT)
        for key, item in zip(keys, validations, strict=True):
            _tell(context, key, item)
        context.build_data_docs()
        site = root / "gx/uncommitted/data_docs/local_site"
        make_standalone(site)
        put(files_of(site), f"{plan_uri}/{SITE}")
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
    asked = [rule for rule in validation.rules for _ in rule.expectations]
    for rule, item in zip(asked, result.results, strict=True):
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
        return files_of(folder)


def _filled_in(rules: Sequence[Rule]) -> Iterator[Rule]:
    """As they are defined: of the topmost level of racks, and of every optional resource."""
    for rule in rules:
        found = [about_resource(at_level(rule, 1), resource) for resource in OPTIONAL]
        yield from dict.fromkeys(found)


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

    def settle(found: re.Match[str]) -> str:
        number = str(len(ids))
        return ids.setdefault(found[0], str(uuid5(NAMESPACE_URL, f"rehome {number}")))

    for path in texts:
        path.write_text(_UUID.sub(settle, path.read_text(encoding="utf-8")), encoding="utf-8")
