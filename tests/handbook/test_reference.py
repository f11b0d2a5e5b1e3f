"""docs/reference is what the code says, and leaves nothing out."""

from __future__ import annotations

import enum
import re
from functools import cache

import pytest

from handbook.parameters import kind, parameters_page
from handbook.reference import REFERENCE, pages, settings_page
from handbook.sources import ROOT, dags, member_docs, param_docs
from rehome.alerts.catalog import CATALOG, CatalogEntry
from rehome.domain.run.findings import Severity
from rehome.settings import Settings

written = cache(pages)
"""Once, and not while tests are collected: every process of them would wait for it."""


@pytest.mark.slow
def test_each_page_is_there_and_no_other() -> None:
    assert {path.name for path in REFERENCE.glob("*.md")} == written().keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.name for path in REFERENCE.glob("*.md")))
def test_a_page_is_what_the_code_says(name: str) -> None:
    assert (REFERENCE / name).read_text() == written()[name], "run `make docs-reference`"


@pytest.mark.slow
def test_every_parameter_says_what_it_means() -> None:
    params = {
        (dag.dag_id, name): dag.params.get_param(name).description
        for dag in dags()
        for name in dag.params
    }
    assert len(params) > 40
    assert [where for where, text in params.items() if not text] == []


def test_every_parameter_and_setting_has_a_row() -> None:
    full = next(dag for dag in dags() if dag.dag_id == "reassign_partitions")
    rows, settings = parameters_page([full]), settings_page()
    assert [name for name in full.params if f"| `{name}` |" not in rows] == []
    assert [name for name in Settings.model_fields if f"| `{name}` |" not in settings] == []


def test_each_alert_that_is_sent_has_its_page_and_no_other_has() -> None:
    expected = {entry.runbook for entry in CATALOG if entry.sent}
    found = {f"docs/alerts/{path.name}" for path in (REFERENCE.parent / "alerts").glob("*.md")}
    assert found - {"docs/alerts/index.md"} == expected


def test_the_index_has_each_alert_that_is_sent_once_and_errors_are_urgent() -> None:
    text = (REFERENCE.parent / "alerts" / "index.md").read_text()
    rows = re.findall(r"^\| \[(\w+)\]\((\w+)\.md\) \|.*\| (.+) \|$", text, re.M)
    sent = {entry.kind.value: entry for entry in CATALOG if entry.sent}
    assert sorted(name for name, _, _ in rows) == sorted(sent)
    assert [name for name, file, _ in rows if file != name] == []
    errors = {name for name, entry in sent.items() if entry.severity is Severity.ERROR}
    assert {name for name, _, urgent in rows if urgent == "yes"} == errors


@pytest.mark.parametrize("entry", [entry for entry in CATALOG if entry.sent], ids=lambda e: e.kind)
def test_a_page_of_an_alert_says_what_it_means_what_to_check_and_what_to_do(
    entry: CatalogEntry,
) -> None:
    text = (ROOT / entry.runbook).read_text()
    assert text.startswith(f"# Alert: {entry.kind}\n")
    for part in ("**What it means.**", "## What to check", "## What to do"):
        assert part in text


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": ["null", "integer"], "minimum": 1}, "whole number, at least 1"),
        ({"type": "string", "enum": ["a", "b"]}, "`a`, `b`"),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "whole number or text"),
        ({"type": "array", "items": {"type": "integer"}}, "list of whole numbers"),
        ({"type": "number", "exclusiveMaximum": 1}, "number, less than 1"),
    ],
)
def test_a_schema_is_put_into_words(schema: dict[str, object], words: str) -> None:
    assert kind(schema) == words


class Reported(enum.StrEnum):
    ONE = "one"
    """The first, on
    two lines."""
    TWO = "two"
    """The second."""


class Undocumented(enum.StrEnum):
    ONE = "one"


def test_members_are_documented_by_their_docstrings() -> None:
    assert member_docs(Reported) == {"one": "The first, on two lines.", "two": "The second."}


def test_a_member_without_a_docstring_is_an_error() -> None:
    with pytest.raises(ValueError, match="no docstring below ONE"):
        member_docs(Undocumented)


def test_parameters_of_a_class_are_documented_on_one_line() -> None:
    class Subject:
        """What it is.

        :param first: on
            two lines.
        :param second: short.
        :raises ValueError: never.
        """

    assert param_docs(Subject) == {"first": "on two lines.", "second": "short."}
