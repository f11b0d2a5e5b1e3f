"""Who may write to a cluster: one lease each, taken over when it is not renewed."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection, RowMapping, bindparam, insert, select, update

from rehome.domain.run.states import PlanState
from rehome.domain.text import clock_text
from rehome.errors import PlanConflictError
from rehome.ledger.base.database import Database
from rehome.ledger.base.fencing import Lease, LeaseHeldError
from rehome.ledger.base.models import LEASES, PLANS
from rehome.ledger.base.records import driver_name

NO_OWNER = ""
_LEASE = select(LEASES).where(LEASES.c.cluster_id == bindparam("of"))
_DRIVER = select(PLANS.c.dag_id, PLANS.c.run_id).where(PLANS.c.plan_id == bindparam("of"))
_CHANGE = update(LEASES).where(LEASES.c.cluster_id == bindparam("of"))
_HEARTBEAT = _CHANGE.values(expires_at=bindparam("until"))
_FIRST = insert(LEASES).values(
    cluster_id=bindparam("of"),
    owner=bindparam("by"),
    epoch=bindparam("as"),
    expires_at=bindparam("until"),
)
_TAKING = _CHANGE.values(
    owner=bindparam("by"), epoch=bindparam("as"), expires_at=bindparam("until")
)

_RELEASE = _CHANGE.where(LEASES.c.epoch == bindparam("as")).values(
    owner=NO_OWNER, expires_at=bindparam("until")
)
_SILENT = select(
    PLANS.c.plan_id, PLANS.c.dag_id, PLANS.c.run_id, PLANS.c.last_progress_at, PLANS.c.held_at
).where(
    PLANS.c.cluster_id == bindparam("of"),
    PLANS.c.state == PlanState.RUNNING,
    PLANS.c.last_progress_at.is_not(None),
)


class LeaseStore(Database):
    """Leases: taken, renewed, given back. Times are the ledger's clock."""

    def acquire_lease(
        self, cluster_id: str, owner: str, ttl_s: float, *, plan_id: str | None = None
    ) -> Lease:
        """Take the cluster's lease; its epoch grows, and every older one is fenced off.

        It can be taken when no run holds it: it was given back, or its owner has not
        renewed it in time. Its owner gets it anew at once: an attempt that begins comes after
        one that was killed.

        :param ttl_s: seconds until it expires, unless it is renewed.
        :param plan_id: the plan to act on, which must be in the owner's hands.
        :raises LeaseHeldError: another run holds it; names it, and until when.
        :raises PlanConflictError: another run drives the plan by now.
        """
        with self.writing() as connection:
            if plan_id is not None:
                _require_driver(connection, plan_id, owner)
            return take(self, connection, cluster_id, owner, ttl_s)

    def heartbeat(self, cluster_id: str, owner: str, ttl_s: float) -> bool:
        """Say in the owner's name that it lives; False when it does not own the lease (any more).

        A watcher on the owner's behalf may do so: it makes the lease last, and permits no write.
        """
        with self.writing() as connection:
            row = _select(connection, cluster_id)
            if row is None or row["owner"] != owner:
                return False
            now = self._clock()
            _forgive_silence(connection, row, owner, now)
            until = now + timedelta(seconds=ttl_s)
            connection.execute(_HEARTBEAT, {"of": cluster_id, "until": until})
            return True

    def renew_lease(self) -> None:
        """Renew the lease that this ledger writes under (:meth:`Ledger.under`).

        :raises LeaseLostError: another run has taken it over.
        """
        with self.writing():
            pass  # every writing transaction begins with the renewal

    def release_lease(self, lease: Lease) -> None:
        """Give the lease back; nothing, when another run has taken it over."""
        with self.writing() as connection:
            values = {"of": lease.cluster_id, "as": lease.epoch, "until": self._clock()}
            connection.execute(_RELEASE, values)

    def holder(self, cluster_id: str) -> Lease | None:
        """The lease as it is held now; None when no run holds it, or its owner is silent."""
        with self.reading() as connection:
            row = _select(connection, cluster_id)
        if row is None or row["owner"] == NO_OWNER or row["expires_at"] <= self._clock():
            return None
        return Lease(cluster_id, row["owner"], row["epoch"], row["expires_at"], 0.0)


def take(
    store: Database, connection: Connection, cluster_id: str, owner: str, ttl_s: float
) -> Lease:
    """As :meth:`LeaseStore.acquire_lease`, inside a transaction that writes something else too."""
    now = store._clock()
    row = _select(connection, cluster_id)
    is_held = row is not None and row["owner"] not in (NO_OWNER, owner) and row["expires_at"] > now
    if row is not None and is_held:
        raise LeaseHeldError(
            f"{row['owner']} holds cluster {cluster_id}, so that nothing else changes it. This "
            "ends at "
            f"{clock_text(row['expires_at'])}, unless that owner, if it is alive, renews it",
            next_step="Try again when that owner has ended; if it is dead, after that time.",
        )
    if row is not None:
        _forgive_silence(connection, row, owner, now)
    epoch = 1 if row is None else row["epoch"] + 1
    lease = Lease(cluster_id, owner, epoch, now + timedelta(seconds=ttl_s), ttl_s)
    values = {"of": cluster_id, "by": owner, "as": epoch, "until": lease.expires_at}
    connection.execute(_FIRST if row is None else _TAKING, values)
    return lease


def _select(connection: Connection, cluster_id: str) -> RowMapping | None:
    return connection.execute(_LEASE, {"of": cluster_id}).mappings().one_or_none()


def _forgive_silence(connection: Connection, lease: RowMapping, owner: str, now: datetime) -> None:
    """Have the stall of the owner's plan not count the time since its lease has expired.

    Nothing polled, as when all of Airflow was away, so nothing could be started.
    """
    silence = now - lease["expires_at"]
    if silence <= timedelta(0):
        return
    plans = connection.execute(_SILENT, {"of": lease["cluster_id"]})
    for plan_id, dag_id, run_id, last, held_at in plans.all():
        if driver_name(dag_id, run_id) != owner:
            continue
        connection.execute(
            update(PLANS)
            .where(PLANS.c.plan_id == plan_id)
            .values(
                last_progress_at=min(now, last + silence),
                held_at=None if held_at is None else min(now, held_at + silence),
            )
        )


def _require_driver(connection: Connection, plan_id: str, owner: str) -> None:
    run = connection.execute(_DRIVER, {"of": plan_id}).one_or_none()
    if run is not None and driver_name(*run) != owner:
        raise PlanConflictError(
            f"Run {driver_name(*run)} drives plan {plan_id} now, so this run changes nothing of it",
            next_step="Follow that run.",
        )
