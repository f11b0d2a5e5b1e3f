"""What each number of the planner's search brings: `make bench-ablation ARGS=--numbers`.

Each number is halved and doubled, alone, and the clusters of a few of people's cases are planned
again. Of a number below 1 the double is at most 1; of one between 1 and 2, the part above 1 is
halved or doubled. Writes benchmarks/results/sensitivity.json and a table in docs/benchmarks.md.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import json
import pkgutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from types import ModuleType
from typing import Any

from benchmarks import document
from benchmarks.people.judged_plans import goal_of, planned
from benchmarks.people_clusters import People, cases
from benchmarks.planning.plan import where_and_when
from rehome.domain.array_types import Rows
from rehome.planning.effort.optional_parts import THOROUGH

RESULTS = Path(__file__).parents[1] / "results" / "sensitivity.json"
PACKAGES = ("effort", "expansion", "programs", "rebalance", "search")
CASES = (
    "5 + 1, rf 2",
    "nearly full",
    "many small topics, racks",
    "racks of 7",
    "60 brokers",
    "60 brokers, rates",
)
"""Small and middle ones, with racks, rates and full disks, that take little time."""

CASES_OF_PROGRAMS = "nearly full", "60 brokers, strict"
"""Cases that have programs, for their numbers."""

OTHERS = (
    "budget_curve",
    "lagrangian_bound",
    "move_reasons",
    "neighbourhood_mip",
    "target_costs",
)
"""Modules that decide nothing about usual plans."""

FACTORS = (0.5, 2.0)
COLUMNS = {
    "number": "number",
    "is": "value",
    "cases that differ": "differ",
    "bytes, half": "bytes_half",
    "double": "bytes_double",
    "moves, half": "moves_half",
    "double ": "moves_double",
    "CPU s, half": "cpu_s_half",
    "double  ": "cpu_s_double",
}


@dataclass(frozen=True)
class Number:
    """A number of a module: a constant, or a field of a constant that is a dataclass.

    :ivar field: "" = the constant itself.
    """

    module: ModuleType
    constant: str
    field: str

    @property
    def name(self) -> str:
        """Module and name, as in docs/benchmarks.md."""
        folder, file = self.module.__name__.split(".")[-2:]
        return ".".join(part for part in (f"{folder}/{file}", self.constant, self.field) if part)

    @property
    def value(self) -> Any:
        """As it is in the module now."""
        whole = getattr(self.module, self.constant)
        return getattr(whole, self.field) if self.field else whole

    @contextmanager
    def times(self, factor: float) -> Iterator[None]:
        """Scale it in all modules that use it."""
        old = getattr(self.module, self.constant)
        new = scaled(self.value, factor)
        if self.field:
            new = dataclasses.replace(old, **{self.field: new})
        users = [
            module
            for name, module in list(sys.modules.items())
            if name.startswith("rehome.planning") and getattr(module, self.constant, None) is old
        ]
        try:
            for module in users:
                setattr(module, self.constant, new)
            yield
        finally:
            for module in users:
                setattr(module, self.constant, old)


def scaled(value: Any, factor: float) -> Any:
    """A number, or each number of a tuple, times the factor."""
    if isinstance(value, tuple):
        return tuple(scaled(one, factor) for one in value)
    if isinstance(value, int):
        return max(1, round(value * factor))
    if 1 < value < 2:
        return 1 + (value - 1) * factor
    return min(value * factor, 1.0) if 0 <= value <= 1 else value * factor


def numbers() -> list[Number]:
    """All numbers of the packages that search."""
    found = []
    for package in PACKAGES:
        whole = importlib.import_module(f"rehome.planning.{package}")
        for info in pkgutil.iter_modules(whole.__path__):
            if info.name in OTHERS:
                continue
            module = importlib.import_module(f"{whole.__name__}.{info.name}")
            for name in _assigned(module):
                value = getattr(module, name)
                if value is THOROUGH:
                    continue  # the cases are planned fast
                if dataclasses.is_dataclass(value):
                    fields = [field.name for field in dataclasses.fields(value)]
                    found += [
                        Number(module, name, field)
                        for field in fields
                        if is_numeric(getattr(value, field))
                    ]
                elif is_numeric(value):
                    found.append(Number(module, name, ""))
    return found


def is_numeric(value: Any) -> bool:
    """Whether it is a number, or a tuple of numbers or of such tuples."""
    if isinstance(value, tuple):
        return bool(value) and all(is_numeric(one) for one in value)
    if isinstance(value, bool) or value == float("inf"):
        return False
    return isinstance(value, int | float)


def _assigned(module: ModuleType) -> list[str]:
    """Constants that a module itself assigns, apart from numbers of rows."""
    names: list[str] = []
    for node in ast.parse(Path(str(module.__file__)).read_text()).body:
        targets = node.targets if isinstance(node, ast.Assign) else ()
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            names += [part.id for part in parts if isinstance(part, ast.Name)]
    return [name for name in names if name.isupper() and not name.endswith("_ROW")]


@dataclass(frozen=True)
class Figures:
    """One plan."""

    rows: Rows
    bytes_copied: float
    moves: int
    cpu_s: float


def figures(chosen: Sequence[People]) -> list[Figures]:
    """Plans of the cases as the numbers are now."""
    found = []
    for case in chosen:
        made = planned(case, time.process_time)
        found.append(Figures(made.rows.copy(), *goal_of(case).copied(made.rows), made.cpu_s))
    return found


def compared(usual: Sequence[Figures], other: Sequence[Figures]) -> dict[str, Any]:
    """Ratios of other plans to the usual ones, and how many differ."""

    def ratio(which: str) -> float:
        pairs = [(getattr(o, which), getattr(u, which)) for o, u in zip(other, usual, strict=True)]
        return round(geometric_mean([max(o, 1e-3) / max(u, 1e-3) for o, u in pairs]), 4)

    return {
        "differ": sum((o.rows != u.rows).any() for o, u in zip(other, usual, strict=True)),
        "bytes": ratio("bytes_copied"),
        "moves": ratio("moves"),
        "cpu_s": round(sum(o.cpu_s for o in other) / sum(u.cpu_s for u in usual), 2),
    }


def measured(names: Sequence[str], of: Sequence[Number]) -> Iterator[dict[str, Any]]:
    """One row per number.

    :param names: of the cases.
    """
    chosen = [case for case in cases() if case.name in names]
    figures(chosen)  # what is only done once takes no time later
    usual = figures(chosen)
    for number in of:
        row: dict[str, Any] = {"number": number.name, "value": str(number.value), "differ": 0}
        for factor, which in zip(FACTORS, ("half", "double"), strict=True):
            with number.times(factor):
                found = compared(usual, figures(chosen))
            row["differ"] = max(row["differ"], int(found.pop("differ")))
            row |= {f"{key}_{which}": value for key, value in found.items()}
        yield row


def write(out: Path = RESULTS) -> None:
    """Measure all numbers, and write what was found after each: a run that was interrupted goes on
    where it was, unless the planner has changed.
    """
    commit = _git("log", "-1", "--format=%h", "--", "include/rehome/planning")
    planner = _git("rev-parse", "--short", "HEAD:include/rehome/planning")
    before = json.loads(out.read_text()) if out.exists() else {}
    rows = before["numbers"] if before.get("planner") == planner else []
    known = {row["number"] for row in rows}
    left = [number for number in numbers() if number.name not in known]
    of_programs = [number for number in left if number.name.startswith("programs/")]
    others = [number for number in left if number not in of_programs]
    for names, of in ((CASES, others), (CASES_OF_PROGRAMS, of_programs)):
        for row in measured(names, of) if of else ():
            rows.append(row)
            print(json.dumps(row), flush=True)
            of_code = {"commit": commit, "planner": planner}
            whole = {**where_and_when(), **of_code, "numbers": rows}
            out.write_text(json.dumps(whole, indent=1) + "\n")
    if out == RESULTS:
        put(json.loads(out.read_text()))


def _git(*arguments: str) -> str:
    found = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True)
    return found.stdout.strip()


def put(found: dict[str, Any]) -> None:
    """Write the table into docs/benchmarks.md."""
    left = len(numbers()) - len(found["numbers"])
    made = f"Made on {found['date'][:10]}, commit `{found['commit']}`; {left} numbers are left."
    lines = [made, "", *document.table(COLUMNS, found["numbers"])]
    document.put(document.DOCS / "benchmarks.md", "bench-ablation ARGS=--numbers", lines)


if __name__ == "__main__":
    write()
