"""How long a plan is going to take: from fast to slow, each of them played out. Pure.

What is not known beforehand makes the range: what brokers deliver of a throttle, how soon Airflow
acts, and how much is written to the partitions meanwhile. It reaches from the moment in which the
plan takes its cluster to the moment in which the ledger holds its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from include.domain.kafka import ReplicaId, TopicPartition
from include.domain.plan.plan import Plan
from include.domain.run.flows import FETCH_BYTES, QUOTA_WINDOW_S
from include.domain.run.ledger_view import LedgerView
from include.domain.run.observation import Observation
from include.domain.run.pace import Pace
from include.domain.run.run_policy import Policy
from include.domain.run.states import MoveState, PlanState
from include.domain.time_range import TimeRange
from include.execution.admission.backlog import Backlog
from include.execution.dry_run.airflow_times import AirflowTimes
from include.execution.dry_run.cluster_state import ClusterState
from include.execution.progress.projection import play_out

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


def predicted_time(
    plan: Plan,
    now: ClusterState,
    policy: Policy,
    rate_bytes_per_s: int,
    airflow: AirflowTimes,
    growth_bytes_per_s: Mapping[TopicPartition, float],
) -> TimeRange | None:
    """From taking the cluster to the recorded end, if nothing is changed on the way.

    :param plan: what has not started of it.
    :param rate_bytes_per_s: the throttle per broker and direction; 0 = nothing is ever copied.
    :param growth_bytes_per_s: of partitions that are written to.
    :returns: None where nothing would ever be copied.
    """
    if rate_bytes_per_s <= 0:
        return None
    seen, pace = _observation(plan, now), policy.pace(rate_bytes_per_s)
    often, rarely = (
        replace(policy, reaction_s=step_s)
        for step_s in (airflow.step_s.least_s, airflow.step_s.most_s)
    )
    round_bytes = min(policy.max_moves_per_broker, len(plan.moves)) * FETCH_BYTES
    fastest = max(FASTEST_PART * pace.bytes_per_s, round_bytes / QUOTA_WINDOW_S)
    burst_s = min(max(BURST_S, round_bytes / rate_bytes_per_s), QUOTA_WINDOW_S)
    fast_s = _copying_s(plan, seen, often, pace, fastest)
    grown = _grown(plan, seen, growth_bytes_per_s, fast_s)
    slow_s = _copying_s(plan, grown, rarely, pace, SLOWEST_PART * pace.bytes_per_s)
    ungoverned_s = min(slow_s, GOVERNED_AFTER_S) * (SLOWEST_PART / UNGOVERNED_PART - 1)
    return TimeRange(
        airflow.start_s.least_s + max(fast_s - burst_s, 0.0) + airflow.end_s.least_s,
        airflow.start_s.most_s + slow_s + ungoverned_s + END_OF_COPY_S + airflow.end_s.most_s,
    )


def _observation(plan: Plan, now: ClusterState) -> Observation:
    """What admission would go by if the plan started now."""
    found = ((move.partition, now.state(move.partition)) for move in plan.moves)
    return Observation(
        taken_at=now.taken_at,
        partitions={partition: state for partition, state in found if state is not None},
        ongoing={},
        live_brokers=frozenset(now.cluster.brokers),
        sizes=now.sizes,
    )


def _grown(
    plan: Plan, seen: Observation, growth: Mapping[TopicPartition, float], seconds: float
) -> Observation:
    """The same after so much time of what is written to the partitions."""
    sizes = dict(seen.sizes)
    for partition, bytes_per_s in growth.items():
        for broker in plan.by_partition[partition].current:
            replica = ReplicaId(*partition, broker)
            if replica in sizes:
                sizes[replica] += round(bytes_per_s * seconds)
    return replace(seen, sizes=sizes)


def _copying_s(
    plan: Plan, seen: Observation, policy: Policy, pace: Pace, delivered_bytes_per_s: float
) -> float:
    """Until the last copy is complete.

    :param policy: its reaction is the time from one step of the worker to the next.
    :param pace: what moves are admitted by.
    """
    states = dict.fromkeys(plan.by_partition, MoveState.PENDING)
    backlog = Backlog.of(plan, LedgerView(PlanState.RUNNING, states), seen)
    return play_out(backlog, (), seen, policy, pace, lambda _: delivered_bytes_per_s).seconds
