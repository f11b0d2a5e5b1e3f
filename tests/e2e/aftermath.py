"""What a whole Airflow and its ledger say after a test has failed: CI keeps nothing else of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import httpx

from rehome.errors import RehomeError

if TYPE_CHECKING:
    from tests.e2e.conftest import World

EVENTS = 40
LINES = 60
WORTH_READING = ("ERROR", "CRITICAL", "Executor reported", "Received executor event", "Traceback")
"""What lines of Airflow's log have in them that say why a task was tried again."""


def aftermath(world: World) -> str:
    """The newest events of the ledger, tries of the newest runs' tasks, lines of Airflow's log."""
    return "\n".join([*_events(world), *_tries(world), *_log_lines(world)])


def _events(world: World) -> Iterator[str]:
    try:
        events = world.ledger.events()[-EVENTS:]
    except RehomeError as error:
        yield f"The ledger does not answer: {error}"
        return
    for event in events:
        yield f"{event.at:%H:%M:%S} {event.plan_id} {event.kind} {event.actor}: {event.detail}"


def _tries(world: World) -> Iterator[str]:
    api = world.airflow.api
    try:
        for run in api.runs("reassign_partitions")[:3]:
            name = run["dag_run_id"]
            for task in api.task_instances("reassign_partitions", name):
                yield f"{name} {task['task_id']}: {task['state']}, try {task['try_number']}"
    except httpx.HTTPError as error:
        yield f"Airflow's API does not answer: {error!r}"


def _log_lines(world: World) -> list[str]:
    text = world.airflow.log_file.read_text(errors="replace")
    return [line for line in text.splitlines() if any(part in line for part in WORTH_READING)][
        -LINES:
    ]
