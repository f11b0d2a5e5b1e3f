"""Findings: a problem that one snapshot shows, and what the ledger keeps of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from rehome.domain.run.watched.finding_kinds import FindingKind

About = tuple[FindingKind, str, datetime]
"""A finding that has opened: kind, subject, and when."""
FindingKey = tuple[FindingKind, str]
"""A cluster has at most one finding per key at a time."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A problem that one snapshot shows.

    :param subject: ``broker 3``, ``broker 3 /data1``, ``leaders``; "" = the whole cluster.
    :param facts: numbers and names, as plain JSON types.
    """

    kind: FindingKind
    subject: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> FindingKey:
        """The key of a finding: a cluster has at most one per key at a time."""
        return self.kind, self.subject


@dataclass(frozen=True, slots=True)
class FindingRecord:
    """One row of the ledger's table of findings.

    :param first_seen_at: the first of the snapshots in a row that show it.
    :param judged_at: time of the last snapshot that was evaluated for it.
    :param seen, clean: number of snapshots in a row that show it; that do not show it.
    :param opened_at: None = it has not lasted long enough yet.
    :param closed_at: None = it is open, or was never.
    :param began: when it began, each time within a day, whether it then lasted or not.
    """

    cluster_id: str
    kind: FindingKind
    subject: str
    first_seen_at: datetime
    last_seen_at: datetime
    judged_at: datetime
    seen: int
    clean: int
    opened_at: datetime | None
    closed_at: datetime | None
    facts: Mapping[str, Any]
    began: tuple[datetime, ...] = ()

    @property
    def key(self) -> FindingKey:
        """What it is about; of it, one after the other may open."""
        return self.kind, self.subject

    @property
    def about(self) -> About:
        """One that has opened, among those that open for its subject one after the other."""
        assert self.opened_at is not None
        return self.kind, self.subject, self.opened_at

    @property
    def open(self) -> bool:
        """Whether it is open."""
        return self.opened_at is not None and self.closed_at is None


class FindingsAfter(Protocol):
    """The findings of a cluster after one more snapshot, by those before it."""

    def __call__(
        self,
        before: Mapping[FindingKey, FindingRecord],
        cluster_id: str,
        taken_at: datetime,
        latest: datetime,
        /,
    ) -> Mapping[FindingKey, FindingRecord]:
        """Every finding that is to be kept.

        :param latest: what is later is from the future.
        """
        ...
