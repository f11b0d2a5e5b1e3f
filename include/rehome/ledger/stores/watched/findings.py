"""Findings of watched clusters: opened, kept and closed by one snapshot after the other."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Connection, RowMapping, bindparam, insert, select, update

from rehome.domain.clock import CLOCKS_DIFFER
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.watched.finding import FindingRecord, FindingsAfter
from rehome.domain.run.watched.finding_kinds import FindingKind
from rehome.ledger.base.database import Database
from rehome.ledger.base.models import FINDINGS, WATCHED_CLUSTERS
from rehome.ledger.stores.events import write_event

_OF_CLUSTER = select(FINDINGS).where(FINDINGS.c.cluster_id == bindparam("of"))
_OPEN = _OF_CLUSTER.where(FINDINGS.c.opened_at.is_not(None), FINDINGS.c.closed_at.is_(None))
_NEW = insert(FINDINGS)
_CHANGE = update(FINDINGS).where(
    FINDINGS.c.cluster_id == bindparam("of"),
    FINDINGS.c.kind == bindparam("of_kind"),
    FINDINGS.c.subject == bindparam("about"),
)
_JUDGED_AT = select(WATCHED_CLUSTERS.c.judged_at).where(
    WATCHED_CLUSTERS.c.cluster_id == bindparam("of")
)
_JUDGED_FIRST = insert(WATCHED_CLUSTERS)
_JUDGED = update(WATCHED_CLUSTERS).where(WATCHED_CLUSTERS.c.cluster_id == bindparam("of"))


@dataclass(frozen=True, slots=True)
class FollowedFindings:
    """What one snapshot has changed; ``open``: all that are open after it."""

    opened: tuple[FindingRecord, ...]
    closed: tuple[FindingRecord, ...]
    open: tuple[FindingRecord, ...]


class FindingStore(Database):
    """Findings, one row per cluster, kind and subject."""

    def follow_findings(
        self, cluster_id: str, taken_at: datetime, findings_after: FindingsAfter
    ) -> FollowedFindings:
        """Take one more snapshot into account. A snapshot counts once, and never a late one.

        :param findings_after: what the snapshot makes of the findings before it.
        """
        latest = self._clock() + CLOCKS_DIFFER
        opened: list[FindingRecord] = []
        closed: list[FindingRecord] = []
        still: list[FindingRecord] = []
        with self.writing() as connection:
            _record_judged(connection, cluster_id, taken_at, latest)
            cursor = connection.execute(_OF_CLUSTER, {"of": cluster_id}).mappings()
            rows = [_record(row) for row in cursor]
            was = {(row.kind, row.subject): row for row in rows}
            after = findings_after(was, cluster_id, taken_at, latest)
            for key, new in after.items():
                old = was.get(key)
                if new.open:
                    still.append(new)
                if new == old:
                    continue
                _write(connection, new, is_known=old is not None)
                was_open = old is not None and old.open
                if new.open is not was_open:
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
        with self.reading() as connection:
            rows = connection.execute(_OPEN, {"of": cluster_id}).mappings()
            findings = [_record(row) for row in rows]
        kinds = list(FindingKind)
        return sorted(findings, key=lambda each: (kinds.index(each.kind), each.subject))

    def watched_clusters(self) -> dict[str, datetime]:
        """When the newest snapshot was taken that each watched cluster was judged by."""
        query = select(WATCHED_CLUSTERS.c.cluster_id, WATCHED_CLUSTERS.c.judged_at)
        with self.reading() as connection:
            return {row.cluster_id: row.judged_at for row in connection.execute(query)}


def _record_judged(
    connection: Connection, cluster_id: str, taken_at: datetime, latest: datetime
) -> None:
    """The newest counts; a late one changes nothing. One from the future gives way.

    :param latest: what is later is from the future.
    """
    before = connection.execute(_JUDGED_AT, {"of": cluster_id}).scalar()
    if before is None:
        connection.execute(_JUDGED_FIRST, {"cluster_id": cluster_id, "judged_at": taken_at})
    elif taken_at > before or taken_at <= latest < before:
        connection.execute(_JUDGED, {"of": cluster_id, "judged_at": taken_at})


def _write(connection: Connection, finding: FindingRecord, *, is_known: bool) -> None:
    began = [at.isoformat() for at in finding.began]
    values = {**asdict(finding), "facts": dict(finding.facts), "began": began}
    if not is_known:
        connection.execute(_NEW, values)
        return
    place = {"of": finding.cluster_id, "of_kind": finding.kind, "about": finding.subject}
    connection.execute(_CHANGE, place | values)


def _record(row: RowMapping) -> FindingRecord:
    began = tuple(datetime.fromisoformat(at) for at in row["began"] or ())
    return FindingRecord(**{**row, "kind": FindingKind(row["kind"]), "began": began})
