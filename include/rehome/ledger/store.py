"""The ledger: what happened, in a database, written before the cluster is changed.

Everything that must survive a killed task, worker or scheduler is in here. Each method is one
transaction and may be repeated: a retry that finds its work done changes nothing.
"""

from __future__ import annotations

from functools import cached_property
from types import TracebackType
from typing import Self

from sqlalchemy import select

from rehome.domain.clock import Clock, utc_now
from rehome.ledger.base.database import Database, open_engine
from rehome.ledger.base.fencing import Lease
from rehome.ledger.base.models import IDENTITY
from rehome.ledger.stores.alerts import AlertStore
from rehome.ledger.stores.approvals.questions import QuestionStore
from rehome.ledger.stores.approvals.written_files import WrittenFileStore
from rehome.ledger.stores.audit.entries import AuditStore
from rehome.ledger.stores.audit.exports import AuditExportStore
from rehome.ledger.stores.authority.requested_runs import RequestedRunStore
from rehome.ledger.stores.authority.taken_snapshots import TakenSnapshotStore
from rehome.ledger.stores.by_cluster.bindings import BindingStore
from rehome.ledger.stores.by_cluster.clusters import ClusterStore
from rehome.ledger.stores.by_cluster.seen_reassignments import SeenReassignmentStore
from rehome.ledger.stores.by_run.causes import CauseStore
from rehome.ledger.stores.copies.gains import GainStore
from rehome.ledger.stores.copies.hurts import HurtStore
from rehome.ledger.stores.copies.move_views import MoveViewStore
from rehome.ledger.stores.data_seen import DataSeenStore
from rehome.ledger.stores.events import EventStore
from rehome.ledger.stores.leases import LeaseStore
from rehome.ledger.stores.moves import MoveStore
from rehome.ledger.stores.pages import PageStore
from rehome.ledger.stores.planned_moves import PlannedMoveStore
from rehome.ledger.stores.plans import PlanStore
from rehome.ledger.stores.rates import RateStore
from rehome.ledger.stores.removal.old_rows import OldRowStore
from rehome.ledger.stores.requests import RequestStore
from rehome.ledger.stores.samples import SampleStore, TimingStore
from rehome.ledger.stores.throttles import ThrottleStore
from rehome.ledger.stores.watched.findings import FindingStore
from rehome.ledger.stores.watched.starts import WatchStartStore

_ID = select(IDENTITY.c.ledger_id)


class _IdentityStore(Database):
    """The ledger's own id: given once, when its tables are made."""

    @cached_property
    def ledger_id(self) -> str:
        """32 hexadecimal digits."""
        with self.reading() as connection:
            return str(connection.execute(_ID).scalar_one())


class Ledger(
    PlanStore,
    RequestStore,
    MoveStore,
    MoveViewStore,
    DataSeenStore,
    PlannedMoveStore,
    ThrottleStore,
    RateStore,
    SampleStore,
    GainStore,
    HurtStore,
    TimingStore,
    PageStore,
    ClusterStore,
    BindingStore,
    SeenReassignmentStore,
    AlertStore,
    FindingStore,
    WatchStartStore,
    RequestedRunStore,
    TakenSnapshotStore,
    QuestionStore,
    WrittenFileStore,
    CauseStore,
    EventStore,
    AuditStore,
    AuditExportStore,
    LeaseStore,
    OldRowStore,
    _IdentityStore,
):
    """Every read and write of the journal. Processes may share a ledger; threads may too."""

    @classmethod
    def open(cls, url: str, *, clock: Clock = utc_now, pooled: bool = False) -> Self:
        """The ledger at an SQLAlchemy URL (SQLite file or PostgreSQL), migrated.

        :param clock: what it writes as the time of a change.
        :param pooled: keep a few connections to PostgreSQL open; for a process that reads all the
            time and never forks.
        :raises RehomeError: the database cannot be opened, or a newer Rehome wrote it.
        """
        return cls(open_engine(url, pooled=pooled), clock)

    def under(self, lease: Lease) -> Self:
        """The same ledger; each of its writes first renews the lease, and fails where it is lost.

        It shares this one's connections: close only this one.
        """
        return type(self)(self.engine, self._clock, lease)

    def close(self) -> None:
        """Give connections back."""
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
