"""What a report shows, as plain data: it reads no ledger, no file and no cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rehome.account.account import PlanAccount, account_of
from rehome.account.evidence import PlanEvidence
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.progress import ProgressSample
from rehome.ledger.base.records import Event, MoveRecord, PlanRecord, Reassignment, ThrottleEntry


@dataclass(frozen=True, slots=True)
class ReportData:
    """A plan and what has become of it so far. Every stage may still be to come.

    :param written_at: when the report is made; aware UTC, like every time in it.
    :param evidence: what its account follows from.
    :param moves, reassignments, throttles, samples, events: rows, for tables and pictures.
    :param delivered: at each poll, what the busiest broker had copied per second since the last.
    """

    plan: Plan
    written_at: datetime
    evidence: PlanEvidence
    request: Mapping[str, Any] = field(default_factory=dict)
    moves: Mapping[TopicPartition, MoveRecord] = field(default_factory=dict)
    reassignments: tuple[Reassignment, ...] = ()
    throttles: tuple[ThrottleEntry, ...] = ()
    samples: tuple[ProgressSample, ...] = ()
    events: tuple[Event, ...] = ()
    delivered: tuple[tuple[datetime, float], ...] = ()
    account: PlanAccount = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "account", account_of(self.evidence, self.written_at))

    @property
    def record(self) -> PlanRecord:
        """The plan's row in the ledger."""
        return self.account.record

    @property
    def started(self) -> bool:
        """Whether anything may have been changed on the cluster."""
        return self.record.started_at is not None
