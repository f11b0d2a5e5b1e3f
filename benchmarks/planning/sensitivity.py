"""What each number of the planner's search brings: `make bench-ablation ARGS=--numbers`.

Each number is halved and doubled, and clusters whose plans read it are planned again: the quickest
of each kind. Numbers that decide nothing together are not tried alone. Of a number below 1 the
double is at most 1; of one between 1 and 2, the part above 1 is halved or doubled. Writes
benchmarks/results/sensitivity.json and a table in docs/benchmarks.md. A run that was interrupted
goes on where it was, unless the planner has changed.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from benchmarks import document
from benchmarks.planning.number_cases import Made, NumberCase, number_cases
from benchmarks.planning.plan import where_and_when
from benchmarks.planning.search_numbers import Number, numbers, read_of

RESULTS = Path(__file__).parents[1] / "results" / "sensitivity.json"
FACTORS = (0.5, 2.0)
MOST_S = 3.0
"""Of the processor, for all cases of a number."""

TOGETHER = 8
"""Numbers that are scaled together at first: most decide nothing."""

SIZES_FROM = 500
"""Least number that may be a size of a cluster: it is tried on one between its half and double."""

COLUMNS = {
    "number": "number",
    "is": "value",
    "read by cases": "read_by",
    "tried on": "cases",
    "of these differ": "differ",
    "bytes, half": "bytes_half",
    "double": "bytes_double",
    "moves, half": "moves_half",
    "double ": "moves_double",
    "beyond bands, half": "excess_half",
    "double  ": "excess_double",
    "CPU s, half": "cpu_s_half",
    "double   ": "cpu_s_double",
    "commit": "commit",
}


@dataclass(frozen=True, eq=False)
class Usual:
    """A case planned with the numbers as they are.

    :ivar reads: names of numbers that its plan reads.
    """

    case: NumberCase
    made: Made
    reads: frozenset[str]


def usual_plan(case: NumberCase, of: Sequence[Number]) -> Usual:
    """Plan a case twice: the first time takes longer, and says what is read."""
    with read_of(of) as reads:
        case.made()
    return Usual(case, case.made(), frozenset(reads))


def chosen_of(number: Number, known: Sequence[Usual]) -> list[Usual]:
    """Cases whose plans read a number: the quickest of each kind, then the next ones, while they
    take little time. One of a size between its half and its double, if it may be one.
    """
    quickest = sorted(known, key=lambda usual: usual.made.cpu_s)
    quickest = [usual for usual in quickest if number.name in usual.reads]
    rounds: dict[str, int] = {}
    turns = []
    for usual in quickest:
        turns.append(rounds.get(usual.case.kind, 0))
        rounds[usual.case.kind] = turns[-1] + 1
    order = sorted(range(len(quickest)), key=lambda n: (turns[n], n))
    chosen = [usual for usual in quickest if _is_between(number.value, usual)][:1]
    for usual in (quickest[n] for n in order):
        took = sum(other.made.cpu_s for other in chosen)
        if usual not in chosen and (not chosen or took + usual.made.cpu_s <= MOST_S):
            chosen.append(usual)
    return chosen


def _is_between(value: Any, usual: Usual) -> bool:
    """Whether a number, if it is a size, decides about a cluster when it is halved or doubled."""
    size = usual.made.rows.size
    return isinstance(value, int) and value >= SIZES_FROM and value / 2 < size < value * 2


def compared(usual: Sequence[Made], other: Sequence[Made]) -> dict[str, Any]:
    """Ratios of other plans to the usual ones, and what more they leave beyond bands, in shares."""

    def ratio(which: str) -> float:
        pairs = [(getattr(o, which), getattr(u, which)) for o, u in zip(other, usual, strict=True)]
        return round(geometric_mean([max(o, 1e-3) / max(u, 1e-3) for o, u in pairs]), 4)

    excess = sum(o.excess for o in other) - sum(u.excess for u in usual)
    return {
        "bytes": ratio("bytes_copied"),
        "moves": ratio("moves"),
        "excess": round(excess, 6) + 0.0,
        "cpu_s": round(sum(o.cpu_s for o in other) / sum(u.cpu_s for u in usual), 2),
    }


def rows_of(some: Sequence[Number], known: Sequence[Usual]) -> Iterator[dict[str, Any]]:
    """The rows of numbers. Those that together decide nothing are not tried alone."""
    chosen = {number: chosen_of(number, known) for number in some}
    if len(some) == 1 and chosen[some[0]]:
        yield _alone(some[0], chosen[some[0]])
    elif any(_differ(some, chosen, factor) for factor in FACTORS):
        half = len(some) // 2
        yield from rows_of(some[:half], known)
        yield from rows_of(some[half:], known)
    else:
        for number in some:
            yield _row(number, chosen[number])


def _row(number: Number, chosen: Sequence[Usual]) -> dict[str, Any]:
    on = [usual.case.name for usual in chosen]
    value = str(number.value)
    return {"number": number.name, "value": value, "cases": len(on), "differ": 0, "on": on}


def _differ(
    some: Sequence[Number], chosen: Mapping[Number, Sequence[Usual]], factor: float
) -> bool:
    """Whether the plan of some case differs when all these numbers are scaled."""
    cases = {usual.case.name: usual for number in some for usual in chosen[number]}
    with ExitStack() as scaled:
        for number in some:
            scaled.enter_context(number.times(factor))
        return any(
            (usual.case.made().rows != usual.made.rows).any()
            for usual in sorted(cases.values(), key=lambda usual: usual.made.cpu_s)
        )


def _alone(number: Number, chosen: Sequence[Usual]) -> dict[str, Any]:
    row, differ = _row(number, chosen), set()
    for factor, which in zip(FACTORS, ("half", "double"), strict=True):
        with number.times(factor):
            others = [usual.case.made() for usual in chosen]
        row |= {
            f"{key}_{which}": value
            for key, value in compared([usual.made for usual in chosen], others).items()
        }
        differ |= {
            usual.case.name
            for usual, other in zip(chosen, others, strict=True)
            if (usual.made.rows != other.rows).any()
        }
    return row | {"differ": len(differ)}


def write(out: Path = RESULTS) -> None:
    """Measure all numbers, and write what was found after each."""
    planner = _git("rev-parse", "--short", "HEAD:include/rehome/planning")
    commit = _git("log", "-1", "--format=%h", "--", "include/rehome/planning")
    rows = _known(out, planner)
    left = [number for number in numbers() if "cases" not in rows.get(number.name, {})]
    known = [usual_plan(case, numbers()) for case in number_cases()] if left else []
    for number in left:
        read_by = sum(number.name in usual.reads for usual in known)
        rows[number.name] = {
            "number": number.name,
            "value": str(number.value),
            "read_by": f"{read_by} of {len(known)}",
        }
    for start in range(0, len(left), TOGETHER):
        for row in rows_of(left[start : start + TOGETHER], known):
            rows[row["number"]] |= row | {"commit": commit}
            print(json.dumps(row), flush=True)
            whole = {**where_and_when(), "commit": commit, "planner": planner}
            out.write_text(json.dumps({**whole, "numbers": list(rows.values())}, indent=1) + "\n")
    if out == RESULTS:
        put(json.loads(out.read_text()))


def _known(out: Path, planner: str) -> dict[str, dict[str, Any]]:
    before = json.loads(out.read_text()) if out.exists() else {}
    rows = before["numbers"] if before.get("planner") == planner else []
    return {row["number"]: row for row in rows}


def _git(*arguments: str) -> str:
    found = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True)
    return found.stdout.strip()


def put(found: Mapping[str, Any]) -> None:
    """Write the table into docs/benchmarks.md."""
    rows = found["numbers"]
    unread = sum(row["read_by"].startswith("0 ") for row in rows)
    left = sum("cases" not in row for row in rows)
    made = (
        f"Made on {found['date'][:10]}: {len(rows)} numbers. No plan reads {unread} of them; "
        f"{left} are not halved and doubled yet."
    )
    lines = [made, "", *document.table(COLUMNS, rows)]
    document.put(document.DOCS / "benchmarks.md", "bench-ablation ARGS=--numbers", lines)


if __name__ == "__main__":
    write()
