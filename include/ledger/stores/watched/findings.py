"""Findings of watched clusters: opened, kept and closed by one snapshot after the other."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, RowMapping, func, select, update

from include.domain.run.event_kind import EventKind
from include.ledger.base.database import Database
from include.ledger.base.models import FINDINGS, WATCHED_CLUSTERS
from include.ledger.stores.events import write_event
from include.watching.finding import FindingRecord, Seen
from include.watching.kinds import FindingKind
from include.watching.open_and_close import follow
from include.watching.rules import WatchRules


@dataclass(frozen=True, slots=True)
class FollowedFindings:
    """What one snapshot has changed; ``open``: all that are open after it."""

    opened: tuple[FindingRecord, ...]
    closed: tuple[FindingRecord, ...]
    open: tuple[FindingRecord, ...]


class FindingStore(Database):
    """Findings, one row per cluster, kind and subject."""

    def follow_findings(
        self,
        cluster_id: str,
        taken_at: datetime,
        seen: Collection[Seen],
        rules: WatchRules,
        unknown: Collection[FindingKind | tuple[FindingKind, str]] = (),
        *,
        longest_gap: timedelta,
    ) -> FollowedFindings:
        """Take one more snapshot into account. A snapshot counts once, and never a late one.

        :param seen: all that it shows.
        :param unknown: kinds, or kinds and subjects, whose absence proves nothing: findings that
            it does not show stay as they are.
        :param longest_gap: see :func:`include.watching.open_and_close.follow`.
        """
        shown = {each.key: each for each in seen}
        opened: list[FindingRecord] = []
        closed: list[FindingRecord] = []
        still: list[FindingRecord] = []
        with self.writing() as connection:
            _record_judged(connection, cluster_id, taken_at)
            query = select(FINDINGS).where(FINDINGS.c.cluster_id == cluster_id)
            rows = [_record(row) for row in connection.execute(query).mappings()]
            before = {(row.kind, row.subject): row for row in rows}
            for key in sorted({*before, *shown}):
                old = before.get(key)
                new = old
                if key in shown or not (key[0] in unknown or key in unknown):
                    new = follow(old, shown.get(key), cluster_id, taken_at, rules, longest_gap)
                if new is None:
                    continue
                if new.open:
                    still.append(new)
                if new == old:
                    continue
                values = {**asdict(new), "facts": dict(new.facts)}
                if old is None:
                    connection.execute(FINDINGS.insert().values(**values))
                else:
                    place = (
                        (FINDINGS.c.cluster_id == cluster_id)
                        & (FINDINGS.c.kind == key[0])
                        & (FINDINGS.c.subject == key[1])
                    )
                    connection.execute(update(FINDINGS).where(place).values(**values))
                was = old is not None and old.open
                if new.open is not was:
                    (opened if new.open else closed).append(new)
                    write_event(
                        connection,
                        self._clock(),
                        EventKind.FINDING_OPENED if new.open else EventKind.FINDING_CLOSED,
                        f"{new.kind} {new.subject}".strip(),
                        cluster_id=cluster_id,
                    )
        return FollowedFindings(tuple(opened), tuple(closed), tuple(still))

    def open_findings(self, cluster_id: str) -> list[FindingRecord]:
        """Those that are open, the worst kind first."""
        query = select(FINDINGS).where(
            FINDINGS.c.cluster_id == cluster_id,
            FINDINGS.c.opened_at.is_not(None),
            FINDINGS.c.closed_at.is_(None),
        )
        with self.reading() as connection:
            found = [_record(row) for row in connection.execute(query).mappings()]
        kinds = list(FindingKind)
        return sorted(found, key=lambda each: (kinds.index(each.kind), each.subject))

    def watched_clusters(self) -> dict[str, datetime]:
        """When the newest snapshot was taken that each watched cluster was judged by."""
        query = select(WATCHED_CLUSTERS.c.cluster_id, WATCHED_CLUSTERS.c.judged_at)
        with self.reading() as connection:
            return {row.cluster_id: row.judged_at for row in connection.execute(query)}

    def count_open_findings(self) -> dict[str, int]:
        """How many findings are open on each watched cluster."""
        query = (
            select(FINDINGS.c.cluster_id, func.count().label("findings"))
            .where(FINDINGS.c.opened_at.is_not(None), FINDINGS.c.closed_at.is_(None))
            .group_by(FINDINGS.c.cluster_id)
        )
        counts = dict.fromkeys(self.watched_clusters(), 0)
        with self.reading() as connection:
            return counts | {row.cluster_id: row.findings for row in connection.execute(query)}


def _record_judged(connection: Connection, cluster_id: str, taken_at: datetime) -> None:
    """The newest counts; a late one changes nothing."""
    place = WATCHED_CLUSTERS.c.cluster_id == cluster_id
    before = connection.execute(select(WATCHED_CLUSTERS.c.judged_at).where(place)).scalar()
    if before is None:
        row = {"cluster_id": cluster_id, "judged_at": taken_at}
        connection.execute(WATCHED_CLUSTERS.insert().values(row))
    elif taken_at > before:
        connection.execute(update(WATCHED_CLUSTERS).where(place).values(judged_at=taken_at))


def _record(row: RowMapping) -> FindingRecord:
    return FindingRecord(**{**row, "kind": FindingKind(row["kind"])})
