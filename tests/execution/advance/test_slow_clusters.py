"""Thousands of topics on a cluster that takes half a second for each: being slow is no failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import pytest

from rehome.domain.plan.plan import Plan
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState
from rehome.errors import RehomeError
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.access.progress_timeout import READINGS_WITHOUT_NEWS
from rehome.execution.advance import advance
from rehome.execution.control import cancel as aborting
from rehome.execution.control.cancel import abort
from rehome.execution.throttle.configs import VERIFY_TIMEOUT_S, settle_what_can_be
from rehome.execution.throttle.keys import LEADER_RATE, LISTS
from rehome.execution.throttle.ownership.marks import DEFAULT, is_mark
from rehome.execution.throttle.rate_scope import DEFAULT_HONOURED_SINCE, METADATA_VERSION
from rehome.execution.throttle.set_up import clear_throttle, set_up_throttle
from rehome.ledger.base.records import ThrottleState
from rehome.ledger.store import Ledger
from tests.execution.simulated_cluster import SimulatedCluster
from tests.execution.slow_cluster import SlowCluster, VirtualTime, virtual_time
from tests.ledger.small_plans import move

TOPICS = 3_000
MakePlan = Callable[..., Plan]


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> VirtualTime:
    return virtual_time(monkeypatch)


def slow(plan: Plan, time: VirtualTime) -> SlowCluster:
    features = {METADATA_VERSION: DEFAULT_HONOURED_SINCE}
    cluster = SlowCluster([1, 2, 3], plan.moves, features)
    cluster.time = time
    return cluster


def port(cluster: SimulatedCluster) -> OwnCluster:
    return cast(OwnCluster, cluster)


def transactions(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the transactions that write."""
    counted: Counter[str] = Counter()
    writing = type(ledger).writing

    def count(self: Ledger) -> Any:
        counted["written"] += 1
        return writing(self)

    monkeypatch.setattr(type(ledger), "writing", count)
    return counted


def settings(cluster: SlowCluster) -> set[str]:
    """Keys that brokers know, by resource."""
    return {f"{where} {key}" for where, key in cluster.configs if not is_mark(key)}


@pytest.mark.slow
def test_throttles_of_thousands_of_topics_are_set_up_and_taken_down_however_long_it_takes(
    time: VirtualTime, ledger: Ledger, approved: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = approved(*[move(f"t{n}", 0, (1, 2), (3, 2)) for n in range(TOPICS)], cluster_id="sim")
    cluster = slow(plan, time)
    set_up_throttle(plan, ledger, port(cluster), 1000)
    assert len(settings(cluster)) == len(LISTS) * (TOPICS + 1)
    assert time.now_s > 100 * VERIFY_TIMEOUT_S
    ledger.transition(plan.plan_id, PlanState.FAILED, "enough")
    written = transactions(ledger, monkeypatch)
    done = clear_throttle(plan.plan_id, ledger, port(cluster))
    assert (len(done.cleared), done.owed) == (len(LISTS) * (TOPICS + 1), ())
    assert cluster.configs == {}
    assert written["written"] <= 5, "what a round has shown is one transaction"


@pytest.mark.slow
def test_changes_that_come_one_by_one_are_waited_for_as_long_as_they_come(
    time: VirtualTime, ledger: Ledger, approved: MakePlan
) -> None:
    """More readings than may be without news, and far more time than may: there is news in each."""
    plan = approved(*[move(f"t{n}", 0, (1, 2), (3, 2)) for n in range(20)], cluster_id="sim")
    cluster = slow(plan, time)
    set_up_throttle(plan, ledger, port(cluster), 1000)
    before, cluster.trickles = len(settings(cluster)), True
    begun = time.now_s
    done = clear_throttle(plan.plan_id, ledger, port(cluster))
    assert (len(done.cleared), done.owed) == (before, ())
    assert settings(cluster) == set()
    assert before > READINGS_WITHOUT_NEWS
    assert time.now_s - begun > 10 * VERIFY_TIMEOUT_S


def test_a_cluster_that_never_makes_a_change_is_given_up_for_want_of_progress(
    time: VirtualTime, ledger: Ledger, approved: MakePlan
) -> None:
    plan = approved(move("t", 0, (1, 2), (3, 2)), cluster_id="sim")
    cluster = slow(plan, time)
    set_up_throttle(plan, ledger, port(cluster), 1000)
    cluster.stuck = True
    begun = time.now_s
    done = clear_throttle(plan.plan_id, ledger, port(cluster))
    assert (done.cleared, len(done.owed)) == ((), 4)
    assert {e.state for e in ledger.throttles(plan.plan_id)} == {ThrottleState.OWED}
    rounds = (time.now_s - begun) / (2 * cluster.delay_s)
    assert READINGS_WITHOUT_NEWS < rounds < 40


def test_a_throttle_that_does_not_read_back_is_refused_after_more_than_one_poll(
    time: VirtualTime, ledger: Ledger, approved: MakePlan
) -> None:
    plan = approved(move("t", 0, (1, 2), (3, 2)), cluster_id="sim")
    cluster = slow(plan, time)
    cluster.delay_s, cluster.stuck = 4 * VERIFY_TIMEOUT_S, True
    with pytest.raises(RehomeError, match="does not read back as set"):
        set_up_throttle(plan, ledger, port(cluster), 1000)
    assert time.now_s > (READINGS_WITHOUT_NEWS + 2) * cluster.delay_s


def test_a_rate_that_keeps_changing_is_reported_and_everything_else_is_read_once_it_has_settled(
    time: VirtualTime, ledger: Ledger, approved: MakePlan
) -> None:
    plan = approved(move("t", 0, (1, 2), (3, 2)), cluster_id="sim")
    cluster = slow(plan, time)

    def describe(resources: Any, keys: Any = None, real: Any = cluster.describe_configs) -> Any:
        cluster.configs[DEFAULT, LEADER_RATE] = str(time.now_s)
        return real(resources, keys)

    cluster.describe_configs = describe  # type: ignore[method-assign]
    with pytest.raises(RehomeError, match="keep changing, as on the brokers' default"):
        settle_what_can_be(port(cluster), [DEFAULT], [LEADER_RATE])


def test_a_move_that_ends_while_it_is_cancelled_is_waited_for_at_its_brokers_own_pace(
    time: VirtualTime, ledger: Ledger, approved: MakePlan
) -> None:
    """Metadata is behind the controller for three readings, each of which takes long."""
    plan = approved(move("t", 0, (1, 2), (3, 2)), cluster_id="sim")
    cluster = slow(plan, time)
    (only,) = plan.moves
    behind = [(3, 2, 1)] * 3

    def describe(names: Any, real: Any = cluster.describe_topics) -> Any:
        time.pass_s(2 * aborting.SETTLED_TIMEOUT_S)
        now = cluster.replicas[only.partition]
        cluster.replicas[only.partition] = behind.pop() if behind else now
        found = real(names)
        cluster.replicas[only.partition] = only.target
        return found

    cluster.describe_topics = describe  # type: ignore[method-assign, assignment]
    after = aborting.ended_before_cancel(port(cluster), plan.moves)
    assert (after.ended, after.unclear) == ({only.partition: MoveState.DONE}, {})


@pytest.mark.slow
def test_what_a_step_has_found_out_is_written_in_as_many_transactions_however_much_it_is(
    ledger: Ledger, approved: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    for moves in (2, 40):
        plan = approved(*[move("t", n, (1, 2), (3, 2)) for n in range(moves)], cluster_id="sim")
        cluster = SimulatedCluster([1, 2, 3], plan.moves)
        many = Policy(1000, moves, max_partitions_in_flight=moves, metadata_grace_s=0)
        with monkeypatch.context() as patched:
            counted = transactions(ledger, patched)
            assert len(advance(plan, ledger, port(cluster), many).admitted) == moves
            admitted = counted["written"]
            for partition in list(cluster.targets)[: moves // 2]:
                cluster.replicas[partition] = cluster.targets.pop(partition)
            assert len(advance(plan, ledger, port(cluster), many).settled) == moves // 2
            settled = counted["written"]
            done = abort(plan.plan_id, ledger, port(cluster), "enough")
            assert len(done.cancelled) == moves // 2
        written.append((admitted, settled - admitted, counted["written"] - settled))
    assert written[0] == written[1]
