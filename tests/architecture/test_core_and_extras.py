"""The core imports no extra, and extras import of the core what its seam names."""

from __future__ import annotations

import pytest

from benchmarks.code.house import (
    COMPOSITION,
    ROOMS_OF_EXTRAS,
    SEAM,
    extra_of,
    is_composition,
    is_seam,
    problem,
)
from tests.imports import imports_of
from tests.test_rooms import ALL, imported


def edges() -> list[tuple[str, str]]:
    """Each import of a module by another, also those in functions and for type checkers alone."""
    return [
        (name, other)
        for name, path in ALL.items()
        for other in set(imported(name, imports_of(path), ALL))
    ]


def test_the_core_imports_no_extra_and_extras_only_its_seam() -> None:
    found = {problem(*edge) for edge in edges()}
    assert sorted(found - {None}, key=str) == []


def test_every_room_of_the_seam_is_imported_by_an_extra() -> None:
    needed = {
        other for name, other in edges() if extra_of(name) is not None and extra_of(other) is None
    }
    unused = {
        room
        for room in SEAM
        if not any(f"{each}.".startswith(f"rehome.{room}.") for each in needed)
    }
    assert unused == set()


def test_every_room_of_the_tables_is_there() -> None:
    rooms = [*COMPOSITION, *SEAM, *(room for rooms in ROOMS_OF_EXTRAS.values() for room in rooms)]
    gone = [r for r in rooms if not any(f"{each}.".startswith(f"rehome.{r}.") for each in ALL)]
    assert gone == []


@pytest.mark.parametrize(
    ("module", "imports"),
    [
        ("rehome.account.account", "rehome.watching.respond"),
        ("rehome.operators.execute", "rehome.extras.airflow_metrics"),
        ("rehome.ledger.store", "rehome.load_history.rollup"),
        ("rehome.watching.respond", "rehome.execution.decide"),
        ("rehome.notifiers.delivery", "rehome.extras.composition"),
        ("rehome.alerting", "rehome.extras.composition"),
        ("rehome.ui.routes.plan", "rehome.ui.routes.explain"),
    ],
)
def test_an_import_that_breaks_the_seam_is_found(module: str, imports: str) -> None:
    assert problem(module, imports) is not None


def test_what_joins_both_may_import_both() -> None:
    assert is_composition("rehome.cli.main")
    assert extra_of("rehome.ui.routes.explain") == "explain"
    assert not is_composition("rehome.ui.routes.plan")
    assert is_seam("rehome.domain.run.watched.finding")
    assert problem("rehome.extras.composition", "rehome.notifiers.delivery") is None
