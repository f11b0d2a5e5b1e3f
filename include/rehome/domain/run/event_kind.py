"""Kinds of the ledger's events: what each tells."""

from __future__ import annotations

import enum
from typing import NewType

from rehome.domain.run.states import MoveState, PlanState


class EventKind(enum.StrEnum):
    """What an event tells. The values are in the ledger's rows: they never change."""

    PLANNED = "planned"
    """The plan is in the ledger."""
    APPROVED = "approved"
    """The plan was approved, or its approval was given again."""
    RUNNING = "running"
    """The plan has claimed its cluster: it starts, or goes on."""
    PAUSED = "paused"
    """The plan has paused."""
    DONE = "done"
    """Every move of the plan is done, or needs no moving any more."""
    CANCELLED = "cancelled"
    """The plan was cancelled, or given up."""
    ROLLED_BACK = "rolled_back"
    """Another plan has taken back what the plan had moved."""
    FAILED = "failed"
    """The plan has failed."""
    ROLLED_BACK_IN_PART = "rolled back in part"
    """Another plan has taken back a part of what the plan had moved; the rest cannot go back."""
    CONTINUED = "continued"
    """A run has taken the plan up, and drives it from now on."""
    REQUEST = "request"
    """A person has asked something of the plan: to pause, to go on, to cancel, another throttle, or
    to wait for the next window."""
    APPROVAL_SENT_BACK = "sent back"
    """The answer to the request for approval changed something, so it is asked for again."""
    APPROVAL_LAPSED = "approval lapsed"
    """The plan was about to start, and its approval does not hold any more."""

    MOVE_PENDING = "move pending"
    """A move in flight was taken back, and waits to be started again."""
    MOVE_CANCELLED = "move cancelled"
    """A move was taken back, or never started."""
    MOVE_SUPERSEDED = "move superseded"
    """Another client has reassigned the partition of a move."""
    MOVE_FAILED = "move failed"
    """The controller refused a move, or what became of it could not be read."""
    MOVE_GONE = "move gone"
    """The topic or partition of a move is not there any more: it needs no moving."""
    NOT_CANCELLED = "not cancelled"
    """A move could not be cancelled."""
    NOT_READ_AFTER_CANCEL = "not read"
    """After moves were cancelled, the replicas of some could not be read."""
    DATA_LOST = "data lost"
    """Messages of a partition in flight, which all its in-sync replicas had, are gone."""
    REASSIGNED_MEANWHILE = "reassigned beside"
    """Another client reassigned partitions while the plan ran."""

    THROTTLE = "throttle"
    """The plan's throttle was set or changed, or the plan runs without one."""
    RATE_NOT_SET = "rate not set"
    """A broker refused, or did not answer, when a rate was set."""
    FOREIGN_RATE = "foreign rate"
    """Another client has set or deleted a rate: it is left alone."""
    THROTTLE_GONE = "throttle gone"
    """A throttle entry was gone while moves in flight relied on it."""
    THROTTLE_NOT_SET_AGAIN = "throttle not set again"
    """A throttle that was gone in mid-copy could not be set again."""
    THROTTLE_OWED = "throttle owed"
    """A throttle entry could not be taken back yet."""

    FOLLOWED_UP = "followed up"
    """A second plan moves what has appeared on the drained brokers or log dirs meanwhile."""
    DRAINED_NOT_EMPTY = "not empty"
    """The plan is done, and what was to be drained is not empty."""
    ADDING_PARTITIONS = "adding partitions"
    """New partitions are about to be requested from the controller."""
    PARTITIONS_ADDED = "partitions added"
    """A fresh read has shown the new partitions."""

    CANCELLING_FOREIGN = "cancelling foreign reassignments"
    """Reassignments of other clients, which a person has named, are about to be cancelled."""
    FOREIGN_CANCELLED = "foreign reassignments cancelled"
    """A reading has shown what has become of them."""
    ADOPTED = "adopted"
    """The plan has taken over what another client had started."""

    ALERT_SENT = "alert"
    """An alert was sent, or written to the log where no channel took it."""
    ALERT_NOT_SENT = "alert not sent"
    """A channel has not taken an alert."""
    FINDING_OPENED = "finding opened"
    """Enough snapshots in a row have shown something wrong with the cluster."""
    FINDING_CLOSED = "finding closed"
    """Enough snapshots in a row have not shown it any more."""
    RUN_STARTED_FOR_FINDING = "run started for a finding"
    """Watching has started a run for a finding."""

    DIRECT_CHANGE = "direct change"
    """A task of people's own has changed the cluster by ``KafkaReassignmentHook``."""

    BOUND = "bound"
    """A connection, or an entry of the clusters file, is bound to the cluster from now on."""
    LEADS_ELSEWHERE = "leads elsewhere"
    """A connection that led to the cluster leads to another one: its policy counts no more."""
    CONNECTION_GONE = "connection gone"
    """A connection that led to the cluster was removed: its policy counts no more."""

    @classmethod
    def of_plan(cls, state: PlanState) -> EventKind:
        """The kind for a plan that comes into a state: the state's own name."""
        return cls(state.value)

    @classmethod
    def of_move(cls, state: MoveState) -> EventKind:
        """The kind for a move that has ended otherwise than done, or has to start again."""
        return cls(f"move {state}")


OtherKind = NewType("OtherKind", str)
"""The kind of an event that another version of Rehome wrote and this one does not know. People see
it as it stands; nothing is decided by it.
"""
AnyKind = EventKind | OtherKind


def kind_of(text: str) -> AnyKind:
    """The kind that a row of the ledger has; one that is not known stays the text that it is."""
    try:
        return EventKind(text)
    except ValueError:
        return OtherKind(text)
