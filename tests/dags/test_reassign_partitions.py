"""The whole flow by dag.test() on real brokers."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.domain.plan.infeasible_text import subject_text
from rehome.domain.request.parse_request import parse_request
from rehome.domain.run.states import PlanState
from rehome.ledger.base.records import PlanRecord
from rehome.ledger.store import Ledger
from rehome.settings import Settings
from rehome.warehouse import PlanDirectory
from tests.conftest import Topics
from tests.dags.clusters import Throttles, state_of, throttles_become, throttles_of, to
from tests.dags.runs import Run
from tests.dags.site import Site
from tests.ledger.small_plans import make_plan
from tests.metrics.statsd_listener import StatsdListener


def test_a_reassignment_is_carried_out_and_taken_back_and_foreign_throttles_stay_byte_for_byte(
    foreign_throttle: Callable[[str], Throttles], site: Site, statsd: StatsdListener
) -> None:
    topic = site.topics.create([[1, 2], [2, 3]])
    site.topics.fill(topic, 200)
    before = foreign_throttle(topic)
    wanted = to(topic, {0: [3, 2], 1: [3, 2]})
    run = site.run(action="reassign", reassignment=wanted, throttle=20_000_000)
    assert run.state == "success", run.log
    partitions = site.gateway.describe_topics([topic])[topic].partitions
    assert [partitions[n].replicas for n in (0, 1)] == [(3, 2), (3, 2)]
    (plan,) = site.ledger.plans()
    assert plan.state is PlanState.DONE
    assert run.note.startswith("Done. Reassign as given: ")
    assert "2 of 2 partitions moved. A fresh read proves it. " in run.note
    assert " are in place. It took " in run.note
    assert not site.ledger.throttles(open_only=True)
    measured(statsd, plan, asked=20_000_000)
    assert all(entry.changed_at for entry in site.ledger.throttles())
    leaders = PlanDirectory(plan.plan_dir).read_json("leaders.json")
    assert (leaders["waiting"], leaders["refused"]) == ([], {})
    throttles_become(site.gateway, [topic], before)

    back = site.run(action="rollback", plan_id=plan.plan_id)
    assert back.state == "success", back.log
    partitions = site.gateway.describe_topics([topic])[topic].partitions
    assert [partitions[n].replicas for n in (0, 1)] == [(1, 2), (2, 3)]
    rollback, taken_back = site.ledger.plans()
    assert (rollback.state, taken_back.plan_id) == (PlanState.DONE, plan.plan_id)
    reported = (taken_back.state, taken_back.cause)
    assert reported == (PlanState.ROLLED_BACK, f"by plan {rollback.plan_id}")
    throttles_become(site.gateway, [topic], before)


def measured(statsd: StatsdListener, plan: PlanRecord, asked: int) -> None:
    """See that metrics tell of a plan with two moves, from its first step to its end."""
    end = f"airflow.rehome.plan.fresh_until.{plan.cluster_id}.{plan.plan_id}"
    wait_until(lambda: statsd.values().get(end, [1])[-1] == 0, "its end to be reported")
    reported = statsd.values()
    of_cluster = {
        name.replace(f".{plan.cluster_id}", "").removeprefix("airflow.rehome."): values
        for name, values in reported.items()
    }
    assert set(of_cluster["plan.bytes_total"]) == {plan.bytes_total, 0}
    assert set(of_cluster["plan.throttle_asked"]) == {asked, 0}
    assert max(of_cluster["plan.moves.done"]) == 2
    by_broker = [of_cluster[f"plan.broker_reassigning.{broker}"] for broker in (1, 2, 3)]
    assert max(by_broker[2]) > 0, "broker 3 gets a replica"
    assert [values[-1] for values in by_broker] == [0, 0, 0]
    assert sum(of_cluster["moves_admitted"]) == sum(of_cluster["moves_ended.done"]) == 2
    assert sum(of_cluster["throttle_changes.set_up"]) == 1
    assert of_cluster["cluster.plans.done"][-1] == 1
    assert of_cluster["cluster.throttles_owed"][-1] == 0
    assert of_cluster["gates_failed.plan"] == of_cluster["gates_failed.snapshot"] == [0]
    ended = {name: values[-1] for name, values in of_cluster.items() if name.startswith("plan.")}
    assert not any(ended.values())


def test_preferred_leaders_lead_again_and_the_log_says_how_far_that_is(site: Site) -> None:
    topic = site.topics.create([[1, 2], [1, 2]])
    order = {0: [2, 1], 1: [2, 1]}
    run = site.run(action="reassign", reassignment=to(topic, order), throttle=10_000_000)
    assert run.state == "success", run.log
    assert "Preferred leaders: 2 of 2 partitions dealt with" in run.log
    partitions = site.gateway.current_topics([topic])[topic].partitions
    assert [partitions[number].leader for number in (0, 1)] == [2, 2]


def test_a_dry_run_leaves_the_cluster_as_it_was(site: Site) -> None:
    topic = site.topics.create([[1, 2], [2, 3]])
    site.topics.fill(topic, 20)
    before = state_of(site.gateway, [topic])
    wanted = to(topic, {0: [3, 2]})
    run = site.run(action="reassign", reassignment=wanted, preset="check_only")
    assert run.state == "success", run.log
    assert "Preset check_only sets dry_run=True." in run.log
    assert run.note.startswith("Reassign as given: 1 replica, ")
    assert run.tasks["throttle"] == run.tasks["execute"] == run.tasks["verdict"] == "skipped"
    assert state_of(site.gateway, [topic]) == before
    (plan,) = site.ledger.plans()
    assert plan.state is PlanState.PLANNED
    assert (plan.request["preset"], plan.request["dry_run"]) == ("check_only", True)
    # A small move: it takes the time of its bytes, but no part of a slot (a fortieth of a step).
    predicted_s = PlanDirectory(plan.plan_dir).load().summary.predicted_s
    assert predicted_s == pytest.approx(Settings.load().reaction_s, rel=0.01)
    assert "report.html" in run.log


def test_limits_of_the_form_bind_the_plan(site: Site) -> None:
    topic = site.topics.create([[1]] * 6)
    site.topics.fill(topic, 600)
    limits = {"exclude_brokers": "2, 3", "budget_moves": 1, "weights": {"4": 2}, "tolerance": 0.1}
    run = site.run(
        action="rebalance", topics=[topic], move_overhead_bytes=0, dry_run=True, **limits
    )
    assert run.state == "success", run.log
    directory = PlanDirectory(site.ledger.plans()[0].plan_dir)
    assert [move.adding for move in directory.moves()] == [(4,)]
    asked = parse_request(directory.read_json("request.json"))
    assert (asked.exclude_brokers, asked.budget_moves, asked.weights) == ((2, 3), 1, {4: 2.0})


def test_a_drain_goes_on_with_what_its_budget_left(site: Site) -> None:
    topic = site.topics.create([[4, 1], [4, 2], [1, 2]])
    site.topics.fill(topic, 30)
    asked = {"action": "drain", "brokers": [4], "topics": [topic], "budget_moves": 1}
    left = []
    for unpaid in (True, False):
        run = site.run(**asked)
        assert run.state == "success", run.log
        assert ("has left there because its budget was spent" in run.log) is unpaid
        partitions = site.gateway.describe_topics([topic])[topic].partitions.values()
        left.append(sum(4 in state.replicas for state in partitions))
    assert left == [1, 0]
    first = PlanDirectory(site.ledger.plans()[1].plan_dir).load().summary.infeasible
    assert [(subject_text(item.subject), item.nearest) for item in first] == [("broker 4", 1)]


def test_a_run_without_moves_ends_in_success_at_once(site: Site) -> None:
    topic = site.topics.create([[1, 2]])
    run = site.run(action="reassign", reassignment=to(topic, {0: [1, 2]}))
    assert run.state == "success", run.log
    assert site.ledger.plans()[0].state is PlanState.DONE


@pytest.mark.parametrize(
    ("conf", "reported"),
    [
        ({"action": "drain"}, "needs brokers"),
        ({"action": "drain", "brokers": [9]}, "9"),
        # As the first: reported before anything is read (tests/domain/request has them all).
        pytest.param(
            {"action": "drain", "brokers": [4], "broker": [3]},
            "Unknown parameter 'broker'",
            marks=pytest.mark.long,
        ),
        pytest.param(
            {"action": "rebalance", "window_end": "tonight"},
            "window_end='tonight'",
            marks=pytest.mark.long,
        ),
        pytest.param(
            {"action": "reassign", "reassignment": {"version": 2, "partitions": []}},
            "version",
            marks=pytest.mark.long,
        ),
        ({"action": "set_replication_factor", "replication_factor": 9}, "replication_factor"),
        # tests/dags/refusals asks for it, too, and for partitions that are not there.
        pytest.param(
            {"action": "reassign", "reassignment": to("nothing-here", {0: [1]})},
            "nothing-here",
            marks=pytest.mark.long,
        ),
        ({"action": "rollback", "plan_id": "no-such-plan"}, "no-such-plan"),
        ({"kafka_config_id": "nowhere", "action": "rebalance"}, "nowhere"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_input_is_reported_in_plain_text_and_changes_nothing(
    conf: dict[str, Any], reported: str, site: Site
) -> None:
    topic = site.topics.create([[1, 2]])
    before = state_of(site.gateway, [topic])
    run = site.run(**conf)
    assert run.state == "failed"
    assert reported in run.log
    assert "Nothing was changed" in run.log
    assert run.tasks["throttle"] in ("upstream_failed", "skipped")
    assert state_of(site.gateway, [topic]) == before
    assert not site.ledger.plans()


def test_an_unreachable_cluster_is_named_with_its_cause(
    rehome: Callable[..., Run],
) -> None:
    run = rehome({"bootstrap.servers": "127.0.0.1:1"}, action="rebalance")
    assert run.state == "failed"
    assert "refused the connection" in run.log


def test_a_second_run_on_a_busy_cluster_is_refused_before_anything_changes(site: Site) -> None:
    topic = site.topics.create([[1, 2]])
    first = make_plan("first", cluster_id=site.cluster.cluster_id)
    site.ledger.create_plan(first, {}, "file:///nowhere", "the-first-run", "test")
    site.ledger.approve("first", first.plan_hash, "test")
    site.ledger.claim("first")
    run = site.run(action="reassign", reassignment=to(topic, {0: [3, 2]}))
    assert run.state == "failed"
    assert "the-first-run" in run.log
    assert [plan.plan_id for plan in site.ledger.plans()] == ["first"]


@pytest.mark.parametrize(
    "step",
    [
        pytest.param("throttle", marks=pytest.mark.long),
        pytest.param("execute", marks=pytest.mark.long),
        "progress",
        "verify",
    ],
)
def test_a_step_that_raises_leaves_no_throttle_and_a_failed_run(
    step: str,
    foreign_throttle: Callable[[str], Throttles],
    monkeypatch: pytest.MonkeyPatch,
    site: Site,
) -> None:
    topic = site.topics.create([[1, 2]])
    site.topics.fill(topic, 300, size_bytes=10_000)
    before = foreign_throttle(topic)
    operator = importlib.import_module("dags.reassign_partitions").dag.get_task(step)
    real = type(operator).step

    def break_down(self: Any, context: Any) -> None:
        """Progress breaks while the copy is in flight, verify before it has proven anything."""
        if step not in ("progress", "verify"):
            real(self, context)
        if step != "verify":
            wait_until(lambda: throttles_of(site.gateway, [topic]) != before, "a throttle of ours")
        raise AirflowFailException("broken on purpose")

    monkeypatch.setattr(type(operator), "step", break_down)
    run = site.run(action="reassign", reassignment=to(topic, {0: [3, 2]}), throttle=1_000_000)
    assert run.state == "failed", run.tasks
    assert run.tasks["clear_throttle"] == run.tasks["report"] == "success", run.log
    assert run.tasks["verdict"] == "failed"
    throttles_become(site.gateway, [topic], before)
    assert not site.gateway.list_reassignments()
    assert not site.ledger.throttles(open_only=True)
    (plan,) = site.ledger.plans()
    assert plan.state is (PlanState.DONE if step == "verify" else PlanState.FAILED)
    cause = "AirflowFailException: broken on purpose. "
    assert f"reassign_partitions failed: {cause}Plan {plan.plan_id} is {plan.state}" in run.log


# In `make test` the gate refuses a dead broker in tests/quality, and e2e runs the real plan job.
@pytest.mark.long
def test_a_dead_broker_is_refused_by_the_gate_in_the_real_plan_job(
    private_cluster: Callable[..., LocalCluster], ledger: Ledger, rehome: Callable[..., Run]
) -> None:
    cluster = private_cluster(brokers=3)
    topics = Topics(cluster)
    topic = topics.create([[1, 2], [2, 3]])
    topics.fill(topic, 20)
    cluster.kill(3)
    wait_until(lambda: cluster.live_brokers() == {1, 2}, "the dead broker to be fenced")
    run = rehome(cluster, action="rebalance", with_spark=True)
    assert run.state == "failed"
    assert "Gate on the snapshot: refused" in run.log
    assert "BROKER_NOT_AVAILABLE" in run.log
    assert "remedy:" in run.log
    assert not ledger.plans()
