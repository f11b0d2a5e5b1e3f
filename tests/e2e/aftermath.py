"""What a whole Airflow and its ledger say after a test has failed: CI keeps nothing else of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.e2e.conftest import World

EVENTS = 40
LINES = 60
WORTH_READING = ("ERROR", "CRITICAL", "Executor reported", "Received executor event", "Traceback")
"""What lines of Airflow's log have in them that say why a task was tried again."""


def aftermath(world: World) -> str:
    """The newest events of the ledger, tries of the newest runs' tasks, lines of Airflow's log."""
    parts = (_events, _tries, _log_lines)
    return "\n".join(line for part in parts for line in _or_why_not(part, world))


def _or_why_not(part: Callable[[World], Iterable[str]], world: World) -> list[str]:
    """What is asked for, or why it is not there: the test may have broken any of it."""
    try:
        return list(part(world))
    except Exception as error:  # noqa: BLE001 - reported instead, beside the test's own failure
        return [f"{part.__name__}: {error!r}"]


def _events(world: World) -> Iterator[str]:
    for event in world.ledger.events()[-EVENTS:]:
        yield f"{event.at:%H:%M:%S} {event.plan_id} {event.kind} {event.actor}: {event.detail}"


def _tries(world: World) -> Iterator[str]:
    api = world.airflow.api
    for run in api.runs("reassign_partitions")[:3]:
        name = run["dag_run_id"]
        for task in api.task_instances("reassign_partitions", name):
            yield f"{name} {task['task_id']}: {task['state']}, try {task['try_number']}"


def _log_lines(world: World) -> list[str]:
    lines = world.airflow.log_file.read_text(errors="replace").splitlines()
    return [line for line in lines if any(part in line for part in WORTH_READING)][-LINES:]
