"""How a plan is made, beside what is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from include.domain.run.pace import Pace


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What every way of making a plan takes.

    :param plan_id: of the plan that is made.
    :param rate_bytes_per_s: the throttle that the prediction of time assumes; None = unknown.
    :param throttle_efficiency: part of a nominal throttle that brokers deliver.
    :param min_free_disk_fraction: part of each log dir that must stay free at every moment.
    :param reaction_s, max_partitions_in_flight: see :class:`~include.domain.run.pace.Pace`.
    """

    plan_id: str
    rate_bytes_per_s: int | None = None
    throttle_efficiency: float = 1.0
    min_free_disk_fraction: float = 0.0
    reaction_s: float = 0.0
    max_partitions_in_flight: int = 200

    def pace(self, max_moves_per_broker: int) -> Pace | None:
        """What the plan's time is predicted by; None where no rate is known."""
        if not self.rate_bytes_per_s:
            return None
        return Pace(
            self.rate_bytes_per_s * self.throttle_efficiency,
            self.reaction_s,
            max_moves_per_broker,
            self.max_partitions_in_flight,
        )
