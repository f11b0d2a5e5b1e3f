"""What runs have reached of all that Rehome can say, events, alerts, ends, waits; and what never.

What no seed reaches needs an actor, or is out of the simulator's world.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from rehome.alerts.kinds import AlertKind
from rehome.domain.run.causes.cause import CauseKind
from rehome.domain.run.causes.waits import WaitKind
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.states import MoveState, PlanState
from rehome.domain.run.watched.finding_kinds import FindingKind
from rehome.errors import RehomeError
from rehome.execution import decide
from rehome.ledger.base.records import SetBy, ThrottleState
from world.airflow.runs import DagRun
from world.airflow.shape import REASSIGN, graph_of
from world.airflow.states import TaskState
from world.rehome.by_hand import CLUSTER
from world.running.outside import EPOCH
from world.stage import Rehome, Stage

KINDS: Mapping[str, Iterable[str]] = {
    "event": EventKind,
    "alert": AlertKind,
    "plan": PlanState,
    "move": MoveState,
    "wait": WaitKind,
    "throttle": ThrottleState,
    "set by": SetBy,
    "cause of an end": CauseKind,
    "end of the plan job": ("planned", "invalid_request", "gate_refused", "expectation_crashed"),
    "finding": FindingKind,
    "task": graph_of(REASSIGN).order,
    "task's state": TaskState,
}
"""What is counted, and all that there is of it. Of errors that end a process, all is not known."""
ERROR = "error"
MOST_RUNS = 1000
Reached = Counter[tuple[str, str]]


def reached(stage: Stage) -> Reached:
    """What one run has come to, by kind and value."""
    found: Reached = Counter()
    for rehome in stage.rehomes.values():
        found.update(_of_ledger(rehome))
        found.update(_of_jobs(rehome))
        found.update(pair for run in rehome.airflow.runs for pair in _of_run(run))
        errors = (actor.error for actor in rehome.airflow.spawned if actor.error is not None)
        found.update((ERROR, _name(error)) for error in errors)
    for plan_id, record in stage.records.items():
        by = next(each.by for each in stage.started if each.plan.plan_id == plan_id)
        found["plan", record.state.value] += 1
        moves = stage.rehomes[by].installation.ledger().view(plan_id).moves
        found.update(("move", state.value) for state in moves.values())
    return found


def _name(error: BaseException) -> str:
    """Of the error that Airflow was told of in its own words."""
    cause = error.__cause__ or error.__context__
    return type(cause if isinstance(cause, RehomeError) else error).__name__


def _of_ledger(rehome: Rehome) -> Iterator[tuple[str, str]]:
    ledger = rehome.installation.ledger()
    yield from (("event", str(event.kind)) for event in ledger.events())
    yield from (("alert", alert.kind.value) for alert in ledger.alerts())
    for entry in ledger.throttles():
        yield "throttle", entry.state.value
        yield "set by", entry.set_by.value
    for ended in ledger.ended_runs(MOST_RUNS, EPOCH - timedelta(days=1)):
        yield "cause of an end", ended.cause.kind.value
    yield from (("finding", found.kind.value) for found in ledger.open_findings(CLUSTER))


def _of_jobs(rehome: Rehome) -> Iterator[tuple[str, str]]:
    """How the jobs have ended that plan, by what each has left: the job's exit codes go by that."""
    for uri, text in rehome.installation.warehouse.files.items():
        if uri.endswith("/failure.json"):
            yield "end of the plan job", json.loads(text)["kind"]
        elif uri.endswith("/gates.json"):
            yield "end of the plan job", "planned"


def _of_run(run: DagRun) -> Iterator[tuple[str, str]]:
    for task, state in run.states().items():
        if state is not TaskState.NONE:
            yield "task", task
        yield "task's state", state.value


@contextmanager
def waits_counted(into: Reached) -> Iterator[None]:
    """Count what moves wait for, at each decision."""
    original: Callable[..., Any] = decide._admission

    def admission(now_true: Any) -> Any:
        found = original(now_true)
        into.update(("wait", wait.kind.value) for wait in found.waits)
        return found

    decide._admission = admission
    try:
        yield
    finally:
        decide._admission = original


def as_json(found: Reached) -> dict[str, Any]:
    """How often each was reached, and what never."""
    shown: dict[str, dict[str, int]] = {}
    for (kind, value), number in sorted(found.items()):
        shown.setdefault(kind, {})[value] = number
    never = {
        kind: [str(each) for each in known if (kind, str(each)) not in found]
        for kind, known in KINDS.items()
    }
    return {"reached": shown, "never": {kind: left for kind, left in never.items() if left}}


def table(result: Mapping[str, Any]) -> str:
    """As docs/reliability.md has it."""
    lines = ["| | reached, and how often | never |", "|---|---|---|"]
    for kind, values in result["reached"].items():
        most = sorted(values.items(), key=lambda item: -item[1])
        seen = ", ".join(f"{name} {number:,}" for name, number in most)
        left = ", ".join(result["never"].get(kind, ()))
        lines.append(f"| {kind} | {seen} | {left or '–'} |")
    return "\n".join(lines) + "\n"
