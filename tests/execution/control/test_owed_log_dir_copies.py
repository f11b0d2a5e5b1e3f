"""Copies that outlived their plan, about which a broker or a topic gives no answer at the
moment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, cast

import pytest

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.domain.clock import utc_now
from rehome.domain.kafka import BrokerError, BrokerId, LogDir, Partial, TopicDescription
from rehome.domain.plan.plan import Plan
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.completion.verify import Elsewhere, ElsewhereKind, verify
from rehome.execution.control.cancel import abort
from rehome.execution.control.owed_log_dir_copies import stop_owed_copies
from rehome.execution.observation.observe import observe
from rehome.execution.throttle.keys import LOG_DIR_RATE
from rehome.execution.throttle.set_up import clear_throttle, set_up_throttle
from rehome.ledger.store import Ledger
from tests.execution.simulated_cluster import SimulatedCluster
from tests.ledger.small_plans import move

BETWEEN = move("t", 0, (1, 2), (3, 2))
WITHIN = move("t", 0, (1, 2), (1, 2), 100, ("/a", "/a"), ("/b", "any"))


class Reticent(SimulatedCluster):
    """Brokers in ``silent`` refuse DescribeLogDirs, topics in ``hidden`` refuse Describe."""

    silent: Collection[BrokerId] = ()
    hidden: Collection[str] = ()

    def describe_log_dirs(self, brokers: Any = None, partitions: Any = None) -> Any:
        found: Partial[list[LogDir]] = super().describe_log_dirs(brokers, partitions)
        refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED.error()
        missing: dict[BrokerId, BrokerError] = dict.fromkeys(self.silent, refused)
        return Partial([d for d in found.value if d.broker not in missing], missing)

    def describe_topics(self, names: Any = None, **options: Any) -> dict[str, TopicDescription]:
        refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED.error()
        return {
            name: replace(topic, error=refused, partitions={}) if name in self.hidden else topic
            for name, topic in super().describe_topics(names, **options).items()
        }


def ended_with_one_admitted(plan: Plan, ledger: Ledger, cluster: SimulatedCluster) -> OwnCluster:
    """Its throttle stands, and its move is not known to have ended."""
    port = cast(OwnCluster, cluster)
    set_up_throttle(plan, ledger, port, 1000)
    ledger.claim(plan.plan_id)
    ledger.admit(plan.plan_id, plan.moves, observe(port, plan.moves, utc_now()), 1000)
    ledger.mark_sent(plan.plan_id, [item.partition for item in plan.moves])
    ledger.transition(plan.plan_id, PlanState.FAILED, "its cancel was refused")
    return port


def test_what_a_broker_does_not_show_keeps_its_throttle(
    ledger: Ledger, approved: Callable[..., Plan]
) -> None:
    plan, cluster = approved(WITHIN, cluster_id="sim"), Reticent([1, 2], [WITHIN])
    port = ended_with_one_admitted(plan, ledger, cluster)
    cluster.silent = [1]
    owed = clear_throttle(plan.plan_id, ledger, port).owed
    assert {entry.key for entry in owed} == {LOG_DIR_RATE}
    message = "broker 1 does not say whether t-0 is still being copied"
    assert {entry.detail for entry in owed} == {message}
    cluster.silent = []
    assert not clear_throttle(plan.plan_id, ledger, port).owed
    assert cluster.configs == {}


def test_a_broker_that_shows_no_log_dir_is_not_said_to_hold_a_replica_in_one(
    approved: Callable[..., Plan],
) -> None:
    plan, cluster = approved(WITHIN, cluster_id="sim"), Reticent([1, 2], [WITHIN])
    cluster.silent = [1]
    (problem,) = verify(plan, cast(OwnCluster, cluster)).problems.values()
    assert problem == Elsewhere(ElsewhereKind.IN_NO_LOG_DIR, broker=1, wanted_dir="/b")


def test_what_a_reassignment_has_ended_as_is_not_guessed_while_its_topic_is_hidden(
    ledger: Ledger, approved: Callable[..., Plan]
) -> None:
    plan, cluster = approved(BETWEEN, cluster_id="sim"), Reticent([1, 2, 3], [BETWEEN])
    port = ended_with_one_admitted(plan, ledger, cluster)
    cluster.replicas[BETWEEN.partition] = BETWEEN.target
    cluster.hidden = ["t"]
    found = stop_owed_copies(ledger, port, "sim")
    assert (found.unread, found.ended, found.copying) == ((BETWEEN.partition,), {}, ())
    assert ledger.view(plan.plan_id).moves == {BETWEEN.partition: MoveState.ADMITTED}
    cluster.hidden = []
    found = stop_owed_copies(ledger, port, "sim")
    assert found.ended == {BETWEEN.partition: MoveState.DONE}


def halfway(plan: Plan, ledger: Ledger) -> tuple[Reticent, OwnCluster]:
    """Its first step of two is done, and its topic is not described any more."""
    (moved,) = plan.moves
    cluster = Reticent([1, 2, 3, 4], [moved])
    port = cast(OwnCluster, cluster)
    ledger.claim(plan.plan_id)
    seen = observe(port, plan.moves, utc_now())
    ledger.admit(plan.plan_id, plan.moves, seen, None, {moved.partition: (1, 2, 3)})
    ledger.mark_sent(plan.plan_id, [moved.partition])
    cluster.replicas[moved.partition] = (1, 2, 3)
    cluster.hidden = ["t"]
    return cluster, port


@pytest.mark.parametrize("log_dirs", [(), (("/a", "/a"), ("any", "any"))])
def test_what_may_be_between_two_steps_is_owed_until_its_topic_is_described_again(
    ledger: Ledger, approved: Callable[..., Plan], log_dirs: tuple[tuple[str, ...], ...]
) -> None:
    plan = approved(move("t", 0, (1, 2), (3, 4), 100, *log_dirs), cluster_id="sim")
    cluster, port = halfway(plan, ledger)
    (partition,) = plan.by_partition
    done = abort(plan.plan_id, ledger, port, "enough", state=PlanState.PAUSED)
    assert (done.cancelled, dict(done.ended)) == ((), {})
    assert done.owed.keys() == done.unread.keys() == {partition}
    cause = ledger.plan(plan.plan_id).cause
    assert "is taken back by a sweep, when that is possible again: t-0: TOPIC_AUTH" in cause
    assert stop_owed_copies(ledger, port, "sim").unread == (partition,)
    assert ledger.view(plan.plan_id).moves == {partition: MoveState.ADMITTED}
    cluster.hidden = []
    assert stop_owed_copies(ledger, port, "sim").copying == (partition,)
    assert cluster.targets == {partition: (1, 2)}
    cluster.replicas[partition] = cluster.targets.pop(partition)
    stop_owed_copies(ledger, port, "sim")
    assert ledger.view(plan.plan_id).moves == {partition: MoveState.PENDING}
