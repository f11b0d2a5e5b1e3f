"""Rates in the ledger: what brokers copied at each poll, and every rate that was set."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, fields, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, insert, select, update

from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.flows import (
    BrokerFlow,
    FlowSample,
    OwnRate,
    RateChange,
    RateReason,
    Strain,
)
from rehome.ledger.base.database import Database
from rehome.ledger.base.models import FLOW_SAMPLES, PLANS, RATE_CHANGES
from rehome.ledger.stores.events import write_event

FLOWS_KEPT = timedelta(minutes=30)
"""Beyond that a sample keeps only its busiest broker's rate: a day of all of them is 100 MB."""
_CHANGE_FIELDS = tuple(item.name for item in fields(RateChange))
_CHANGES = (
    select(RATE_CHANGES)
    .where(RATE_CHANGES.c.plan_id == bindparam("of"))
    .order_by(RATE_CHANGES.c.change_id.desc())
)
_NEWEST_CHANGES = _CHANGES.limit(bindparam("newest"))
_OF_BROKERS = (FLOW_SAMPLES.c.plan_id == bindparam("of")) & FLOW_SAMPLES.c.flows.is_not(None)
_FLOWS = (
    select(FLOW_SAMPLES)
    .where(_OF_BROKERS)
    .order_by(FLOW_SAMPLES.c.sample_id.desc())
    .limit(bindparam("newest"))
)
_NEW_FLOWS = _FLOWS.where(FLOW_SAMPLES.c.at > bindparam("after"))
_NEW_FLOW = insert(FLOW_SAMPLES)
_FORGET_FLOWS = (
    update(FLOW_SAMPLES)
    .where(_OF_BROKERS, FLOW_SAMPLES.c.at < bindparam("before"))
    .values(flows=None)
)

_NEW_CHANGE = insert(RATE_CHANGES)
_SET = update(PLANS).where(PLANS.c.plan_id == bindparam("of"))


class RateStore(Database):
    """Changes of a plan's throttle, and what was delivered under it."""

    def set_rate(
        self,
        plan_id: str,
        rate_bytes_per_s: int,
        cause: str,
        *,
        reason: RateReason = RateReason.REQUESTED,
        target_bytes_per_s: int | None = None,
        limit_bytes_per_s: int | None = None,
        delivered_bytes_per_s: float | None = None,
        own: Collection[OwnRate] = (),
    ) -> None:
        """Record the throttle that has been set, and why: see ``RateChange``.

        :param target_bytes_per_s, limit_bytes_per_s: None = the same as the rate.
        :param own: of brokers that have a rate of their own; those that are new are from now on.
        """
        with self.writing() as connection:
            connection.execute(_SET, {"of": plan_id, "rate_bytes_per_s": rate_bytes_per_s})
            now = self._clock()
            target = target_bytes_per_s or rate_bytes_per_s
            before = select_changes(connection, plan_id, newest=1)
            rates_before = {each for change in before for each in change.own}
            own = [each if each in rates_before else replace(each, at=now) for each in own]
            row = {
                "plan_id": plan_id,
                "at": now,
                "rate_bytes_per_s": rate_bytes_per_s,
                "target_bytes_per_s": target,
                "limit_bytes_per_s": limit_bytes_per_s or target,
                "delivered_bytes_per_s": delivered_bytes_per_s,
                "reason": reason,
                "cause": cause,
                "own": [each.to_json() for each in own] or None,
            }
            connection.execute(_NEW_CHANGE, row)
            aim = "" if target == rate_bytes_per_s else f", for {target} B/s delivered"
            text = f"{rate_bytes_per_s} B/s{aim}{_own_text(own)}: {cause}"
            write_event(connection, now, EventKind.THROTTLE, text, plan_id=plan_id)

    def without_rate(self, plan_id: str) -> None:
        """Record that the plan runs without a throttle from now on."""
        with self.writing() as connection:
            connection.execute(_SET, {"of": plan_id, "rate_bytes_per_s": None})
            text = "none: copies are limited by how many run at once alone"
            write_event(connection, self._clock(), EventKind.THROTTLE, text, plan_id=plan_id)

    def own_rates(self, plan_id: str) -> tuple[OwnRate, ...]:
        """Rates of brokers that have one of their own, as they were set last."""
        with self.reading() as connection:
            newest = select_changes(connection, plan_id, newest=1)
        return newest[-1].own if newest else ()

    def rate_changes(self, plan_id: str) -> list[RateChange]:
        """Every rate that was set for the plan, oldest first."""
        with self.reading() as connection:
            return select_changes(connection, plan_id)

    def flows(self, plan_id: str) -> list[tuple[FlowSample, float]]:
        """Every sample of what brokers copied, oldest first, with its busiest broker's rate.

        Old samples have lost the single brokers.
        """
        query = select(FLOW_SAMPLES).where(FLOW_SAMPLES.c.plan_id == plan_id)
        query = query.order_by(FLOW_SAMPLES.c.sample_id)
        with self.reading() as connection:
            rows = connection.execute(query).mappings().all()
        return [(_flow_sample(row), row["busiest_bytes_per_s"]) for row in rows]


def select_changes(
    connection: Connection, plan_id: str, newest: int | None = None
) -> list[RateChange]:
    """The plan's changes of rate, oldest first; or only the newest so many of them."""
    if newest is None:
        cursor = connection.execute(_CHANGES, {"of": plan_id})
    else:
        cursor = connection.execute(_NEWEST_CHANGES, {"of": plan_id, "newest": newest})
    rows = cursor.mappings().all()
    return [_change(row) for row in reversed(rows)]


def select_flows(
    connection: Connection, plan_id: str, newest: int, after: datetime | None = None
) -> list[FlowSample]:
    """The newest samples that still have single brokers, oldest first; of polls ``after`` one."""
    about = {"of": plan_id, "newest": newest}
    if after is None:
        cursor = connection.execute(_FLOWS, about)
    else:
        cursor = connection.execute(_NEW_FLOWS, about | {"after": after})
    rows = cursor.mappings().all()
    return [_flow_sample(row) for row in reversed(rows)]


def put_flows(connection: Connection, plan_id: str, sample: FlowSample) -> None:
    """Record a sample, within the transaction of its poll."""
    strain = sample.strain
    row = {
        "plan_id": plan_id,
        "since": sample.since,
        "at": sample.at,
        "busiest_bytes_per_s": sample.busiest_bytes_per_s,
        "flows": [asdict(flow) for flow in sample.flows],
        "silent": list(sample.silent),
        "outside_isr": strain.outside_isr if strain else None,
        "messages_behind": strain.messages_behind if strain else None,
    }
    connection.execute(_NEW_FLOW, row)
    connection.execute(_FORGET_FLOWS, {"of": plan_id, "before": sample.at - FLOWS_KEPT})


def _change(row: RowMapping) -> RateChange:
    values: dict[str, Any] = {name: row[name] for name in _CHANGE_FIELDS}
    own = tuple(map(OwnRate.from_json, row["own"] or ()))
    return RateChange(**(values | {"reason": RateReason(row["reason"]), "own": own}))


def _own_text(own: Collection[OwnRate]) -> str:
    """Rates of single brokers, after the plan's."""
    said = [
        f"broker {each.broker} {each.direction} {each.rate_bytes_per_s} B/s, for "
        f"{each.target_bytes_per_s} B/s delivered"
        for each in sorted(own, key=lambda each: each.key)
    ]
    return f" ({'; '.join(said)})" if said else ""


def _flow_sample(row: RowMapping) -> FlowSample:
    strain = None
    if row["outside_isr"] is not None:
        strain = Strain(row["outside_isr"], row["messages_behind"])
    flows = tuple(BrokerFlow(**flow) for flow in row["flows"] or ())
    silent = tuple(row["silent"] or ())
    return FlowSample(row["since"], row["at"], flows, strain, silent)
