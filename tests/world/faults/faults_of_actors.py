"""Faults put back that only later actors find: channels of alerts that falter, two
entries that are for one cluster, people who do not answer. See
:mod:`tests.world.mutants`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rehome.domain.clock import new_id
from tests.world.mutants import Mutant, Original, returns
from world import cases_of_actors as cases
from world.judge.violations import Kind

ALERTS = "rehome.ledger.stores.alerts"


def _named_anew(original: Original) -> Original:
    """What is sent again because nobody knows whether it came has another id."""

    def due(row: Any, alert: Any) -> Any:
        return replace(original(row, alert), message_id=new_id())

    return due


OF_ACTORS = (
    Mutant(
        "a channel that hangs holds a task as often as that sends something",
        "rehome.notifiers.delivery:_Waits.left_s",
        returns(60.0),
        frozenset({Kind.HELD_BY_CHANNEL}),
    ),
    Mutant(
        "an alert that its channel has not taken is not sent again",
        f"{ALERTS}:_left_over",
        returns(False),
        frozenset({Kind.ALERT_LOST}),
    ),
    Mutant(
        "an alert that is sent again has another id",
        f"{ALERTS}:_due",
        _named_anew,
        frozenset({Kind.ALERT_UNLIKE}),
    ),
    Mutant(
        "nobody notices that two entries are for one cluster",
        "rehome.clusters.binding:entries_for",
        returns([]),
        frozenset({Kind.TWO_ENTRIES}),
    ),
    Mutant(
        "a question outlives its window, and the next one waits for it",
        "rehome.operators.approval.approve:lapses_at",
        returns(None),
        frozenset({Kind.ASKS_PAST_WINDOW, Kind.WINDOW_BLOCKED}),
    ),
    Mutant(
        "no alert says that a question has lapsed",
        "rehome.notifiers.run_end:RehomeNotifier._was_idle",
        returns(True),
        frozenset({Kind.LAPSED_UNTOLD}),
    ),
)
OF_ACTORS_FOUND_BY = {
    "a channel that hangs holds a task as often as that sends something": cases.CHANNEL_HANGS,
    "an alert that its channel has not taken is not sent again": cases.CHANNEL_REFUSES,
    "an alert that is sent again has another id": cases.CHANNEL_NEVER,
    "nobody notices that two entries are for one cluster": cases.TWO_ENTRIES,
    "a question outlives its window, and the next one waits for it": cases.NO_ANSWERS,
    "no alert says that a question has lapsed": cases.NO_ANSWERS,
}
