"""What a day has brought, as typed facts: the result of ``make bench-day``."""

from __future__ import annotations

import enum
import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rehome.domain.run.states import PlanState
from rehome.domain.run.watched.finding_kinds import FindingKind, WatchPolicy
from rehome.watching.respond import NotNow

RESULT = Path(__file__).parents[3] / "benchmarks" / "results" / "day.json"


class Act(enum.StrEnum):
    """What happens to the cluster, and around it, in the order of the day."""

    RESTART = "restart"
    FLAPPING = "flapping"
    BROKER_DIES = "broker_dies"
    NEW_BROKER = "new_broker"
    DISK_FULL = "disk_full"
    EDITED_CONNECTION = "edited_connection"
    BROKEN_FILE = "broken_file"
    RACK_DIES = "rack_dies"
    SLOW_WEBHOOK = "slow_webhook"
    NO_ANSWER = "no_answer"


@dataclass(frozen=True, slots=True)
class Change:
    """A finding that has opened, or closed.

    :param snapshots: so many, since this began to happen, were judged until then.
    """

    kind: FindingKind
    subject: str
    at: str
    snapshots: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """An alert, as it was received."""

    kind: str
    severity: str
    subject: str
    text: str
    next_step: str
    message_id: str


@dataclass(frozen=True, slots=True)
class Started:
    """A run that was started for a finding, and what has come of it.

    :param outcome: of its plan; None = it has made none.
    """

    kind: FindingKind
    subject: str
    policy: WatchPolicy
    action: str
    dag: str
    at: str
    outcome: PlanState | None
    cause: str
    moves: int


@dataclass(frozen=True, slots=True)
class NotStarted:
    """Why nothing was started for a finding, where its policy says to."""

    kind: FindingKind
    subject: str
    why: NotNow
    text: str


@dataclass(slots=True)
class Happened:
    """One row: what was done, and everything that followed.

    :param facts: measured besides.
    """

    act: Act
    what: str
    at: str
    opened: list[Change] = field(default_factory=list)
    closed: list[Change] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    started: list[Started] = field(default_factory=list)
    not_started: list[NotStarted] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    def kinds_opened(self) -> set[tuple[FindingKind, str]]:
        """Kind and subject of each finding that has opened."""
        return {(each.kind, each.subject) for each in self.opened}

    def why_not(self) -> set[tuple[FindingKind, str, NotNow]]:
        """Kind, subject and reason of what was not started."""
        return {(each.kind, each.subject, each.why) for each in self.not_started}

    def alerts(self) -> list[str]:
        """Kinds of the alerts."""
        return [each.kind for each in self.told]


_OF_THIS_RUN = re.compile(rf"{tempfile.gettempdir()}/[\w/-]*?(?=node\d|clusters\.yaml)")


def saved(rows: Sequence[Happened], path: Path, **about: Any) -> None:
    """As JSON; the folders of this run's files are left out of what was said."""
    found = {**about, "rows": [asdict(row) for row in rows]}
    text = json.dumps(found, indent=1, ensure_ascii=False, default=_value)
    path.write_text(_OF_THIS_RUN.sub("/", text) + "\n")


def _value(each: enum.Enum) -> object:
    return each.value


def loaded(path: Path = RESULT) -> tuple[list[Happened], Mapping[str, Any]]:
    """The rows, and what else the file says."""
    found = json.loads(path.read_text())
    return [_row(each) for each in found.pop("rows")], found


def _row(found: Mapping[str, Any]) -> Happened:
    def change(each: Mapping[str, Any]) -> Change:
        return Change(**{**each, "kind": FindingKind(each["kind"])})

    def started(each: Mapping[str, Any]) -> Started:
        kind, policy = FindingKind(each["kind"]), WatchPolicy(each["policy"])
        outcome = each["outcome"] and PlanState(each["outcome"])
        return Started(**{**each, "kind": kind, "policy": policy, "outcome": outcome})

    def not_started(each: Mapping[str, Any]) -> NotStarted:
        return NotStarted(**{**each, "kind": FindingKind(each["kind"]), "why": NotNow(each["why"])})

    return Happened(
        Act(found["act"]),
        found["what"],
        found["at"],
        [change(each) for each in found["opened"]],
        [change(each) for each in found["closed"]],
        [Told(**each) for each in found["told"]],
        [started(each) for each in found["started"]],
        [not_started(each) for each in found["not_started"]],
        found["facts"],
    )
