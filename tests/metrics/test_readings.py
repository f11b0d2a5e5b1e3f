"""What a poll, a step and a sweep know, as values of metrics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from rehome.account.known import Known, NotKnown, Source, Unknown
from rehome.account.pace import PlanPace
from rehome.domain.kafka import BrokerError, PartitionState, ReplicaId, TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.causes.error_kind import ErrorKind
from rehome.domain.run.causes.hurts import Hurt, HurtKind
from rehome.domain.run.flows import BrokerFlow, FlowSample, RateChange, RateReason
from rehome.domain.run.ledger_view import LedgerView, MoveSums
from rehome.domain.run.observation import Observation
from rehome.domain.run.progress import ProgressSample, ReplicaState, ReplicaStatus
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.actions import SetRate
from rehome.execution.advance import Advance
from rehome.execution.poll import Poll
from rehome.execution.progress.progress import Progress
from rehome.ledger.store import Ledger
from rehome.metrics import catalog
from rehome.metrics.catalog import METRICS, MetricKind, MetricSubject, dotted_name
from rehome.metrics.readings import (
    FOUND_BY_POLLS,
    ClusterGauges,
    PlanJob,
    Polled,
    Reading,
    broker_readings,
    cluster_readings,
    end_readings,
    error_readings,
    plan_job_readings,
    poll_readings,
    rate_readings,
    step_readings,
)
from tests.execution.observed import POLICY, T0, in_flight
from tests.ledger.small_plans import make_plan, move

PLAN = make_plan("p", move("t", 0, (1, 2), (3, 2), 5000), move("t", 1, (1, 2), (3, 2), 3000))
POLLED = Polled("c1", "p", POLICY, 60.0, 8000, frozenset({1, 2, 3}))
PACE = PlanPace(T0, 30.0, {3: 30.0}, {1: 20.0, 2: 10.0}, {}, frozenset())
AT = T0 + timedelta(seconds=10)


def names(readings: Iterable[Reading]) -> dict[str, float]:
    """Name with labels → value; each only once."""
    reported = list(readings)
    found = {dotted_name(reading.metric, reading.labels): reading.value for reading in reported}
    assert len(found) == len(reported)
    return {name.removeprefix("rehome."): value for name, value in found.items()}


def a_poll(view: LedgerView, seen: Observation, sample: ProgressSample) -> Poll:
    partition = PLAN.moves[0].partition
    lags = (40, 200, None)
    statuses = tuple(
        ReplicaStatus(
            replica=_replica(partition, broker),
            state=ReplicaState.BEHIND,
            status_at=AT,
            messages_behind=lag,
        )
        for broker, lag in enumerate(lags, 1)
    )
    return Poll(view, seen, [], Progress(statuses, sample, ""), (Hurt(HurtKind.FOREIGN),))


def _replica(partition: TopicPartition, broker: int) -> ReplicaId:
    return ReplicaId(*partition, broker)


SAMPLE = ProgressSample(
    *(AT, 3000, 8000, 4, 6, 2),
    rate_bytes_per_s=250.5,
    eta_s=20.0,
    messages_behind=240,
    grown_bytes=500,
    shrunk_bytes=500,
)


def midway(plan: Plan = PLAN) -> Poll:
    view, seen = in_flight(plan)
    flow = BrokerFlow("in", 3, 900, 100, 2)
    view = replace(
        view,
        settled={MoveState.DONE: MoveSums(4, 9)},
        last_progress_at=T0,
        rate_bytes_per_s=1100,
        rates=(RateChange(T0, 1100, 900, 1000, RateReason.STRAIN, ""),),
        flows=(FlowSample(T0, AT, (flow, replace(flow, direction="out", broker=1))),),
    )
    bystander = PartitionState(1, (1, 2, 3), frozenset({1, 2}))
    seen = replace(
        seen,
        taken_at=AT,
        bystanders={TopicPartition("other", 0): bystander},
        missing={4: BrokerError(7, "REQUEST_TIMED_OUT", "")},
    )
    return a_poll(view, seen, SAMPLE)


def test_a_poll_shows_progress_throttle_and_strain() -> None:
    reported = names(poll_readings(POLLED, midway()))
    assert reported == {
        "plan.fresh_until.c1.p": (AT + timedelta(seconds=180)).timestamp(),
        "plan.bytes_total.c1": 8000,
        "plan.bytes_left.c1": 5000,
        "plan.rate.c1": 250.5,
        "plan.ends_at.c1": (AT + timedelta(seconds=20)).timestamp(),
        "plan.window_end.c1": 0,
        "plan.moved_at.c1": T0.timestamp(),
        "plan.lag_largest.c1": 200,
        "plan.lag_sum.c1": 240,
        "plan.moves.c1.pending": 0,
        "plan.moves.c1.admitted": 2,
        "plan.moves.c1.done": 4,
        "plan.moves.c1.cancelled": 0,
        "plan.moves.c1.superseded": 0,
        "plan.moves.c1.failed": 0,
        "plan.moves.c1.gone": 0,
        "plan.throttle_asked.c1": 1000,
        "plan.throttle_target.c1": 900,
        "plan.throttle_set.c1": 1100,
        "plan.throttle_delivered.c1": 90,
        "plan.strain_outside_isr.c1": 1,
        "plan.strain_messages_behind.c1": 0,
        "plan.brokers_silent.c1": 1,
        **{f"plan.hurts.c1.{kind}": float(kind is HurtKind.FOREIGN) for kind in FOUND_BY_POLLS},
        "bytes_moved.c1": 900,
    }


def test_a_metric_not_known_yet_is_zero_and_strain_that_was_not_watched_is_left_out() -> None:
    view, seen = in_flight(PLAN)
    sample = ProgressSample(AT, 0, 8000, 0, 2, 2)
    reported = names(poll_readings(POLLED, a_poll(view, seen, sample)))
    assert {
        reported["plan.rate.c1"],
        reported["plan.ends_at.c1"],
        reported["plan.throttle_set.c1"],
    } == {0}
    assert not any(name.startswith("plan.strain") for name in reported)


def test_bytes_that_another_process_has_reported_are_not_reported_again() -> None:
    found = midway()
    late = replace(
        found, observation=replace(found.observation, taken_at=AT + timedelta(seconds=1))
    )
    assert names(poll_readings(POLLED, late))["bytes_moved.c1"] == 0


def test_a_windows_end_is_reported() -> None:
    polled = replace(POLLED, policy=replace(POLICY, window_end=AT))
    assert names(poll_readings(polled, midway()))["plan.window_end.c1"] == AT.timestamp()


def test_a_step_shows_what_it_changed_and_what_it_saw() -> None:
    first, second = (move.partition for move in PLAN.moves)
    found = midway()
    done = Advance(
        actions=[SetRate(900, "", RateReason.STRAIN)],
        admitted=[first],
        settled={second: MoveState.DONE},
        errors={first: BrokerError(39, "INVALID_REPLICA_ASSIGNMENT", "")},
        last_poll=found,
        copied_bytes=1234,
    )
    reported = names(step_readings(POLLED, done))
    changed = {"bytes_moved.c1": 1234, "plan.moves.c1.admitted": 1, "plan.moves.c1.done": 5}
    assert reported.items() > (names(poll_readings(POLLED, found)) | changed).items()
    counted = {name: value for name, value in reported.items() if not name.startswith("plan.")}
    assert {name: value for name, value in counted.items() if value} == {
        "bytes_moved.c1": 1234,
        "moves_admitted.c1": 1,
        "moves_ended.c1.done": 1,
        "throttle_changes.c1.strain": 1,
        "errors.c1.refused": 1,
    }
    assert len(counted) == 2 + 5 + len(RateReason) + len(ErrorKind), "counters begin at 0"


def test_nothing_of_a_plan_that_has_ended_stays() -> None:
    during = names(poll_readings(POLLED, midway())).keys() - {"bytes_moved.c1"}
    of_brokers = names(broker_readings(POLLED, Known(PACE, AT, Source.POLL), [])).keys()
    after = names(end_readings("c1", "p", POLLED.brokers))
    assert after.keys() == during | of_brokers
    assert not any(after.values())


def test_each_broker_of_the_plan_shows_what_it_copies() -> None:
    flying = [(PLAN.moves[0], 1), (PLAN.moves[1], 2)]
    found = names(broker_readings(POLLED, Known(PACE, AT, Source.POLL), flying))
    assert found == {
        **{f"plan.broker_reassigning.c1.{b}": n for b, n in ((1, 1), (2, 1), (3, 2))},
        **{f"plan.broker_bytes_in.c1.{b}": n for b, n in ((1, 0), (2, 0), (3, 30))},
        **{f"plan.broker_bytes_out.c1.{b}": n for b, n in ((1, 20), (2, 10), (3, 0))},
    }


def test_a_rate_that_is_not_known_is_not_reported_as_zero() -> None:
    flying = [(PLAN.moves[0], None), (move("r", 0, (1, 2), (2, 1), 10), 1)]
    found = names(broker_readings(POLLED, Unknown(NotKnown.ONE_POLL), flying))
    assert found == {f"plan.broker_reassigning.c1.{b}": n for b, n in ((1, 0), (2, 0), (3, 1))}


def test_a_sweep_reports_its_cluster_and_a_plans_end_only_what_it_knows() -> None:
    swept = ClusterGauges("c1", T0, AT, {PlanState.DONE: 3}, orphaned=1, owed=2, foreign=0)
    reported = names(cluster_readings(swept))
    assert reported["cluster.snapshot_taken_at.c1"] == T0.timestamp()
    assert reported["cluster.swept_at.c1"] == AT.timestamp()
    assert (reported["cluster.plans.c1.done"], reported["cluster.plans.c1.failed"]) == (3, 0)
    assert (reported["cluster.plans_orphaned.c1"], reported["cluster.throttles_owed.c1"]) == (1, 2)
    assert reported["cluster.throttles_foreign.c1"] == 0
    watched = ClusterGauges("c1", findings={("dead_broker", "error"): 2, ("imbalance", "info"): 0})
    assert names(cluster_readings(watched)) == {
        "cluster.findings.c1.dead_broker.error": 2,
        "cluster.findings.c1.imbalance.info": 0,
    }
    assert names(cluster_readings(ClusterGauges("c1", owed=0))) == {"cluster.throttles_owed.c1": 0}


def test_a_plan_job_shows_how_long_it_took_and_which_gate_failed() -> None:
    job = PlanJob("c1", timedelta(seconds=2.5), {"snapshot": True, "plan": False})
    assert names(plan_job_readings(job)) == {
        "cluster.plan_job_s.c1": 2.5,
        "gates_failed.c1.snapshot": 0,
        "gates_failed.c1.plan": 1,
    }


def test_every_metric_of_the_catalogue_has_a_source() -> None:
    facts = ClusterGauges("c1", T0, AT, {}, 0, 0, 0, 0.0, {("dead_broker", "error"): 0})
    sources = (
        poll_readings(POLLED, midway()),
        step_readings(POLLED, Advance()),
        broker_readings(POLLED, Known(PACE, AT, Source.POLL), []),
        cluster_readings(facts),
        rate_readings("c1", []),
        error_readings("c1", ErrorKind.REFUSED),
        plan_job_readings(PlanJob("c1", timedelta(0), {"plan": True})),
    )
    assert {reading.metric for source in sources for reading in source} == set(METRICS)
    assert all(
        (m.subject is MetricSubject.EVENT) == (m.kind is MetricKind.COUNTER) for m in METRICS
    )
    assert [m for m in METRICS if catalog.Label.PLAN in m.labels] == [catalog.FRESH_UNTIL]


def test_plans_are_counted_by_state_on_each_cluster(tmp_path: Path) -> None:
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
        for plan_id, cluster in (("a", "c1"), ("b", "c1"), ("c", "c2")):
            plan = make_plan(plan_id, cluster_id=cluster)
            ledger.create_plan(plan, {}, "file:///x", "run", "test")
        ledger.transition("b", PlanState.CANCELLED, "")
        assert ledger.plan_states_on("c1") == {PlanState.PLANNED: 1, PlanState.CANCELLED: 1}
        assert ledger.plan_states_on("c2") == {PlanState.PLANNED: 1}
        assert ledger.plan_states_on("elsewhere") == {}
