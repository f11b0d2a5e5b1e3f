"""Which numbers are halved and doubled and on what, and that nothing of it stays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.planning.number_cases import Made, NumberCase, number_cases
from benchmarks.planning.search_numbers import Number, numbers, read_of, scaled
from benchmarks.planning.sensitivity import Usual, chosen_of, compared, rows_of
from rehome.planning.effort import local_search_options
from rehome.planning.effort.rebalance_options import RebalanceOptions
from rehome.planning.programs import fewest_moves


def number(name: str) -> Number:
    return next(of for of in numbers() if of.name == name)


def case(name: str) -> NumberCase:
    return next(of for of in number_cases() if of.name == name)


def usual(name: str, kind: str, cpu_s: float, reads: Iterable[str], size: int = 1) -> Usual:
    made = Made(np.zeros((size, 1), np.int32), 0.0, 0, 0.0, cpu_s)
    return Usual(NumberCase(name, kind, case("4 + 1").make), made, frozenset(reads))


def test_constants_and_fields_of_options_are_found_once() -> None:
    names = [of.name for of in numbers()]
    assert len(names) == len(set(names))
    assert "programs/fewest_moves.FEWEST_MOVES.candidates" in names
    assert not [name for name in names if name.endswith("_ROW")]


def test_cases_have_names_of_their_own() -> None:
    names = [of.name for of in number_cases()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("value", "half", "double"),
    [(8, 4, 16), (1, 1, 2), (0.6, 0.3, 1.0), (1.1, 1.05, 1.2), ((0.1, 3), (0.05, 2), (0.2, 6))],
)
def test_a_number_stays_what_it_is_for(value: object, half: object, double: object) -> None:
    assert scaled(value, 0.5) == pytest.approx(half)
    assert scaled(value, 2.0) == pytest.approx(double)


def test_a_number_is_scaled_where_it_is_used_and_set_back() -> None:
    before = fewest_moves.FEWEST_MOVES
    with number("programs/fewest_moves.FEWEST_MOVES.candidates").times(2.0):
        assert fewest_moves.FEWEST_MOVES.candidates == 2 * before.candidates
    assert fewest_moves.FEWEST_MOVES is before


@pytest.mark.slow
def test_numbers_that_a_plan_reads_are_recorded() -> None:
    """Not those of what is not asked for."""
    with read_of(numbers()) as read:
        case("5 + 1, rf 2").made()
    assert "programs/fewest_moves.FEWEST_MOVES.candidates" in read
    assert "search/fill.FILL.picky" in read
    assert "rebalance/budget_cut.BUDGET_CUT.parts" not in read
    before = set(read)
    assert RebalanceOptions().small > 0
    case("6 + 3").made()
    assert read == before


def test_a_number_is_tried_on_the_quickest_cases_of_each_kind_that_read_it() -> None:
    of = number("search/topic_repair.TOPIC_REPAIR.rounds")
    known = [
        usual("slow", "one", 3.0, [of.name]),
        usual("middle", "one", 1.5, [of.name]),
        usual("quick", "one", 0.5, [of.name]),
        usual("reads another", "one", 0.1, ["another"]),
        usual("other", "two", 0.9, [of.name]),
    ]
    assert [found.case.name for found in chosen_of(of, known)] == ["quick", "other", "middle"]
    assert chosen_of(of, known[3:4]) == []
    assert [found.case.name for found in chosen_of(of, known[:1])] == ["slow"]


def test_a_size_is_tried_on_a_cluster_on_which_half_or_double_decides() -> None:
    of = number("rebalance/fixed_point.FIXED_POINT.up_to")
    assert of.value == 10_000
    known = [usual("small", "one", 0.1, [of.name], 999), usual("x", "one", 9.0, [of.name], 5_001)]
    assert [found.case.name for found in chosen_of(of, known)] == ["x"]
    assert [found.case.name for found in chosen_of(of, known[:1])] == ["small"]


@pytest.mark.slow
def test_plans_with_other_numbers_are_compared_with_the_usual_ones() -> None:
    """Without fewer copies in small clusters, more replicas move."""
    made = case("5 + 1, rf 2").made()
    assert made.moves > 0
    with number("programs/fewest_moves.FEWEST_MOVES.candidates").times(0.01):
        found = compared([made], [case("5 + 1, rf 2").made()])
    assert found["moves"] >= 1


@pytest.mark.slow
def test_numbers_that_decide_nothing_together_are_not_tried_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of four numbers one decides: it alone has figures, and two of the others are tried once."""
    names = ("quick_replicas", "partners", "window", "sample")
    some = [number(f"effort/local_search_options.LOCAL_SEARCH.{name}") for name in names]
    tried: list[tuple[int, ...]] = []

    def made(case: NumberCase) -> Made:
        now = local_search_options.LOCAL_SEARCH
        tried.append(tuple(getattr(now, name) for name in names))
        return replace(known[0].made, rows=np.full((1, 1), now.window))

    known = [usual("c", "one", 1.0, [of.name for of in some])]
    known = [replace(known[0], made=replace(known[0].made, rows=np.full((1, 1), 200)))]
    monkeypatch.setattr(NumberCase, "made", made)
    rows = {row["number"].split(".")[-1]: row for row in rows_of(some, known)}
    assert list(rows) == list(names)
    assert [name for name in names if rows[name]["differ"]] == ["window"]
    assert [name for name in names if "bytes_half" in rows[name]] == ["window", "sample"]
    assert tried[0] == (12, 4, 100, 64)
    assert (24, 4, 200, 128) not in tried


def test_a_number_that_no_case_reads_has_no_figures() -> None:
    (row,) = rows_of([number("programs/fewest_moves.FEWEST_MOVES.candidates")], [])
    assert row["cases"] == row["differ"] == 0
    assert "bytes_half" not in row
