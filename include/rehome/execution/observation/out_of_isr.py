"""Replicas of a target that are outside the ISR when the controller has nothing in flight. Pure.

Since KAFKA-19975 (seen on 4.3.1) the controller completes a reassignment that does not shrink the
replica set as soon as the added replicas are in the ISR; before, it waited for the whole target.
So a move may be done with a replica outside the ISR: a finding, not an open move.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from rehome.domain.kafka import BrokerId, PartitionState
from rehome.domain.plan.move import Move


class ReplicaRole(enum.StrEnum):
    """What a plan did to a replica of its target."""

    KEPT = "kept"  # it was there before, and nothing was copied to it
    ADDED = "added"
    RELOCATED = "relocated"  # copied to another log dir of its broker


@dataclass(frozen=True, slots=True)
class OutOfIsr:
    """A replica of the target that is not in the ISR.

    :param alive: whether its broker is in a fresh metadata answer.
    """

    broker: BrokerId
    role: ReplicaRole
    alive: bool

    def __str__(self) -> str:
        state = "is alive, but its replica lags" if self.alive else "is not alive"
        text = f"the replica on broker {self.broker} is not in the ISR: the broker {state}"
        return f"{text}. {_DONE_TO_IT[self.role]}"


_DONE_TO_IT = {
    ReplicaRole.KEPT: "It was there before the plan, which copied nothing to it",
    ReplicaRole.ADDED: (
        "It was in the ISR when the controller completed the move, and has left it since"
    ),
    ReplicaRole.RELOCATED: (
        "It was there before the plan, which copied it to another of its log dirs"
    ),
}


def out_of_isr(
    move: Move, state: PartitionState, live: Collection[BrokerId]
) -> tuple[OutOfIsr, ...]:
    """Replicas of a move's target that are not in the ISR, in the target's order."""
    return tuple(
        OutOfIsr(broker, _role(move, broker), broker in live)
        for broker in move.target
        if broker not in state.isr
    )


def out_of_isr_text(outsiders: Iterable[OutOfIsr]) -> str:
    """All of them in one line; "" = none."""
    return "; ".join(map(str, outsiders))


def _role(move: Move, broker: BrokerId) -> ReplicaRole:
    if broker in move.adding:
        return ReplicaRole.ADDED
    return ReplicaRole.RELOCATED if broker in move.relocating else ReplicaRole.KEPT
