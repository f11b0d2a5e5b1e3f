"""Disks within brokers: what moves between the log dirs of a broker, and what does not."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rehome.domain.actions import Action
from rehome.domain.plan.causes.cause_text import why_text
from rehome.domain.plan.infeasible_text import obstacle_text, subject_text
from rehome.domain.plan.kafka_json import reassignment_json, rollback_json
from rehome.domain.plan.move import MoveReason
from rehome.domain.plan.plan import Plan
from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.request import ReassignmentRequest
from rehome.errors import InvalidRequestError
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from rehome.planning.rollback import rollback_plan
from tests.planning.stored_clusters import Stored, partition
from tests.quality.plan.cases import planned, rules_broken_by

A, B, C = "/disk/a", "/disk/b", "/disk/c"
SKEWED = Stored({(0, A): {0: 100, 1: 100, 2: 100, 3: 100}, (0, B): {}})


def plan(of: Stored, **params: Any) -> Plan:
    options = {name: params.pop(name) for name in ("rate_bytes_per_s",) if name in params}
    options |= {"min_free_disk_fraction": params.pop("min_free", 0.0)}
    request = {"action": "move_log_dirs", "move_overhead_bytes": 0} | params
    return make_plan(of.snapshot(), parse_request(request), PlanOptions(plan_id="p", **options))


def loads(of: Stored, **params: Any) -> dict[tuple[int, str], int]:
    return of.after(plan(of, **params)).loads()


def named(made: Plan) -> dict[str, str]:
    return {subject_text(item.subject): obstacle_text(item) for item in made.summary.infeasible}


def test_a_brokers_log_dirs_end_with_equal_bytes_and_nothing_leaves_the_broker() -> None:
    made = plan(SKEWED, rate_bytes_per_s=10)
    assert SKEWED.after(made).loads() == {(0, A): 200, (0, B): 200}
    first = made.moves[0]
    assert first.current == first.target == (0,)
    assert (first.current_log_dirs, first.target_log_dirs) == ((A,), (B,))
    assert (first.reason, first.relocating, first.adding) == (MoveReason.LOG_DIR, (0,), ())
    assert why_text(first) == (
        "On broker 0, /disk/a held 400 B of a share of 200 B, and /disk/b 0 B of 200 B."
    )


def test_the_summary_states_copies_within_brokers_apart_from_those_between_brokers() -> None:
    summary = plan(SKEWED, rate_bytes_per_s=10).summary
    assert (summary.bytes_to_move, summary.lower_bound_bytes, summary.replica_moves) == (0, 0, 0)
    assert (summary.log_dir_moves, summary.log_dir_bytes) == (2, 200)
    assert summary.log_dir_bound_bytes == 196  # 2 % less than a share are enough
    assert summary.predicted_s == 20
    load = summary.brokers[0]
    assert (load.bytes_in, load.bytes_out, load.log_dir_bytes) == (0, 0, 200)


@pytest.mark.parametrize(("small_bytes", "places"), [(100, 0), (99, 2)])
def test_small_copies_between_log_dirs_wait_for_no_place(small_bytes: int, places: int) -> None:
    request = parse_request({"action": "move_log_dirs", "move_overhead_bytes": 0})
    options = PlanOptions(
        "p", 10**6, reaction_s=10, max_partitions_in_flight=1, small_bytes=small_bytes
    )
    made = make_plan(SKEWED.snapshot(), request, options)
    assert made.summary.predicted_s == pytest.approx(10 + places * 10, abs=0.01)


@pytest.mark.parametrize(("ignore_racks", "violations"), [(False, 1), (True, 0)])
def test_racks_count_in_the_summary_unless_they_are_to_be_ignored(
    ignore_racks: bool, violations: int
) -> None:
    of = Stored({(b, A): {0: 9} for b in (0, 1, 2)}, racks={0: "/a", 1: "/a", 2: "/b"})
    of = replace(of, holds={**of.holds, (2, A): {}})
    made = plan(of, ignore_racks=ignore_racks)
    assert made.summary.rack_violations_before == violations
    assert made.summary.rack_violations_after == violations


def test_both_of_kafkas_files_name_the_log_dirs() -> None:
    of = Stored({(0, A): {0: 100, 1: 50}, (0, B): {}, (1, A): {0: 100}, (1, B): {1: 50}})
    made = plan(of, tolerance=0.4)
    (entry,) = reassignment_json(made.moves)["partitions"]
    assert (entry["replicas"], entry["log_dirs"]) == ([0, 1], [B, "any"])
    (entry,) = rollback_json(made.moves)["partitions"]
    assert (entry["replicas"], entry["log_dirs"]) == ([0, 1], [A, B])


def test_a_rollback_takes_the_replicas_back_to_their_log_dirs() -> None:
    made = plan(SKEWED)
    after = SKEWED.after(made)
    back = rollback_plan(made, after.snapshot(), PlanOptions(plan_id="r"))
    assert after.after(back).holds == SKEWED.holds
    assert back.summary.log_dir_bytes == back.summary.log_dir_bound_bytes == 200


def test_one_partition_may_move_on_several_of_its_brokers_at_once() -> None:
    of = Stored({(b, path): {} for b in (0, 1) for path in (A, B)})
    of = replace(of, holds={**of.holds, (0, A): {0: 100, 1: 100}, (1, A): {0: 100, 1: 100}})
    made = plan(of, seed=1)
    assert set(of.after(made).loads().values()) == {100}
    assert made.summary.log_dir_moves == 2


def test_log_dirs_are_filled_in_proportion_to_their_disks() -> None:
    disks = {(0, A): (1_000, 600), (0, B): (3_000, 3_000)}
    assert loads(replace(SKEWED, disks=disks)) == {(0, A): 100, (0, B): 300}


def test_the_size_of_the_very_replica_counts_not_that_of_its_leader() -> None:
    of = Stored({(0, A): {0: 900, 1: 100}, (0, B): {}, (1, A): {0: 100, 1: 100}, (1, B): {}})
    made = plan(of, brokers=[1])
    assert of.after(made).loads()[1, B] == 100
    assert made.summary.log_dir_bytes == made.summary.brokers[1].log_dir_bytes == 100


def test_an_offline_log_dir_takes_no_part() -> None:
    of = Stored(
        {(0, A): {0: 100, 1: 100}, (0, B): {}, (0, C): {2: 400}}, offline=frozenset({(0, C)})
    )
    assert loads(of) == {(0, A): 100, (0, B): 100, (0, C): 400}


def test_a_cordoned_log_dir_gives_but_takes_nothing() -> None:
    of = Stored({(0, A): {0: 100, 1: 100, 2: 100}, (0, B): {}, (0, C): {3: 100}})
    cordoned = frozenset({(0, C)})
    assert loads(replace(of, cordoned=cordoned), tolerance=0.1)[0, C] == 100
    full = Stored({(0, A): {}, (0, B): {}, (0, C): dict.fromkeys(range(6), 100)}, cordoned=cordoned)
    assert set(loads(full).values()) == {200}
    empty = Stored({(0, A): {0: 90, 1: 90}, (0, B): {}, (0, C): {}}, cordoned=cordoned)
    made = plan(empty)
    assert empty.after(made).loads() == {(0, A): 90, (0, B): 90, (0, C): 0}
    assert named(made)["broker 0, /disk/c"] == "it is cordoned and takes no replicas"


def test_any_number_of_replicas_may_have_no_log_dir_to_go_to() -> None:
    """Seventy lie in the only log dir that takes replicas. NumPy has no array of 70 dimensions."""
    shut = frozenset({(0, B)})
    of = Stored({(0, A): dict.fromkeys(range(70), 10), (0, B): {70: 800, 71: 100}}, cordoned=shut)
    assert of.after(plan(of)).loads() == {(0, A): 800, (0, B): 800}
    full = Stored({(0, A): dict.fromkeys(range(70), 10), (0, B): {}}, cordoned=shut)
    assert plan(full).moves == ()


def test_where_every_log_dir_has_failed_nothing_can_be_balanced() -> None:
    of = Stored({(0, A): {0: 100}, (0, B): {}}, offline=frozenset({(0, A), (0, B)}))
    assert plan(of).moves == ()


def test_the_gate_counts_the_very_replica_that_moves_as_the_planner_does() -> None:
    """Its leader, on the other broker, is larger than the free space of the log dir."""
    of = Stored({(0, A): {0: 900}, (1, A): {0: 100, 1: 100}, (1, B): {}})
    of = replace(of, disks={(1, A): (1_000, 800), (1, B): (900, 200)})
    request = ReassignmentRequest(Action.MOVE_LOG_DIRS, brokers=(1,), topics=("t:0",))
    made = planned(of.snapshot(), request)
    assert made.plan.moves
    assert rules_broken_by(made) == set()


def test_a_log_dir_never_holds_more_than_its_free_space_while_old_copies_are_still_there() -> None:
    of = replace(SKEWED, disks={(0, A): (1_000, 600), (0, B): (1_000, 150)})
    made = plan(of)
    assert of.after(made).loads() == {(0, A): 300, (0, B): 100}
    assert named(made)["broker 0, /disk/b"] == "its free space does not hold its share"
    # An exchange would end within both bands, but 200 arrive before 100 leave.
    of = Stored({(0, A): {0: 200, 1: 150}, (0, B): {2: 100}})
    assert plan(of, tolerance=0.12).moves != ()
    of = replace(of, disks={(0, A): (1_000, 600), (0, B): (1_000, 120)})
    assert plan(of, tolerance=0.12).moves == ()


def test_the_part_of_a_log_dir_that_must_stay_free_stays_free() -> None:
    of = replace(SKEWED, disks={(0, A): (1_000, 600), (0, B): (1_000, 250)})
    assert loads(of)[0, B] == 200
    assert loads(of, min_free=0.1)[0, B] == 100


def test_replicas_that_are_on_their_way_are_counted_where_they_go_and_left_alone() -> None:
    of = replace(SKEWED, moving={(0, 0): (B, 40), (1, 0): (B, 0)})
    made = plan(of)
    assert made.moves == ()
    assert named(made)["t-0"] == "a replica is moving between log dirs already: left alone"
    back = Stored({(0, A): {0: 100, 1: 100}, (0, B): {}}, moving={(0, 0): (B, 1), (1, 0): (B, 1)})
    assert plan(back).moves == ()
    # What is still to be written of them is not free for others: 300 less 60 and 100.
    of = replace(of, disks={(0, A): (1_000, 600), (0, B): (1_000, 300)})
    more = {(0, A): dict.fromkeys(range(8), 100), (0, B): {}}
    assert plan(replace(of, holds=more)).summary.log_dir_moves == 1


def test_only_the_named_brokers_and_topics_take_part_and_excluded_ones_do_not() -> None:
    of = Stored({(b, path): {} for b in range(3) for path in (A, B)})
    of = replace(of, holds={**of.holds, **{(b, A): {2 * b: 100, 2 * b + 1: 100} for b in range(3)}})
    assert {m.target for m in plan(of, brokers=[0, 2]).moves} == {(0,), (2,)}
    assert {m.target for m in plan(of, exclude_brokers=[0]).moves} == {(1,), (2,)}
    assert plan(of, exclude_topics=["t"]).moves == ()
    with pytest.raises(InvalidRequestError, match="Unknown topic 'x'"):
        plan(of, topics=["x"])
    with pytest.raises(InvalidRequestError, match="Unknown broker 9"):
        plan(of, brokers=[9])
    with pytest.raises(InvalidRequestError, match="Broker 1 is not live"):
        plan(replace(of, options={"dead": frozenset({1})}), brokers=[1])


def test_partitions_that_are_being_reassigned_are_left_alone_and_named() -> None:
    of = replace(SKEWED, options={"adding": frozenset({(partition(n), 0) for n in range(4)})})
    made = plan(of)
    assert made.moves == ()
    assert named(made)["t-0"] == "it is being reassigned already: left alone"


@pytest.mark.parametrize("budget", [{"budget_bytes": 250}, {"budget_moves": 2}])
def test_a_budget_goes_to_the_disks_that_are_furthest_from_their_shares(
    budget: dict[str, int],
) -> None:
    full = dict.fromkeys(range(8), 100)
    of = Stored(
        {
            (0, A): full,
            (0, B): {},
            (1, A): {8: 100, 9: 100, 10: 100, 11: 100, 12: 100},
            (1, B): {13: 100, 14: 100, 15: 100},
        }
    )
    made = plan(of, **budget)
    assert [move.target for move in made.moves] == [(0,), (0,)]
    assert made.summary.log_dir_bytes == 200
    assert set(named(made).values()) == {"the movement budget does not pay for more"}
    whole = plan(of).summary
    assert made.summary.asked_bound_bytes == whole.log_dir_bound_bytes == 392 + 92
    assert (made.summary.ratio_to_bound, whole.asked_bound_bytes) == (round(200 / 484, 4), None)


def test_what_keeps_a_log_dir_off_its_share_is_named() -> None:
    of = Stored({(0, A): {0: 1_000, 1: 10}, (0, B): {}})
    made = plan(of)
    assert named(made)["broker 0, /disk/a"] == "a replica of 1 kB is larger than its share"
    stays = Stored({(0, A): {0: 300, 1: 300}, (0, B): {}}, options={"internal": frozenset({"t"})})
    assert plan(stays).moves == ()


def grown(seed: int, dirs: int = 4, replicas: int = 200) -> Stored:
    """Three brokers, one partition on each or several, the last log dir new and empty."""
    rng = np.random.default_rng(seed)
    holds: dict[tuple[int, str], dict[int, int | None]] = {
        (b, f"/d{d}"): {} for b in range(3) for d in range(dirs)
    }
    for number, size in enumerate(rng.lognormal(6, 1, replicas).astype(int) + 1):
        for broker in rng.permutation(3)[: rng.integers(1, 4)]:
            holds[int(broker), f"/d{rng.integers(0, dirs - 1)}"][number] = int(size)
    return Stored(holds)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_new_log_dir_is_filled_with_hardly_more_than_the_fewest_bytes(seed: int) -> None:
    of = grown(seed)
    made = plan(of, tolerance=0.02)
    after = of.after(made)
    for broker in range(3):
        mine = [load for (b, _), load in after.loads().items() if b == broker]
        assert max(mine) <= np.ceil(1.02 * np.mean(mine))
        assert min(mine) >= np.floor(0.98 * np.mean(mine))
    assert made.summary.infeasible == ()
    assert made.summary.log_dir_bytes <= 1.02 * made.summary.log_dir_bound_bytes
    assert plan(after, tolerance=0.02).moves == ()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_neither_the_order_of_rows_nor_a_second_run_changes_the_plan(seed: int) -> None:
    snapshot = grown(seed).snapshot()
    request = parse_request({"action": "move_log_dirs"})
    shuffled = replace(
        snapshot,
        log_dirs=snapshot.log_dirs.sort_by([("log_dir", "descending")]),
        replicas=snapshot.replicas.sort_by([("size_bytes", "ascending")]),
    )
    hashes = [
        make_plan(one, request, PlanOptions(plan_id="p")).plan_hash
        for one in (snapshot, snapshot, shuffled)
    ]
    assert len(set(hashes)) == 1


def fewest_bytes(sizes: list[int], at: list[int], dirs: int, tolerance: float) -> int | None:
    """What the best of all assignments copies that puts every log dir within tolerance."""
    share, best = sum(sizes) / dirs, None
    low, high = math.floor(share * (1 - tolerance)), math.ceil(share * (1 + tolerance))
    for way in itertools.product(range(dirs), repeat=len(sizes)):
        load = [0] * dirs
        for size, place in zip(sizes, way, strict=True):
            load[place] += size
        if all(low <= held <= high for held in load):
            copied = sum(s for s, old, new in zip(sizes, at, way, strict=True) if old != new)
            best = copied if best is None else min(best, copied)
    return best


@pytest.mark.slow
def test_few_replicas_are_balanced_with_the_fewest_bytes_of_all_ways() -> None:
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        dirs = int(rng.integers(2, 4))
        sizes = (rng.lognormal(5, 0.8, int(rng.integers(4, 8))).astype(int) + 1).tolist()
        at = [int(rng.integers(0, dirs)) if rng.random() < 0.6 else 0 for _ in sizes]
        of = Stored(
            {
                (0, f"/d{d}"): {n: size for n, size in enumerate(sizes) if at[n] == d}
                for d in range(dirs)
            }
        )
        made = plan(of, tolerance=0.15)
        best = fewest_bytes(sizes, at, dirs, 0.15)
        if best is None:
            assert made.summary.infeasible
        else:
            found += 1
            assert made.summary.infeasible == ()
            assert made.summary.log_dir_bound_bytes <= made.summary.log_dir_bytes == best
    assert found > 10
