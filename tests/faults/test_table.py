"""The table in docs/reliability.md is the matrix that is tested, and every case of it holds."""

from __future__ import annotations

from tests.faults.matrix import CASES, LEFT_OUT, QUICK
from tests.faults.table import BEGIN, DOCUMENT, END, FAILED, NOT_RUN, table, written


def test_the_document_has_exactly_the_cases_of_the_matrix_and_all_of_them_hold() -> None:
    cells = written(DOCUMENT.read_text())
    assert set(cells) == {*CASES, *LEFT_OUT}
    assert {case for case, cell in cells.items() if cell.startswith("–")} == set(LEFT_OUT)
    assert not {case.id for case, cell in cells.items() if cell in (FAILED, NOT_RUN, "")}


def test_what_is_written_can_be_read() -> None:
    outcomes = {case: case.id for case in CASES}
    cells = written(f"{BEGIN}\n{table(outcomes)}\n{END}")
    assert {case: cells[case] for case in CASES} == outcomes
    cells = written(f"{BEGIN}\n{table({})}\n{END}")
    assert {cells[case] for case in CASES} == {NOT_RUN}


def test_the_matrix_is_large_enough_and_its_quick_part_small() -> None:
    assert len(CASES) >= 50
    assert len(QUICK) <= 4
    assert set(CASES) > QUICK
    assert not {*CASES} & {*LEFT_OUT}
