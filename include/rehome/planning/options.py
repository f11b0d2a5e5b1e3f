"""Options of planning that are not part of the request."""

from __future__ import annotations

from dataclasses import dataclass

from rehome.domain.run.pace import Pace


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """Options that all entry points of the planner take.

    :param plan_id: id of the new plan.
    :param rate_bytes_per_s: the throttle that the prediction of time assumes; None = unknown.
    :param throttle_efficiency: fraction of the nominal throttle that brokers deliver.
    :param min_free_disk_fraction: fraction of each log dir that must stay free at every moment.
    :param reaction_s, max_partitions_in_flight, small_bytes: see
        :class:`~rehome.domain.run.pace.Pace`.
    """

    plan_id: str
    rate_bytes_per_s: int | None = None
    throttle_efficiency: float = 1.0
    min_free_disk_fraction: float = 0.0
    reaction_s: float = 0.0
    max_partitions_in_flight: int = 200
    small_bytes: int = 0

    def pace(self, max_moves_per_broker: int) -> Pace | None:
        """Input of the time prediction; None if no rate is known."""
        if not self.rate_bytes_per_s:
            return None
        return Pace(
            self.rate_bytes_per_s * self.throttle_efficiency,
            self.reaction_s,
            max_moves_per_broker,
            self.max_partitions_in_flight,
            self.small_bytes,
        )
