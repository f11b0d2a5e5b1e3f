"""What `decide` may decide: the actions that a step of a running plan consists of."""

from __future__ import annotations

from dataclasses import dataclass, field

from rehome.domain.kafka import (
    BrokerId,
    ReplicaId,
    TopicPartition,
)
from rehome.domain.run.causes.waits import Wait
from rehome.domain.run.flows import OwnRate, RateReason
from rehome.domain.run.states import MoveState, PlanState, Settle


@dataclass(frozen=True, slots=True)
class Admit:
    """Send these moves to the controller, in one request.

    :param waiting: so many others wait; ``waits``: all that holds any of them back.
    """

    partitions: tuple[TopicPartition, ...]
    waiting: int = field(default=0, compare=False)
    waits: frozenset[Wait] = field(default=frozenset(), compare=False)


@dataclass(frozen=True, slots=True)
class NextStep:
    """Send the next step of these moves, which are in flight, to the controller."""

    targets: tuple[tuple[TopicPartition, tuple[BrokerId, ...]], ...]


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel these moves, which are ours: in flight, or journalled and never sent.

    :param then: what becomes of them: PENDING where they are to be taken up again.
    """

    partitions: tuple[TopicPartition, ...]
    cause: str
    then: MoveState = MoveState.CANCELLED


@dataclass(frozen=True, slots=True)
class PlaceReplicas:
    """Have these replicas, which exist, moved into the log dirs that the plan names."""

    log_dirs: tuple[tuple[ReplicaId, str], ...]


@dataclass(frozen=True, slots=True)
class SetRate:
    """Change the throttle's nominal rate: see ``RateChange``. None: the same as the rate.

    :param own: rates of brokers that have one of their own from then on.
    """

    rate_bytes_per_s: int
    cause: str
    reason: RateReason = RateReason.REQUESTED
    target_bytes_per_s: int | None = None
    limit_bytes_per_s: int | None = None
    delivered_bytes_per_s: float | None = None
    own: tuple[OwnRate, ...] = ()


@dataclass(frozen=True, slots=True)
class KeepThrottled:
    """These are in flight, and what throttles them has to be set again."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Hold:
    """Admit nothing now, for this reason.

    :param hangs: it is a reassignment of another client that cannot end by itself.
    :param for_others: a reassignment of another client goes first.
    :param waiting: so many moves wait; ``waits``: all that holds any of them back.
    """

    cause: str
    hangs: bool = False
    for_others: bool = field(default=False, compare=False)
    waiting: int = field(default=0, compare=False)
    waits: frozenset[Wait] = field(default=frozenset(), compare=False)


@dataclass(frozen=True, slots=True)
class Finish:
    """The plan has ended in this state.

    :param waits: so many moves in flight could not be cancelled, and are asked again later: it has
        not ended yet.
    :param despite: it ends whatever could not be cancelled: that was refused for too long.
    """

    state: PlanState
    cause: str
    waits: int = 0
    despite: bool = False


Decision = (
    Admit | NextStep | Settle | Cancel | PlaceReplicas | SetRate | KeepThrottled | Hold | Finish
)
