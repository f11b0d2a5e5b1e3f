"""Plans of the clusters that most people have, against the best plans: `make bench-people`.

The best plans of clusters with up to 800 replicas are data, benchmarks/results/people_optima.json;
``--exact`` computes them anew, in about an hour. For larger clusters there are bounds. Writes
benchmarks/results/people.json, a table in docs/benchmarks.md and a picture of each plan.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks import document
from benchmarks.people.contact_sheet import draw
from benchmarks.people.judged_plans import CHOOSES, Planned, goal_of, planned
from benchmarks.people.optimum import Optimum, optimum
from benchmarks.people_clusters import People, cases, people
from benchmarks.planning.plan import where_and_when

RESULTS = Path(__file__).parents[1] / "results" / "people.json"
OPTIMA = RESULTS.with_name("people_optima.json")
EXACT_UP_TO, SECONDS = 800, 60.0
"""Replicas up to which the best plan is asked for, and how long for each of three questions."""

FOUND = 1.05
"""A plan of the solver counts as the best one up to so many times what no plan undercuts."""

COLUMNS = {
    "cluster": "case",
    "replicas": "replicas",
    "GB copied": "gb",
    "over the best": "bytes_over",
    "over the bound": "bytes_over_bound",
    "moves": "moves",
    "fewest": "fewest_moves",
    "beyond bands, %": "worst_percent",
    "CPU s": "cpu_s",
    "rules broken": "broken",
}


def row(made: Planned, best: Optimum | None) -> dict[str, Any]:
    """One plan, judged."""
    case, goal = made.case, goal_of(made.case)
    copied, moves = goal.copied(made.rows)
    bound = max(made.outcome.lower_bound_bytes, best.bytes_bound if best else 0)
    found = best if best and best.bytes and best.bytes <= FOUND * bound else None
    chooses = case.action in CHOOSES
    return {
        "case": case.name,
        "action": case.action.value,
        "replicas": made.rows.size,
        "gb": round(copied / 1e9, 1),
        "bytes_over": round(copied / found.bytes, 3) if found and found.bytes else None,
        "bytes_over_bound": round(copied / bound, 3) if bound else None,
        "moves": moves,
        "fewest_moves": found.moves if found else None,
        "worst_percent": round(100 * float(goal.excess(made.rows).max()), 3) if chooses else None,
        "cpu_s": round(made.cpu_s, 2),
        "broken": ", ".join(goal.broken(made.rows)) if chooses else "",
        "notes": dict(Counter(note.obstacle.value for note in made.outcome.infeasible)),
    }


def summary(rows: list[dict[str, Any]]) -> str:
    """Both ratios, on average and at most."""
    bytes_over = [one["bytes_over"] for one in rows if one["bytes_over"]]
    moves_over = [one["moves"] / one["fewest_moves"] for one in rows if one["fewest_moves"]]
    return (
        f"Bytes over the best: {mean(bytes_over):.3f} on average, {max(bytes_over):.3f} at most. "
        f"Moves over the fewest: {mean(moves_over):.2f} on average, {max(moves_over):.2f} at most."
    )


def exact(case: People) -> Optimum:
    """The best plan of a case; the planner's own shows which excess can be reached."""
    goal = goal_of(case)
    return optimum(goal, SECONDS, reached=float(goal.excess(planned(case).rows).sum()))


def has_optimum(case: People) -> bool:
    """Whether the best plan of a case is asked for."""
    return case.action in CHOOSES and people(case).rows.size <= EXACT_UP_TO


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--exact", action="store_true", help="compute the best plans anew")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.exact:
        optima = [{"name": case.name, **exact(case).row()} for case in cases() if has_optimum(case)]
        OPTIMA.write_text(json.dumps(optima, indent=1) + "\n")
    best = {one.pop("name"): Optimum(**one) for one in json.loads(OPTIMA.read_text())}
    plans = [planned(case) for case in cases()]
    rows = [row(made, best.get(made.case.name)) for made in plans]
    options.out.write_text(json.dumps({**where_and_when(), "plans": rows}, indent=1) + "\n")
    lines = [*document.table(COLUMNS, rows), "", summary(rows)]
    print(*lines, sep="\n")
    if options.out == RESULTS:
        document.put(document.DOCS / "benchmarks.md", "bench-people", lines)
        draw(zip(plans, rows, strict=True))


if __name__ == "__main__":
    main()
