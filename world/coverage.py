"""What runs have reached of all that Rehome can say, events, alerts, ends, waits; and what never.

What no seed reaches needs an actor, or is out of the simulator's world.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from include.alerts.kinds import AlertKind
from include.domain.run.event_kind import EventKind
from include.domain.run.states import MoveState, PlanState
from include.execution import decide
from include.execution.admission.waits import WaitKind
from include.ledger.base.records import SetBy, ThrottleState
from world.rehome.airflow import DagRun, TaskState
from world.rehome.tasks import Task
from world.stage import Rehome, Stage

KINDS: Mapping[str, type[enum.StrEnum]] = {
    "event": EventKind,
    "alert": AlertKind,
    "plan": PlanState,
    "move": MoveState,
    "wait": WaitKind,
    "throttle": ThrottleState,
    "set by": SetBy,
    "task": Task,
    "task's state": TaskState,
}
"""What is counted, and all that there is of it. Of errors that end a process, all is not known."""
ERROR = "error"
Reached = Counter[tuple[str, str]]


def reached(stage: Stage) -> Reached:
    """What one run has come to, by kind and value."""
    found: Reached = Counter()
    for rehome in stage.rehomes.values():
        found.update(_of_ledger(rehome))
        found.update(pair for run in rehome.airflow.runs for pair in _of_run(run))
        errors = (type(actor.error).__name__ for actor in rehome.airflow.spawned if actor.error)
        found.update((ERROR, name) for name in errors)
    for plan_id, record in stage.records.items():
        by = next(each.by for each in stage.started if each.plan.plan_id == plan_id)
        found["plan", record.state.value] += 1
        moves = stage.rehomes[by].installation.ledger().view(plan_id).moves
        found.update(("move", state.value) for state in moves.values())
    return found


def _of_ledger(rehome: Rehome) -> Iterator[tuple[str, str]]:
    ledger = rehome.installation.ledger()
    yield from (("event", str(event.kind)) for event in ledger.events())
    yield from (("alert", alert.kind.value) for alert in ledger.alerts())
    for entry in ledger.throttles():
        yield "throttle", entry.state.value
        yield "set by", entry.set_by.value


def _of_run(run: DagRun) -> Iterator[tuple[str, str]]:
    for task, state in run.states.items():
        yield "task", task.value
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
        kind: [each.value for each in known if (kind, each.value) not in found]
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
