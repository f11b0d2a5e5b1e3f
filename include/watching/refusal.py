"""Plans that were refused before anything was changed, and when one is made again. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

FIRST_WAIT = timedelta(minutes=30)
LONGEST_WAIT = timedelta(days=1)


class RefusedBy(enum.StrEnum):
    """What has refused a plan. The first three are kinds of the plan job's ``failure.json``."""

    PLANNER = "invalid_request"
    GATE = "gate_refused"
    CRASHED_GATE = "expectation_crashed"
    DRY_RUN = "dry_run"
    BROKER_AWAY = "broker_away"  # the run's own snapshot: a broker of it may be restarting
    CRASH = "crash"  # nothing: the run has failed before it made a plan, and is tried again alike
    OF_PAUSED = "dry_run_of_paused"  # what it has left of a paused plan, which stays paused


BY_SNAPSHOT = frozenset({RefusedBy.PLANNER, RefusedBy.GATE})
"""What mostly goes by the snapshot and the settings alone: of the same, it refuses the same again.
A dry run asks the brokers, and a check that crashed says nothing about the data.
"""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a run that watching has started made no plan that could be carried out.

    :param reasons: a sentence each.
    :param layout: digest of the snapshot that the plan was made on, and of the brokers on which it
        was to place nothing; "" = the next snapshot may be
        accepted even if it shows the same.
    :param settings: digest of what watching went by; "" = that is not known.
    """

    by: RefusedBy
    reasons: tuple[str, ...]
    layout: str
    settings: str

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types, for the ledger."""
        return {**asdict(self), "by": self.by.value, "reasons": list(self.reasons)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Refusal:
        """The inverse of :meth:`to_json`."""
        by, reasons = RefusedBy(content["by"]), tuple(content["reasons"])
        return cls(by, reasons, content["layout"], content["settings"])


def wait(in_a_row: int) -> timedelta:
    """From the end of the last of so many refusals in a row until the next attempt."""
    doubled: int = 2 ** min(in_a_row - 1, 10)
    return min(FIRST_WAIT * doubled, LONGEST_WAIT)


@dataclass(frozen=True, slots=True)
class RefusedRun:
    """The newest run for a finding was refused.

    :param in_a_row: how many were, with this one.
    """

    refusal: Refusal
    ended_at: datetime
    in_a_row: int

    @property
    def again_at(self) -> datetime:
        """Before this time, the run is not started again, whatever changes on the cluster."""
        return self.ended_at + wait(self.in_a_row)

    @property
    def until_changed(self) -> bool:
        """Whether the same snapshot would be refused in any case."""
        return self.refusal.by in BY_SNAPSHOT and self.refusal.layout != ""

    def holds(self, layout: str, settings: str, now: datetime) -> bool:
        """Whether the run is not to be started again now.

        :param layout: digest of the newest snapshot; ``settings``: of what watching goes by.
        """
        if self.refusal.settings and settings != self.refusal.settings:
            return False
        return now < self.again_at or (self.until_changed and layout == self.refusal.layout)
