"""Rows of the ledger as values."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rehome.domain.broker_rates import BrokerRates
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import BrokerId, TopicPartition
from rehome.domain.run.approval_terms import Approval
from rehome.domain.run.askers import Askers, Term, asks_for_rate
from rehome.domain.run.event_kind import AnyKind
from rehome.domain.run.ledger_view import RefusedCancels
from rehome.domain.run.states import MoveState, PlanState


def driver_name(dag_id: str | None, run_id: str) -> str:
    """A run as the owner of a lease: ids of runs are unique within their DAG only."""
    return f"{dag_id}/{run_id}" if dag_id else run_id


class EndReason(enum.StrEnum):
    """Why a plan has ended, where something is decided by that; its cause is for people."""

    REJECTED = "rejected"  # by the person who was asked to approve it; it had not started
    CANCELLED = "cancelled"  # by a person


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """A plan as the ledger knows it. Bytes and aware UTC times.

    :param cause: why the plan is in its state.
    :param bytes_total: to be copied, between brokers and between log dirs.
    :param plan_dir: URI of the plan's files.
    :param run_id, dag_id: the DAG run that drives it, or did last; a run's id is its own within
        its DAG only. None = not known: an earlier Rehome recorded the plan.
    :param planned_through: the connection that it was made through; None = not known.
    :param last_progress_at: when bytes or messages last moved, or the plan was last started; later
        by as long as its run had no lease.
    :param held_at: when a poll last found nothing but another client's reassignment to wait for;
        later in the same way.
    :param end_reason: why it has ended, by a code; None = for no reason that has one.
    :param cut_by_budget: its budget leaves something of what was asked.
    :param for_window_at: when a person handed it over to the next maintenance window; None = no
        person has.
    :param approval: what was approved last; None = nothing, or by a Rehome that kept no terms.
    :param terms_asked_by: who has asked for a term that is not the plan's own.
    :param refused_cancels: moves in flight that could not be cancelled, since it last ran.
    :param requested_rates_by_broker, requested_moves_per_broker: what was asked for after the plan
        was made: rates of single brokers, moves at once; None = nothing was.
    :param bytes_taken_back: what copies had brought that were cancelled, as last read; None = an
        earlier Rehome recorded the plan.
    :param policy: what the connection that it was made through said of pace and approval then;
        None = an earlier Rehome recorded the plan.
    :param rehome_version: of the Rehome that has made the plan; None = not known.
    """

    plan_id: str
    cluster_id: str
    state: PlanState
    cause: str
    action: str
    plan_hash: str
    request: Mapping[str, Any]
    plan_dir: str
    run_id: str
    actor: str
    planned_through: str | None
    approved_by: str | None
    bytes_total: int
    rate_bytes_per_s: int | None
    requested_rate_bytes_per_s: int | None
    cancel_requested: bool
    pause_requested: bool
    created_at: datetime
    approved_at: datetime | None
    started_at: datetime | None
    last_progress_at: datetime | None
    held_at: datetime | None
    ended_at: datetime | None
    approval: Approval | None = None
    dag_id: str | None = None
    end_reason: EndReason | None = None
    for_window_at: datetime | None = None
    cut_by_budget: bool = False
    terms_asked_by: Mapping[Term, str] = field(default_factory=dict)
    policy: Mapping[str, Any] | None = None
    refused_cancels: RefusedCancels = field(default_factory=dict)
    bytes_taken_back: int | None = None
    rehome_version: str | None = None
    requested_rates_by_broker: BrokerRates | None = None
    requested_moves_per_broker: int | None = None

    def may_be_begun_by(self, dag_id: str) -> bool:
        """Whether a run of this DAG may be the first that carries the plan out: a dry run has made
        it, and no run has taken it up since, except for one of the same DAG, for its window.
        Windows of one DAG never overlap: that run is over.
        """
        if self.state is PlanState.PLANNED and self.request.get("dry_run"):
            return True
        begun = self.state not in (PlanState.PLANNED, PlanState.APPROVED)
        return not begun and self.for_window_at is not None and dag_id == self.dag_id

    @property
    def unthrottled(self) -> bool:
        """Whether the plan is to run without a throttle."""
        return bool(self.request.get("unthrottled"))

    @property
    def window_end(self) -> datetime | None:
        """When nothing may be in flight any more; None = there is no window."""
        ends = self.request.get("window_end")
        return datetime.fromisoformat(ends) if ends else None

    @property
    def goes_on(self) -> str:
        """How copies of the plan in flight go on, where nothing ends them; after "go on"."""
        return "without a throttle" if self.unthrottled else "throttled"

    @property
    def driver(self) -> str:
        """Who drives it, as the owner of its cluster's lease."""
        return driver_name(self.dag_id, self.run_id)

    @property
    def asked_rate_bytes_per_s(self) -> int | None:
        """The throttle that was asked for, at last or with the plan; None = Rehome finds it."""
        throttle = self.request.get("throttle")
        return self.requested_rate_bytes_per_s or (throttle if isinstance(throttle, int) else None)

    @property
    def asked_rates_by_broker(self) -> BrokerRates:
        """The rates of single brokers that were asked for, at last or with the plan."""
        if self.requested_rates_by_broker is not None:
            return self.requested_rates_by_broker
        return BrokerRates.from_json(self.request.get("throttle_by_broker"))

    @property
    def asked_moves_per_broker(self) -> int | None:
        """How many moves at once were asked for, at last or with the plan; None = not known."""
        moves_at_once = self.request.get("max_moves_per_broker")
        return self.requested_moves_per_broker or (
            moves_at_once if isinstance(moves_at_once, int) else None
        )

    def raises_rate(
        self, rate_bytes_per_s: int | None, actor: str, dry_run_rate: int | None
    ) -> bool:
        """Whether who names a throttle has asked for it (:func:`asks_for_rate`).

        :param dry_run_rate: bytes per second that the dry run has found; None = it is not known.
        """
        before = self.asked_rate_bytes_per_s
        if before is None and rate_bytes_per_s is not None:
            approved = self.approval.terms.rate_bytes_per_s if self.approval else None
            before = dry_run_rate or approved
        return asks_for_rate(before, rate_bytes_per_s, own=actor == self.actor)

    def askers(self, run: str | None) -> Askers:
        """Who has asked for the plan as it would be run now.

        :param run: who has triggered the run.
        """
        return Askers(self.actor, run, self.terms_asked_by)

    @property
    def approver(self) -> str | None:
        """The person who was asked and has approved it; None = no person has."""
        given = self.approval
        return given.by if given is not None and given.by_person else None


@dataclass(frozen=True, slots=True)
class MoveRecord:
    """What became of one move of a plan, and why.

    :param bytes_to_move: what it was to copy.
    :param bytes_in_place: what its copies hold, as last read before it was done; None = it is not
        done, or that is not known.
    """

    partition: TopicPartition
    state: MoveState
    detail: str
    bytes_to_move: int
    changed_at: datetime
    bytes_in_place: int | None = None


@dataclass(frozen=True, slots=True)
class Reassignment:
    """One start of a reassignment, with an identity of its own (KIP-240).

    Two successive reassignments of one partition are two of these.

    :param topic_id: of its topic; None = not known.
    :param sent_at: when the controller had accepted it; None = not known to have been.
    :param first_leader: the partition's leader when it started.
    :param outcome: None while it is in flight.
    :param plan_id: of the plan that has started it.
    """

    reassignment_id: str
    partition: TopicPartition
    topic_id: str | None
    started_at: datetime
    sent_at: datetime | None
    first_leader: BrokerId | None
    replicas_before: tuple[BrokerId, ...]
    replicas_target: tuple[BrokerId, ...]
    rate_bytes_per_s: int | None
    ended_at: datetime | None
    outcome: MoveState | None
    detail: str
    plan_id: str = ""


class ThrottleState(enum.StrEnum):
    """States of a throttle entry: journalled → applied → cleared, or owed until it is.

    Items of lists are intended before. A cordon that is to stay is kept instead.
    """

    INTENDED = "intended"
    """It is written down, and nothing of it has been asked of the cluster yet."""
    JOURNALLED = "journalled"
    """It is about to be set: the cluster may have it already, or not yet."""
    APPLIED = "applied"
    """It was read back from the cluster."""
    CLEARED = "cleared"
    """Read back: the earlier value is set again."""
    OWED = "owed"
    """It could not be taken back yet: the sweep tries again."""
    KEPT = "kept"
    """It is set on the cluster, and is to stay: nothing takes it back."""

    @property
    def open(self) -> bool:
        """Whether something of ours may still be set on the cluster."""
        return self not in (ThrottleState.CLEARED, ThrottleState.KEPT)


class SetBy(enum.StrEnum):
    """Whose value a key had at the last reading that showed one."""

    REHOME = "rehome"
    OTHERS = "others"  # another client has changed what was set here: its value is left alone


ThrottlePlace = tuple[str, ConfigResource, str]


@dataclass(frozen=True, slots=True)
class ThrottleEntry:
    """One configuration key that a plan changes, with its earlier and its new value.

    :param ours: list items added; for a rate, every value that this plan has set.
    :param prior_value: byte for byte; None = the key was not set on this resource.
    :param prior_source: Kafka's ConfigSource of what held before.
    :param detail: why it is in its state, for people.
    :param set_by: whose value is set, by the last reading that showed one. No failure to
        read or to clear changes that.
    :param times_gone: how often it was found gone while something in flight relied on it.
    :param times_alerted: how many of these were alerted.
    :param changed_at: when its state was last written, by the ledger; None = not written yet.
    """

    plan_id: str
    cluster_id: str
    resource: ConfigResource
    key: str
    ours: tuple[str, ...]
    prior_value: str | None
    prior_source: str
    state: ThrottleState = ThrottleState.JOURNALLED
    detail: str = ""
    set_by: SetBy = SetBy.REHOME
    times_gone: int = 0
    times_alerted: int = 0
    changed_at: datetime | None = field(default=None, compare=False)

    @property
    def place(self) -> ThrottlePlace:
        """Which setting it is, of which plan."""
        return (self.plan_id, self.resource, self.key)

    @property
    def asked_values(self) -> tuple[str, ...]:
        """What of ours may be there; whatever else reads like it is another client's."""
        return () if self.state is ThrottleState.INTENDED else self.ours

    @property
    def line(self) -> str:
        """Which setting it is, and what is known of it: for events and errors."""
        return f"{self.resource} {self.key}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Event:
    """Who did what, when. Never changed, never deleted."""

    at: datetime
    actor: str
    kind: AnyKind
    detail: str
    plan_id: str | None = None
    cluster_id: str | None = None
