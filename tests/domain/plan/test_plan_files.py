from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pyarrow.parquet as pq
import pytest

from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.causes.move_cause import CauseCode, MoveCause
from rehome.domain.plan.infeasible import Infeasible, Obstacle, Subject, SubjectKind
from rehome.domain.plan.infeasible_text import infeasible_text
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.plan.move_table import MOVES_SCHEMA, moves_from_table, moves_table
from rehome.domain.plan.plan import Plan
from rehome.domain.plan.plan_hash import PlanChangedError, plan_hash, refuse_changed, seal
from rehome.domain.plan.summary import BrokerLoad, PlanSummary, summary_from_json, summary_to_json
from rehome.domain.resources import Resource

WHY = (MoveCause(CauseCode.DRAINED, 1),)
OTHER = (MoveCause(CauseCode.NOT_LIVE, 1),)
MOVES_OF_T = (
    Move(TopicPartition("t", 0), (1, 2), (2, 3), 10, MoveReason.DRAIN, WHY, ("/a", "any"), ()),
    Move(TopicPartition("t", 1), (1,), (1,), 5, MoveReason.LOG_DIR, (), ("/a",), ("/b",)),
)


def of(
    moves: Iterable[Move], *, cluster: str = "c", action: str = "drain", allow: bool = False
) -> str:
    return plan_hash(cluster, action, moves, allow_replication_factor_change=allow)


def a_plan(moves: tuple[Move, ...] = MOVES_OF_T) -> Plan:
    summary = PlanSummary(
        plan_id="p",
        plan_hash="h",
        cluster_id="c",
        action="drain",
        snapshot="s",
        partitions=1,
        replica_moves=1,
        leader_changes=0,
        bytes_to_move=10,
        lower_bound_bytes=10,
        rate_bytes_per_s=None,
        predicted_s=None,
        rack_violations_before=0,
        rack_violations_after=0,
        brokers=(BrokerLoad(1, 10, 0, 1, 0, 1, 0, 0, 10),),
        infeasible=(
            Infeasible(Subject.of_broker(1), Obstacle.DISK_FULL, 1.0, 2.0, resource=Resource.BYTES),
            Infeasible(
                Subject(SubjectKind.TOPIC, "t"),
                Obstacle.SHIFTED_SHARE,
                1.0,
                2.0,
                resource=Resource.REPLICAS,
                brokers=(3,),
                others=2,
            ),
            Infeasible(
                Subject.of_partition(TopicPartition("t", 0)),
                Obstacle.IN_SYNC_KEPT,
                1.0,
                0.0,
                brokers=(1, 2),
                instead_of=(3, 2),
            ),
        ),
    )
    return seal(Plan("p", "c", "drain", moves, summary))


def test_the_hash_does_not_depend_on_the_order_of_moves_or_on_sizes_and_sentences() -> None:
    same = [replace(move, causes=OTHER, size_bytes=7) for move in reversed(MOVES_OF_T)]
    assert of(same) == of(MOVES_OF_T)


def test_the_hash_is_stable_across_versions() -> None:
    assert of(MOVES_OF_T) == ("bbab3dabf8d96feb76463404095477b0da2eeeba626e22cdf154ce3ce7318195")


@pytest.mark.parametrize(
    "change",
    [
        {"partition": TopicPartition("t", 2)},
        {"topic_id": "another topic of that name"},
        {"current": (2, 1)},
        {"current_log_dirs": ("/b", "any")},
        {"target": (3, 2)},
        {"target_log_dirs": ("/x", "any")},
    ],
)
def test_the_hash_changes_with_what_will_happen(change: dict[str, Any]) -> None:
    changed = (replace(MOVES_OF_T[0], **change), MOVES_OF_T[1])
    assert of(changed) != of(MOVES_OF_T)


@pytest.mark.parametrize("change", [{"cluster": "d"}, {"action": "rebalance"}, {"allow": True}])
def test_the_hash_changes_with_the_cluster_the_action_and_the_guard_of_the_factor(
    change: dict[str, Any],
) -> None:
    assert of(MOVES_OF_T, **change) != of(MOVES_OF_T)


def test_no_wish_and_any_log_dir_are_the_same_plan() -> None:
    spelled = (replace(MOVES_OF_T[0], target_log_dirs=("any", "any")), MOVES_OF_T[1])
    assert of(spelled) == of(MOVES_OF_T)


def test_a_plan_is_acted_on_only_as_it_was_recorded() -> None:
    plan = a_plan()
    refuse_changed(plan, "p", plan.plan_hash)
    other_moves = replace(plan, moves=(replace(MOVES_OF_T[0], target=(3, 2)), MOVES_OF_T[1]))
    changed = {
        "their moves have the hash": (other_moves, replace(plan, action="rebalance")),
        "those of plan q": (replace(plan, plan_id="q"),),
        "its hash is": (replace(plan, summary=replace(plan.summary, plan_hash="other")),),
    }
    for message, plans in changed.items():
        for other in plans:
            with pytest.raises(PlanChangedError, match=message):
                refuse_changed(other, "p", plan.plan_hash)
    with pytest.raises(PlanChangedError, match="their moves have the hash"):
        refuse_changed(seal(other_moves), "p", plan.plan_hash)


def test_moves_survive_parquet_and_come_back_in_partition_order() -> None:
    file = io.BytesIO()
    pq.write_table(moves_table(reversed(MOVES_OF_T)), file)
    table = pq.read_table(file)
    assert table.schema.equals(MOVES_SCHEMA)
    assert moves_from_table(table) == MOVES_OF_T


def test_a_plan_without_moves_has_an_empty_table_of_the_same_schema() -> None:
    assert moves_table([]).schema.equals(MOVES_SCHEMA)
    assert moves_from_table(moves_table([])) == ()


def test_of_a_plan_that_no_planner_has_made_nothing_is_known_of_racks() -> None:
    """Adopted plans of before have 0 bytes between racks in their files."""
    summary = a_plan().summary
    assert summary.bytes_across_racks is None
    unknown = dict.fromkeys(("rack_violations_before", "rack_violations_after"))
    content = {**summary_to_json(summary), **unknown, "bytes_across_racks": 0}
    assert summary_from_json(content).bytes_across_racks is None
    content = {**summary_to_json(summary), "bytes_across_racks": 7}
    assert summary_from_json(content).bytes_across_racks == 7


def test_a_summary_survives_json() -> None:
    summary = a_plan().summary
    assert summary_from_json(json.loads(json.dumps(summary_to_json(summary)))) == summary


def test_a_note_of_a_plan_stored_before_obstacles_had_codes_is_still_read() -> None:
    content = summary_to_json(a_plan().summary)
    stored = {"subject": "rack /a", "constraint": "it is full", "wanted": 4, "nearest": 2}
    (note,) = summary_from_json({**content, "infeasible": [stored]}).infeasible
    assert infeasible_text(note) == "rack /a: it is full (wanted 4, nearest 2)"
