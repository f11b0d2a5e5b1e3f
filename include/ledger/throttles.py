"""The throttle journal: written before a configuration changes, so that it can be put back."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, RowMapping, insert, select, update

from include.cluster.port import ConfigResource
from include.ledger.database import Database
from include.ledger.events import write_event
from include.ledger.models import THROTTLE_ENTRIES
from include.ledger.records import ThrottleEntry, ThrottleState


class ThrottleStore(Database):
    """Throttle entries, one per plan, resource and key."""

    def journal_throttles(self, entries: Collection[ThrottleEntry]) -> None:
        """Write down, before the cluster is told, what stood there and what will be added.

        Where an entry of the same plan, resource and key is still open, its prior value stays
        and what is ours grows: what stands there now may be our own.
        """
        with self._writing() as connection:
            for entry in entries:
                known = _select(connection, entry)
                if known is None:
                    connection.execute(insert(THROTTLE_ENTRIES).values(**_row(self, entry)))
                else:
                    merged = _merged(_entry(known), entry)
                    connection.execute(
                        update(THROTTLE_ENTRIES)
                        .where(THROTTLE_ENTRIES.c.entry_id == known["entry_id"])
                        .values(**_row(self, merged))
                    )

    def mark_throttle(self, entry: ThrottleEntry, state: ThrottleState, detail: str = "") -> None:
        """Record what a reading of the cluster has shown of an entry."""
        with self._writing() as connection:
            known = _select(connection, entry)
            if known is None or (known["state"], known["detail"]) == (state, detail):
                return
            now = self._clock()
            connection.execute(
                update(THROTTLE_ENTRIES)
                .where(THROTTLE_ENTRIES.c.entry_id == known["entry_id"])
                .values(state=state, detail=detail, changed_at=now)
            )
            if state is ThrottleState.OWED:
                where = f"{entry.resource.type_value} {entry.resource.name or 'default'}"
                write_event(
                    connection,
                    now,
                    "throttle owed",
                    f"{where} {entry.key}: {detail}",
                    plan_id=entry.plan_id,
                    cluster_id=entry.cluster_id,
                )

    def throttles(
        self,
        plan_id: str | None = None,
        *,
        cluster_id: str | None = None,
        open_only: bool = False,
    ) -> list[ThrottleEntry]:
        """Entries in the order they were journalled: of a plan, of a cluster, or all."""
        query = select(THROTTLE_ENTRIES).order_by(THROTTLE_ENTRIES.c.entry_id)
        if plan_id is not None:
            query = query.where(THROTTLE_ENTRIES.c.plan_id == plan_id)
        if cluster_id is not None:
            query = query.where(THROTTLE_ENTRIES.c.cluster_id == cluster_id)
        if open_only:
            query = query.where(THROTTLE_ENTRIES.c.state != ThrottleState.CLEARED)
        with self._reading() as connection:
            return [_entry(row) for row in connection.execute(query).mappings()]


def _merged(known: ThrottleEntry, new: ThrottleEntry) -> ThrottleEntry:
    if not known.state.open:
        return new
    return ThrottleEntry(
        plan_id=known.plan_id,
        cluster_id=known.cluster_id,
        resource=known.resource,
        key=known.key,
        ours=tuple(dict.fromkeys((*known.ours, *new.ours))),
        prior_value=known.prior_value,
        prior_source=known.prior_source,
    )


def _select(connection: Connection, entry: ThrottleEntry) -> RowMapping | None:
    query = select(THROTTLE_ENTRIES).where(
        THROTTLE_ENTRIES.c.plan_id == entry.plan_id,
        THROTTLE_ENTRIES.c.resource_type == entry.resource.type_value,
        THROTTLE_ENTRIES.c.resource_name == entry.resource.name,
        THROTTLE_ENTRIES.c.key == entry.key,
    )
    return connection.execute(query).mappings().one_or_none()


def _row(store: Database, entry: ThrottleEntry) -> dict[str, object]:
    return {
        "plan_id": entry.plan_id,
        "cluster_id": entry.cluster_id,
        "resource_type": entry.resource.type_value,
        "resource_name": entry.resource.name,
        "key": entry.key,
        "ours": list(entry.ours),
        "prior_value": entry.prior_value,
        "prior_source": entry.prior_source,
        "state": entry.state,
        "detail": entry.detail,
        "changed_at": store._clock(),
    }


def _entry(row: RowMapping) -> ThrottleEntry:
    return ThrottleEntry(
        plan_id=row["plan_id"],
        cluster_id=row["cluster_id"],
        resource=ConfigResource(row["resource_type"], row["resource_name"]),
        key=row["key"],
        ours=tuple(row["ours"]),
        prior_value=row["prior_value"],
        prior_source=row["prior_source"],
        state=ThrottleState(row["state"]),
        detail=row["detail"],
    )
