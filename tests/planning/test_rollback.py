"""The way back of a plan, and what another client has changed since."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.plan.infeasible_text import obstacle_text, subject_text
from rehome.domain.plan.move import MoveReason
from rehome.domain.request.parse_request import parse_request
from rehome.errors import InvalidRequestError
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from rehome.planning.rollback import rollback_plan
from tests.planning.clusters import cluster
from tests.planning.planned import ROWS, THREE_RACKS, T, infeasible, plan


def test_a_rollback_restores_replicas_order_and_replication_factor() -> None:
    of = cluster(THREE_RACKS, ROWS)
    made = plan(of, action="set_replication_factor", replication_factor=2)
    after = of.after(made)
    back = rollback_plan(made, after.snapshot(), PlanOptions(plan_id="back"))
    assert after.after(back).replicas == {p: tuple(row) for p, row in of.replicas.items()}
    assert back.allow_replication_factor_change
    assert {move.reason for move in back.moves} == {MoveReason.ROLLBACK}


def test_a_rollback_of_a_file_that_moved_and_resized_copies_to_where_replicas_were() -> None:
    of = cluster([""] * 5, [(0, 1)])
    file = {"partitions": [{"topic": "t", "partition": 0, "replicas": [2, 3, 4]}]}
    made = plan(of, action="reassign", reassignment=file, allow_replication_factor_change=True)
    after = of.after(made)
    back = rollback_plan(made, after.snapshot(), PlanOptions(plan_id="back"))
    assert after.after(back).replicas == {T[0]: (0, 1)}
    assert infeasible(back) == ()


def test_a_rollback_takes_replicas_back_to_their_log_dirs() -> None:
    of = cluster([""] * 3, [(0, 1)])
    made = plan(of, action="drain", brokers=[0])
    back = rollback_plan(made, of.after(made).snapshot(), PlanOptions(plan_id="back"))
    assert back.moves[0].target == (0, 1)
    assert back.moves[0].target_log_dirs == ("/data/0", "any")


def test_a_rollback_of_what_was_never_started_is_empty() -> None:
    of = cluster([""] * 3, [(0, 1)])
    made = plan(of, action="drain", brokers=[0])
    assert rollback_plan(made, of.snapshot(), PlanOptions(plan_id="back")).moves == ()


def test_a_rollback_leaves_alone_and_names_what_another_client_has_changed_since() -> None:
    of = cluster([""] * 4, [(0, 1), (0, 1), (0, 1)])
    made = plan(of, action="drain", brokers=[0])
    after = of.after(made)
    replicas = dict(after.replicas) | {T[0]: (3, 2)}
    del replicas[T[1]]
    since = replace(after, replicas=replicas)
    back = rollback_plan(made, since.snapshot(), PlanOptions(plan_id="back"))
    assert [move.partition for move in back.moves] == [T[2]]
    assert {subject_text(item.subject) for item in infeasible(back)} == {"t-0", "t-1"}


def test_a_rollback_leaves_a_topic_alone_that_was_created_again_under_its_name() -> None:
    of = cluster([""] * 4, [(0, 1), (0, 1)])
    made = make_plan(
        with_topic_id(of.snapshot(), "old"),
        parse_request({"action": "drain", "brokers": [0]}),
        PlanOptions(plan_id="p"),
    )
    assert {move.topic_id for move in made.moves} == {"old"}
    since = of.after(made).snapshot()
    for topic_id, moved_back in (("old", 2), ("new", 0)):
        back = rollback_plan(made, with_topic_id(since, topic_id), PlanOptions(plan_id="back"))
        assert len(back.moves) == moved_back
    assert {obstacle_text(item) for item in infeasible(back)} == {
        "its topic was deleted and created again since the plan"
    }


def with_topic_id(snapshot: Snapshot, topic_id: str) -> Snapshot:
    table, place = snapshot.topics, snapshot.topics.column_names.index("topic_id")
    ids = pa.array([topic_id] * len(table), pa.string())
    return replace(snapshot, topics=table.set_column(place, "topic_id", ids))


def test_what_would_go_back_to_a_dead_broker_is_named_and_left_and_the_rest_goes_back() -> None:
    of = cluster([""] * 5, [(0, 1), (4, 1)])
    made = plan(of, action="drain", brokers=[0, 4])
    since = replace(of.after(made), dead=frozenset({0}))
    back = rollback_plan(made, since.snapshot(), PlanOptions(plan_id="back"))
    assert [move.partition for move in back.moves] == [T[1]]
    (note,) = infeasible(back)
    assert subject_text(note.subject) == "t-0"
    assert obstacle_text(note) == "brokers [0], to which it would go back, are not live: left alone"


def test_a_rollback_of_more_replicas_keeps_those_in_sync() -> None:
    of = cluster([""] * 4, [(0, 1), (0, 1)])
    more = plan(of, action="set_replication_factor", replication_factor=3)
    after = of.after(more)
    added = {move.partition: move.adding[0] for move in more.moves}
    since = replace(after, lagging=frozenset({(T[0], 0)}), min_isr={"t": 2})
    back = rollback_plan(more, since.snapshot(), PlanOptions(plan_id="back"))
    assert {move.partition: move.target for move in back.moves} == {
        T[0]: (added[T[0]], 1),
        T[1]: (0, 1),
    }
    assert [(subject_text(note.subject), obstacle_text(note)) for note in infeasible(back)] == [
        ("t-0", f"replicas in sync are kept: {[added[T[0]], 1]} instead of [0, 1]")
    ]


def test_a_plan_of_another_cluster_is_not_rolled_back_here() -> None:
    made = plan(cluster(THREE_RACKS, ROWS), action="drain", brokers=[0])
    here = replace(cluster(THREE_RACKS, ROWS).snapshot(), cluster_id="another")
    with pytest.raises(InvalidRequestError) as refused:
        rollback_plan(made, here, PlanOptions(plan_id="back"))
    assert refused.value.problems == (
        f"Plan p was made for cluster {made.cluster_id}; this is cluster another. "
        "Name the connection of the other cluster.",
    )
