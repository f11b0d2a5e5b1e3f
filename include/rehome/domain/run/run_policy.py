"""The bounds of one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from rehome.domain.broker_rates import RateKey
from rehome.domain.kafka import BrokerId
from rehome.domain.plan.move import Move
from rehome.domain.request.limits import BrokerCaps
from rehome.domain.request.request import OnWindowEnd
from rehome.domain.run.ledger_view import LedgerView
from rehome.domain.run.pace import Pace
from rehome.settings import THROTTLE_EFFICIENCY

METADATA_GRACE_S = 10.0
"""See Policy."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Bounds and choices of one run. Bytes, seconds.

    :param rate_bytes_per_s: throttle per broker and direction.
    :param max_moves_per_broker: slots per broker and direction (source leader, destination).
    :param reaction_s: how long it may take until the next step. A move with less
        left than a slot's share of what the throttle copies in that time takes only that part
        of a slot (see ``slots.part_of_slot``); 0 = every move takes a whole one.
    :param max_partitions_in_flight: never more than this many at the controller, small ones aside
        where they have a number of their own.
    :param small_bytes: what sends no more bytes through a broker takes no slot of it, and is
        followed by the next one at once; 0 = everything takes a part of a slot.
    :param max_small_in_flight: so many may be in flight where they are small; None = no more than
        of all.
    :param max_new_replicas_at_once: of a partition: where it gets more, its move has several steps.
        None = all of them at once.
    :param poll_interval_s: time between two polls of the progress trigger.
    :param stall_alert_s: nothing moved for this long: alert.
    :param stall_timeout_s: nothing moved for this long: cancel what is ours and fail. Waiting for
        another client's reassignment does not count.
    :param throttle_efficiency: part of the rate asked for that brokers deliver, governed.
    :param min_free_disk_fraction: part of a log dir that must stay free at every moment.
    :param caps: of brokers; those on disks are kept at every moment, like the fraction above.
    :param min_rate_bytes_per_s: others' strain does not bring the throttle below this; 0 = a
        tenth of what was asked for.
    :param metadata_grace_s: for this long after a move was sent, a broker's metadata may still
        show the partition as it was before; until then nothing is concluded from that.
    """

    rate_bytes_per_s: int
    max_moves_per_broker: int = 4
    reaction_s: float = 0.0
    max_partitions_in_flight: int = 200
    poll_interval_s: float = 5.0
    stall_alert_s: float = 60.0
    stall_timeout_s: float = 600.0
    window_end: datetime | None = None
    on_window_end: OnWindowEnd = OnWindowEnd.FINISH
    additional: bool = False
    throttle_efficiency: float = THROTTLE_EFFICIENCY
    min_free_disk_fraction: float = 0.0
    min_rate_bytes_per_s: int = 0
    caps: BrokerCaps | None = None
    metadata_grace_s: float = METADATA_GRACE_S
    small_bytes: int = 0
    max_small_in_flight: int | None = None
    max_new_replicas_at_once: int | None = None

    def next_step(self, move: Move, replicas: tuple[BrokerId, ...]) -> tuple[BrokerId, ...]:
        """What the controller is asked for next: the target, or a step to it.

        :param replicas: those that the partition has now.
        """
        at_once = self.max_new_replicas_at_once
        if at_once is None:
            return move.target
        return move.with_copies((move.copies_at(replicas) or 0) + at_once)

    @property
    def most_small(self) -> int:
        """So many may be in flight at once where they are small."""
        return self.max_small_in_flight or self.max_partitions_in_flight

    def kept_free(self, broker: BrokerId) -> float:
        """The part of a broker's log dirs that stays free at every moment."""
        least = self.min_free_disk_fraction
        return self.caps.kept_free(broker, least) if self.caps else least

    def as_asked(self, view: LedgerView) -> Policy:
        """With the number of moves at once that one has asked for since the plan began: like any
        that a person has chosen it holds for small moves, too.
        """
        moves_at_once = view.requested_moves_per_broker
        if moves_at_once is None or moves_at_once == self.max_moves_per_broker:
            return self
        return replace(self, max_moves_per_broker=moves_at_once, small_bytes=0)

    def pace(self, rate_bytes_per_s: int, own: Mapping[RateKey, int] | None = None) -> Pace:
        """How fast moves can be made, where brokers are to deliver this rate.

        :param own: of brokers that have one of their own.
        """
        return Pace(
            bytes_per_s=rate_bytes_per_s * self.throttle_efficiency,
            reaction_s=self.reaction_s,
            max_moves_per_broker=self.max_moves_per_broker,
            max_partitions_in_flight=self.max_partitions_in_flight,
            small_bytes=self.small_bytes,
            own={key: rate * self.throttle_efficiency for key, rate in (own or {}).items()},
        )
