"""The table and the sentences that docs/benchmarks.md has of a benchmark of plans."""

from __future__ import annotations

import math
from statistics import mean, median
from typing import Any

from benchmarks import document

LARGEST_COLUMNS = {
    "policy": "policy",
    "replicas": "replicas",
    "read s": "read_s",
    "solve s": "solve_s",
    "CPU s": "cpu_s",
    "write s": "write_s",
    "total s": "total_s",
    "replica moves": "replica_moves",
    "bytes / bound": "moved_over_bound",
    "violations": "hard_violations",
    "peak GB": "peak_gb",
}
COLUMNS = {
    "case": "case",
    "policy": "policy",
    "replicas": "replicas",
    "solve s": "solve_s",
    "CPU s": "cpu_s",
    "total s": "total_s",
    "replica moves": "replica_moves",
    "bytes / bound": "moved_over_bound",
    "bytes / priced bound": "moved_over_priced_bound",
    "outside asked": "outside_asked",
    "worst off": "worst_off",
    "outside bands": "outside",
    "infeasible": "infeasible",
    "violations": "hard_violations",
    "peak MB": "peak_mb",
}


def table(results: list[dict[str, Any]]) -> list[str]:
    """The results as Markdown."""
    rows = [result | {"peak_mb": result["peak_rss_bytes"] >> 20} for result in results]
    return document.table(COLUMNS, rows)


def summary(results: list[dict[str, Any]]) -> list[str]:
    """Median, mean and growth of the strict cases, as sentences."""
    lines: list[str] = []
    growth: dict[int, float] = {}
    strict = [result for result in results if result.get("policy") == "strict"]
    for name in sorted({result["size"] for result in strict}):
        mine = [result for result in strict if result["size"] == name]
        solve, cpu = (median(r[key] for r in mine) for key in ("solve_s", "cpu_s"))
        over = mean(r["moved_over_bound"] for r in mine)
        lines.append(
            f"Strict, {name:,} replicas, {len(mine)} cases: median {solve:.1f} s "
            f"({cpu:.1f} s CPU), mean {over:.4f} times the bound."
        )
        growth |= {r["replicas"]: r["cpu_s"] for r in mine if r["case"] == "expansion"}
    if len(growth) > 1:
        small, large = min(growth), max(growth)
        exponent = math.log(growth[large] / growth[small]) / math.log(large / small)
        lines.append(
            f"Processor time of the strict expansion grows as size to the power of "
            f"{exponent:.2f} ({small:,} to {large:,} replicas)."
        )
    return lines


def write_document(results: list[dict[str, Any]]) -> None:
    """Put the table into the document, between its marks."""
    made = results[0]
    where = f"Made {made['date'][:10]} on {made['cores']} cores shared with other work."
    lines = [where, "", *table(results), "", *summary(results)]
    document.put(document.DOCS / "benchmarks.md", "bench-plan", lines)


def write_largest(results: list[dict[str, Any]]) -> None:
    """Put what one process takes for the largest clusters into the document."""
    rows = [result | {"peak_gb": round(result["peak_rss_bytes"] / 1e9, 1)} for result in results]
    where = f"Made {results[0]['date'][:10]} on {results[0]['cores']} cores shared with other work."
    lines = [where, "", *document.table(LARGEST_COLUMNS, rows)]
    document.put(document.DOCS / "benchmarks.md", "bench-plan ARGS=--largest", lines)
