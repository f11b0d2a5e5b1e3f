"""What the ledger knows of a cluster at a time: plans on it, and what was Rehome's own there."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Connection, bindparam, func, insert, or_, select, update

from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import BrokerId, TopicPartition
from rehome.domain.run.states import PlanState
from rehome.ledger.base.database import Database
from rehome.ledger.base.models import BROKER_RACKS, PLANS, REASSIGNMENTS, THROTTLE_ENTRIES
from rehome.ledger.base.plan_rows import record_of
from rehome.ledger.base.reassignment_rows import reassignment_of
from rehome.ledger.base.records import PlanRecord, Reassignment, ThrottleState

_OPEN = [state for state in ThrottleState if state.open]
_RACKS = select(BROKER_RACKS.c.broker, BROKER_RACKS.c.rack).where(
    BROKER_RACKS.c.cluster_id == bindparam("of")
)

_NEW_RACK = insert(BROKER_RACKS)
_RACK = update(BROKER_RACKS).where(
    BROKER_RACKS.c.cluster_id == bindparam("of"), BROKER_RACKS.c.broker == bindparam("of_broker")
)

_THROTTLED_AT = (
    select(
        THROTTLE_ENTRIES.c.resource_type,
        THROTTLE_ENTRIES.c.resource_name,
        THROTTLE_ENTRIES.c.key,
        THROTTLE_ENTRIES.c.ours,
    )
    .join(PLANS)
    .where(
        THROTTLE_ENTRIES.c.cluster_id == bindparam("of"),
        PLANS.c.created_at <= bindparam("then"),
        or_(
            THROTTLE_ENTRIES.c.state.in_(_OPEN), THROTTLE_ENTRIES.c.changed_at >= bindparam("then")
        ),
    )
)
_STARTS_AT = (
    select(REASSIGNMENTS)
    .join(PLANS, REASSIGNMENTS.c.plan_id == PLANS.c.plan_id)
    .where(
        PLANS.c.cluster_id == bindparam("of"),
        REASSIGNMENTS.c.started_at <= bindparam("then"),
        or_(REASSIGNMENTS.c.ended_at.is_(None), REASSIGNMENTS.c.ended_at >= bindparam("then")),
    )
)


class ClusterStore(Database):
    """Reads for people: one cluster."""

    def plans_on(self, cluster_id: str, newest: int) -> list[PlanRecord]:
        """The newest plans for a cluster, newest first."""
        query = select(PLANS).where(PLANS.c.cluster_id == cluster_id)
        query = query.order_by(PLANS.c.created_at.desc(), PLANS.c.plan_id).limit(newest)
        with self.reading() as connection:
            return [record_of(row) for row in connection.execute(query).mappings()]

    def note_racks(self, cluster_id: str, racks: Mapping[BrokerId, str]) -> None:
        """Remember the racks of live brokers ("" = none): of a dead one, Kafka does not tell it."""
        with self.reading() as connection:
            racks_before = _racks(connection, cluster_id)
        changed = {
            broker: rack for broker, rack in racks.items() if racks_before.get(broker) != rack
        }
        if not changed:
            return
        with self.writing() as connection:
            racks_before = _racks(connection, cluster_id)
            for broker, rack in changed.items():
                if broker in racks_before:
                    here = {"of": cluster_id, "of_broker": broker}
                    connection.execute(_RACK, {**here, "rack": rack})
                else:
                    row = {"cluster_id": cluster_id, "broker": broker, "rack": rack}
                    connection.execute(_NEW_RACK, row)

    def racks(self, cluster_id: str) -> dict[BrokerId, str]:
        """The rack of each broker when it was last seen alive; "" = it had none."""
        with self.reading() as connection:
            return _racks(connection, cluster_id)

    def plan_states_on(self, cluster_id: str) -> dict[PlanState, int]:
        """How many plans for a cluster are in each state."""
        query = select(PLANS.c.state, func.count()).group_by(PLANS.c.state)
        query = query.where(PLANS.c.cluster_id == cluster_id)
        with self.reading() as connection:
            return {PlanState(state): count for state, count in connection.execute(query)}

    def owed_on(self, cluster_id: str) -> int:
        """Throttle settings on a cluster of plans that are not active, which may still be set."""
        entries = THROTTLE_ENTRIES.c
        query = select(func.count()).select_from(THROTTLE_ENTRIES).join(PLANS)
        query = query.where(
            entries.cluster_id == cluster_id,
            entries.state.in_(_OPEN),
            PLANS.c.active_cluster_id.is_(None),
        )
        with self.reading() as connection:
            counted: int = connection.execute(query).scalar_one()
        return counted

    def throttled_here_at(
        self, cluster_id: str, at: datetime
    ) -> dict[tuple[ConfigResource, str], frozenset[str]]:
        """What Rehome had set on a cluster at a time, or may have: resource and key → values.

        An entry that was closed after that time is among them.
        """
        about = {"of": cluster_id, "then": at}
        values_by_place: dict[tuple[ConfigResource, str], frozenset[str]] = {}
        with self.reading() as connection:
            for kind, name, key, ours in connection.execute(_THROTTLED_AT, about):
                where = ConfigResource(kind, name), key
                values_by_place[where] = values_by_place.get(where, frozenset()) | frozenset(ours)
        return values_by_place

    def moving_here_at(self, cluster_id: str, at: datetime) -> frozenset[TopicPartition]:
        """Partitions that Rehome was moving on a cluster at a time."""
        return frozenset(start.partition for start in self.starts_here_at(cluster_id, at))

    def starts_here_at(self, cluster_id: str, at: datetime) -> list[Reassignment]:
        """Reassignments of Rehome that were in flight on a cluster at a time, as far as it knew."""
        about = {"of": cluster_id, "then": at}
        with self.reading() as connection:
            rows = connection.execute(_STARTS_AT, about).mappings()
            return [reassignment_of(row) for row in rows]


def _racks(connection: Connection, cluster_id: str) -> dict[BrokerId, str]:
    return {row.broker: row.rack for row in connection.execute(_RACKS, {"of": cluster_id})}
