"""When a plan ends: the one estimate of it, before its start and at every poll. Pure.

What is left is played out (:mod:`rehome.execution.estimate.projection`): before the start twice,
from fast to slow, by what is not known beforehand; at a poll once, by what brokers were found to
deliver, and the range is how far off that has been measured to be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from rehome.domain.broker_rates import RateKey
from rehome.domain.kafka import ReplicaId, TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.flows import FETCH_BYTES, QUOTA_WINDOW_S
from rehome.domain.run.ledger_view import LedgerView
from rehome.domain.run.observation import Observation
from rehome.domain.run.pace import QUICK_MOVE_S, SMALL_MOVE_S, Pace
from rehome.domain.run.progress import ProgressSample
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState
from rehome.domain.time_range import TimeRange
from rehome.execution.admission.backlog import Backlog
from rehome.execution.admission.fair_share import BytesPerS
from rehome.execution.admission.slots import Slot
from rehome.execution.estimate.airflow_times import AirflowTimes
from rehome.execution.estimate.projection import Course, play_out

FASTEST_PART, SLOWEST_PART = 1.08, 0.95
"""Of what brokers are expected to deliver (``throttle_efficiency``), on average over minutes."""
BURST_S = 6.0
"""At its start a plan copies at once what an unused quota window allows: at least this much, as
time at the rate. First fetches are not throttled and may bring more; what exceeds a whole window
does not count, for it has left the brokers' window before the next round.
"""
GOVERNED_AFTER_S, UNGOVERNED_PART = 60.0, 0.79
"""Before the governor's first corrections take effect, brokers may deliver only this part."""
END_OF_COPY_S = 4.0
"""Until a complete copy is in the ISR, and the controller lists its reassignment no more."""
MEASURED_FROM = 0.1
"""From this part of the bytes on, what brokers deliver is known by measurement."""
OFF_BY, OFF_AT_FIRST = 0.1, 0.25
"""So far the end differs from the one that a poll shows, as a part of the whole time: from then on,
and before (see docs/times.md).
"""


@dataclass(frozen=True, slots=True)
class Beforehand:
    """What the time of a plan that has not started depends on, besides its moves.

    :param rate_bytes_per_s: the throttle per broker and direction; 0 = nothing is ever copied.
    :param lower_rates: that hold instead, where other clients have set some; 0 likewise.
    :param growth_bytes_per_s: of partitions that are written to.
    :param own: throttles of brokers that have one of their own; ``lower_rates`` has them, too.
    """

    policy: Policy
    rate_bytes_per_s: int
    airflow: AirflowTimes
    lower_rates: Mapping[Slot, int]
    growth_bytes_per_s: Mapping[TopicPartition, float]
    own: Mapping[RateKey, int] = field(default_factory=dict)


def before_start(plan: Plan, observation: Observation, terms: Beforehand) -> TimeRange | None:
    """From taking the cluster to the recorded end, if nothing is changed on the way.

    :param plan: what has not started of it.
    :param observation: what admission would go by if it did now.
    :returns: None where some of it would never be copied as things stand.
    """
    if terms.rate_bytes_per_s <= 0 or not all(terms.lower_rates.values()):
        return None
    policy, airflow = terms.policy, terms.airflow
    pace = policy.pace(terms.rate_bytes_per_s, terms.own)
    often, rarely = (
        replace(policy, reaction_s=step_s)
        for step_s in (airflow.step_s.least_s, airflow.step_s.most_s)
    )
    round_bytes = min(policy.max_moves_per_broker, len(plan.moves)) * FETCH_BYTES
    burst_s = min(max(BURST_S, round_bytes / terms.rate_bytes_per_s), QUOTA_WINDOW_S)
    least = round_bytes / QUOTA_WINDOW_S
    fast_rates = _delivered_rates(terms, FASTEST_PART, least)
    fast = _all_of(plan, observation, often, pace, fast_rates, QUICK_MOVE_S)
    grown = _grown(plan, observation, terms.growth_bytes_per_s, fast.seconds)
    slow_rates = _delivered_rates(terms, SLOWEST_PART)
    slow = _all_of(plan, grown, rarely, pace, slow_rates, SMALL_MOVE_S)
    if not (fast.whole and slow.whole):
        return None
    ungoverned_s = min(slow.seconds, GOVERNED_AFTER_S) * (SLOWEST_PART / UNGOVERNED_PART - 1)
    return TimeRange(
        airflow.start_s.least_s + max(fast.seconds - burst_s, 0.0) + airflow.end_s.least_s,
        airflow.start_s.most_s + slow.seconds + ungoverned_s + END_OF_COPY_S + airflow.end_s.most_s,
    )


def around(sample: ProgressSample) -> TimeRange | None:
    """From a poll on, until the last copy is complete; None = its poll does not know."""
    if sample.eta_s is None:
        return None
    in_place = sample.bytes_done / sample.bytes_total if sample.bytes_total else 1.0
    whole_s = sample.eta_s / max(1.0 - in_place, OFF_BY)
    off_s = (OFF_BY if in_place >= MEASURED_FROM else OFF_AT_FIRST) * whole_s
    return TimeRange(max(sample.eta_s - off_s, 0.0), sample.eta_s + off_s)


def _delivered_rates(terms: Beforehand, part: float, least: float = 0.0) -> Callable[[Slot], float]:
    """What brokers deliver, by their rates.

    :param least: bytes per second that pass whatever the rate is.
    """
    efficiency = terms.policy.pace(terms.rate_bytes_per_s).bytes_per_s / terms.rate_bytes_per_s
    return partial(_of_slot, terms, part * efficiency, least)


def _of_slot(terms: Beforehand, part: float, least: float, slot: Slot) -> float:
    return max(part * terms.lower_rates.get(slot, terms.rate_bytes_per_s), least)


def _grown(
    plan: Plan, observation: Observation, growth: Mapping[TopicPartition, float], seconds: float
) -> Observation:
    """The same after so much time of what is written to the partitions."""
    sizes = dict(observation.sizes)
    for partition, bytes_per_s in growth.items():
        for broker in plan.by_partition[partition].current:
            replica = ReplicaId(*partition, broker)
            if replica in sizes:
                sizes[replica] += round(bytes_per_s * seconds)
    return replace(observation, sizes=sizes)


def _all_of(
    plan: Plan,
    observation: Observation,
    policy: Policy,
    pace: Pace,
    bytes_per_s: BytesPerS,
    small_move_s: float,
) -> Course:
    states = dict.fromkeys(plan.by_partition, MoveState.PENDING)
    backlog = Backlog.of(plan, LedgerView(PlanState.RUNNING, states), observation)
    return play_out(backlog, (), observation, policy, pace, bytes_per_s, small_move_s)
