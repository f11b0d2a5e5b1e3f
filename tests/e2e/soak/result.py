"""What a soak has found: as JSON, and as tables in docs/reliability.md."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from benchmarks.document import DOCS, put, table
from local.workload import ReadBack
from tests.e2e.runs import DAG
from tests.e2e.soak.drive import Drive
from tests.e2e.soak.ground import SHOWN, Ground
from tests.e2e.soak.judge import Facts, Finding, Growth, Memory, RunEnd
from tests.e2e.soak.samples import COMPONENTS, Sample, Sampler

ROOT = Path(__file__).parents[3]
RESULT = ROOT / "benchmarks" / "results" / "soak.json"
DOCUMENT, KEPT = DOCS / "reliability.md", DOCS / "howto" / "keep.md"
MB = 1e6
CAUSE_CHARACTERS = 200


@dataclass
class Soaked:
    """A soak that is over.

    :param wall_s: for which plans were begun, and samples taken.
    """

    facts: Facts
    wrong: list[Finding]
    read: ReadBack
    sampler: Sampler
    drive: Drive
    wall_s: float


def result_of(
    found: Soaked, ground: Ground, minutes: float, seed: int, commit: str
) -> dict[str, Any]:
    """Everything that is kept of it.

    :param commit: that the wheel was built of.
    """
    here = str(ground.warehouse.parent)
    return {
        "commit": commit,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": {
            "cores": os.cpu_count(),
            "memory_gb": round(psutil.virtual_memory().total / 1e9),
            "architecture": platform.machine(),
        },
        "seed": seed,
        "minutes": minutes,
        "versions": ground.installed.versions(*SHOWN),
        "cores_used": round(found.sampler.processor_s / found.wall_s, 2),
        "wrong": [asdict(each) for each in found.wrong],
        "messages": {
            "acknowledged": found.read.acknowledged,
            "read": found.read.read,
            "lost": found.read.lost,
            "consumed meanwhile": ground.traffic.consumed,
        },
        "settings": {
            "before": len(found.facts.settings_before),
            "after": len(found.facts.settings),
        },
        "actions": _actions(found, ground),
        "faults": dict(Counter(struck.fault.value for struck in found.drive.struck)),
        "runs": _runs(found.facts.runs),
        "plans": dict(Counter(found.facts.plans.values())),
        "memory": {
            each.component: _memory(each, found.sampler.samples) for each in found.facts.memory
        },
        "overdue": found.drive.overdue,
        "unanswered": found.drive.unanswered,
        "leases_that_had_to_run_out": found.drive.lapsing,
        "growth": _growth(found),
        "failed": [asdict(run) for run in found.facts.runs if run.state == "failed"],
        "causes": [
            f"{run} {task} {kind}: {text.replace(here, '')[:CAUSE_CHARACTERS]}"
            for run, task, kind, text in ground.ledger.causes()
            if kind != "verdict"
        ],
    }


def commit_now() -> str:
    """Of this checkout."""
    asked = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(
        asked, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


def _outcome(run: RunEnd, asked: Mapping[str, Any]) -> str:
    if run.state != "failed":
        return "dry run" if asked.get("dry_run") else "done"
    if run.refused:
        return f"refused: {run.kind}"
    return f"failed: {run.kind}"


def _actions(found: Soaked, ground: Ground) -> dict[str, dict[str, int]]:
    """By action: how many runs came to which end."""
    counted: dict[str, Counter[str]] = {}
    for run in found.facts.runs:
        asked = found.drive.asked.get(run.run_id)
        if run.dag_id == DAG and asked is not None:
            counted.setdefault(asked["action"], Counter())[_outcome(run, asked)] += 1
    return {action: dict(sorted(ends.items())) for action, ends in sorted(counted.items())}


def _runs(runs: tuple[RunEnd, ...]) -> dict[str, dict[str, int]]:
    counted: dict[str, Counter[str]] = {}
    for run in runs:
        counted.setdefault(run.dag_id, Counter())[run.state] += 1
    return {dag_id: dict(states) for dag_id, states in sorted(counted.items())}


def _memory(memory: Memory, samples: Sequence[Sample]) -> dict[str, Any]:
    """In MB: medians of both spans, with the tasks that ran too, and the least of each."""
    if not memory.first or not memory.last:
        return {}
    name, end = memory.component, samples[-1].at
    whole = [
        [each.whole[name] for each in samples if begin <= each.at / end * 12 < begin + 1.01]
        for begin in (6, 11)
    ]
    counts = [len(each.processes[name]) for each in samples if name in each.processes]
    return {
        "first_mb": round(median(memory.first) / MB, 1),
        "last_mb": round(median(memory.last) / MB, 1),
        "growth_percent": round(memory.growth * 100, 1),
        "least_first_mb": round(min(memory.first) / MB, 1),
        "least_last_mb": round(min(memory.last) / MB, 1),
        "with_tasks_first_mb": round(median(whole[0]) / MB, 1),
        "with_tasks_last_mb": round(median(whole[1]) / MB, 1),
        "processes": [min(counts), max(counts)],
    }


def growth_of(samples: Sequence[Sample]) -> tuple[Growth, ...]:
    """By how much ledger and warehouse grew over the second half. Before, PostgreSQL takes the
    first page of each table and index, and maps of free space: once, whatever is kept.
    """
    first, last = second_half(samples)
    stated = stated_bytes(last.counts["plans"] - first.counts["plans"])
    return tuple(
        Growth(data, last.sizes[data] - first.sizes[data], round(stated[data])) for data in stated
    )


def second_half(samples: Sequence[Sample]) -> tuple[Sample, Sample]:
    """The first and the last sample with sizes of the second half."""
    sized = [each for each in samples if each.sizes]
    later = (each for each in sized if each.at >= samples[-1].at / 2)
    return next(later, sized[-1]), sized[-1]


def counts_of(ground: Ground) -> dict[str, int]:
    """Of what leaves data: plans, their moves, and snapshots."""
    plans = ground.ledger.plans()
    return {
        "plans": len(plans),
        "moves": sum(plan.moves for plan in plans),
        "snapshots": ground.ledger.count("taken_snapshots"),
    }


def stated_bytes(plans: int) -> dict[str, float]:
    """What docs/howto/keep.md states that so many plans leave: by data."""
    kept = json.loads(RESULT.read_text())["growth"]
    return {data: plans * kept[data]["kb_a_plan"] * 1000 for data in ("ledger", "warehouse")}


def _growth(found: Soaked) -> dict[str, Any]:
    begin = next(each for each in found.sampler.samples if each.sizes)
    half, end = second_half(found.sampler.samples)
    later = {name: end.counts[name] - half.counts[name] for name in end.counts}
    return {
        "counts": dict(end.counts),
        "second_half": later,
        **{
            name: {
                "begin_mb": round(begin.sizes[name] / MB, 2),
                "half_mb": round(half.sizes[name] / MB, 2),
                "end_mb": round(end.sizes[name] / MB, 2),
                "half_growth_mb": round((end.sizes[name] - half.sizes[name]) / MB, 3),
                "kb_a_plan": _kb_a_plan(end.sizes[name] - half.sizes[name], later["plans"]),
            }
            for name in ("ledger", "warehouse", "airflow")
        },
    }


def _kb_a_plan(grown: int, plans: int) -> float | None:
    return round(grown / plans / 1000, 1) if plans else None


def lines_of(result: Mapping[str, Any]) -> list[str]:
    """Markdown, for the document."""
    machine, messages = result["machine"], result["messages"]
    ran = f"{result['minutes']:g} minutes, seed {result['seed']}"
    at = f"commit {result['commit']}, {result['date']}, {machine['cores']} cores"
    wrong = [f"- **{each['wrong']}**: {each['about']}" for each in result["wrong"]]
    actions = [
        {"action": f"`{action}`", "ends": ", ".join(f"{end} {n}" for end, n in ends.items())}
        for action, ends in result["actions"].items()
    ]
    faults = ", ".join(f"{name} {count}" for name, count in sorted(result["faults"].items()))
    return [
        f"The last run: {ran}; {at}, Airflow {result['versions']['apache-airflow']}; the soak used "
        f"{result['cores_used']} cores.",
        "",
        *(["Found wrong:", "", *wrong] if wrong else ["Nothing was found wrong."]),
        "",
        f"Messages: {messages['acknowledged']:,} acknowledged, {messages['lost']:,} lost. "
        f"Dynamic settings: {result['settings']['before']} before, {result['settings']['after']} "
        f"after. Faults that struck: {faults}.",
        "",
        *table({"action": "action", "how its runs ended": "ends"}, actions),
        "",
        *_memory_lines(result["memory"]),
        "",
        *_growth_lines(result["growth"]),
        "",
    ]


def _memory_lines(memory: Mapping[str, Any]) -> list[str]:
    rows = [{"component": name, **memory[name]} for name in COMPONENTS if memory.get(name)]
    columns = {
        "RSS": "component",
        "MB, first five minutes": "first_mb",
        "MB, last five minutes": "last_mb",
        "growth, %": "growth_percent",
        "least MB, first": "least_first_mb",
        "least MB, last": "least_last_mb",
        "with tasks that run, first": "with_tasks_first_mb",
        "with tasks that run, last": "with_tasks_last_mb",
    }
    return table(columns, rows)


def _growth_lines(of: Mapping[str, Any]) -> list[str]:
    rows = [{"what": name, **of[name]} for name in ("ledger", "warehouse", "airflow")]
    columns = {
        "data": "what",
        "MB in the beginning": "begin_mb",
        "MB half way": "half_mb",
        "MB in the end": "end_mb",
        "MB of the second half": "half_growth_mb",
        "kB for each plan of it": "kb_a_plan",
    }
    about = (
        f"{_counted(of['counts'])}; of these, in the second half: {_counted(of['second_half'])}."
    )
    return [about, "", *table(columns, rows)]


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


def kept_lines_of(result: Mapping[str, Any]) -> list[str]:
    """Markdown, for what says how long data are kept."""
    growth, half = result["growth"], result["growth"]["second_half"]
    moves = f"{half['moves'] / half['plans']:.1f}"
    warehouse, ledger = (f"{growth[data]['kb_a_plan']:.0f} kB" for data in ("warehouse", "ledger"))
    return [
        f"A plan of {moves} moves on average, carried out through Airflow, left {warehouse} in the "
        f"warehouse, and {ledger} in a ledger on PostgreSQL ({result['date']}).",
        "",
    ]


def write(result: Mapping[str, Any], path: Path) -> None:
    """The file, and from the committed one's place what documents have of it."""
    path.write_text(json.dumps(result, indent=1) + "\n")
    if path == RESULT:
        put(DOCUMENT, "soak", lines_of(result))
        put(KEPT, "soak", kept_lines_of(result))
