"""Each hard rule on a plan is seen to hold, and to break by corruptions that it alone names."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from rehome.domain.actions import Action
from rehome.domain.request.request import ReassignmentRequest
from rehome.quality.engine.frames import frame_of
from rehome.quality.facts.gate_input import Checked
from rehome.quality.gates import check_plan
from rehome.quality.plan.rules import plan_rules
from tests.planning.clusters import cluster
from tests.quality.plan.action_corruptions import SOUND as SOUND_ACTIONS
from tests.quality.plan.cases import (
    Broken,
    broken_by,
    planned,
    rules_broken_by,
)
from tests.quality.plan.checked_plans import (
    COUNTED,
    drain,
    evened_out,
    fixed,
    lost_on_drained,
    lowered,
    one_sided,
    raised,
    reassign,
    rebalance,
    repaired,
    resized,
    tree,
)
from tests.quality.plan.clean import ACTIONS, forgivable, once_refused, sound_plans
from tests.quality.plan.destination_corruptions import SOUND as SOUND_DESTINATIONS
from tests.quality.plan.limit_corruptions import SOUND as SOUND_LIMITS
from tests.quality.plan.plan_corruptions import CORRUPTIONS
from tests.quality.plan.rule_names import FILES, LOG_DIR, MID_MOVE, ONLY_LIVE, SPREAD_1
from tests.quality.snapshots import PARTITIONS, SIZE_BYTES, Rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SOUND = len(ACTIONS)
"""Random sound plans: one of each action; `make test-thorough` tries a thousand."""
LEFT_FULL = "an uneven drain beside full disks"


def uneven_beside_full_disks() -> Checked:
    """Broker 3 is all that is left of its data centre, and has no room."""
    disks = dict.fromkeys(range(3), (100_000, 90_000)) | {3: (100_000, 5_500)}
    racks = ["/dc0", "/dc0", "/dc1", "/dc1"]
    of = cluster(racks, [(0, 2)], 1_000, topic="payments", disks=disks)
    return planned(of.snapshot(), ReassignmentRequest(Action.DRAIN, brokers=(2,)))


def moved_between_log_dirs() -> Checked:
    made = planned(Rows().snapshot(), ReassignmentRequest(Action.MOVE_LOG_DIRS))
    assert made.plan.summary.log_dir_bytes == PARTITIONS * SIZE_BYTES
    return made


@cache
def spoilt() -> dict[str, Checked]:
    """The corruptions, each made once."""
    return {name: corrupt() for name, (corrupt, _) in CORRUPTIONS.items()}


@pytest.fixture(scope="module")
def broken(spark: SparkSession) -> dict[str, list[Broken]]:
    """What each corruption breaks, and what the plans that it started from do."""
    sound = {"sound drain": drain(), "sound rebalance": rebalance(), "sound tree": tree()}
    sound |= {
        "sound factor": raised(),
        "sound reassign": reassign(),
        "sound file": resized(),
        "sound repair": repaired(),
    }
    sound |= {"sound lower factor": lowered(), "sound homes": fixed()}
    sound |= {"sound traffic": evened_out()}
    sound |= {"sound drain of a dead broker": lost_on_drained()}
    sound |= {"sound one-sided": one_sided(), "sound counts": rebalance(tolerances=COUNTED)}
    sound |= {"sound move between log dirs": moved_between_log_dirs()}
    others = SOUND_ACTIONS | SOUND_LIMITS | SOUND_DESTINATIONS
    sound |= {name: make() for name, make in others.items()}
    return broken_by(spark, sound | spoilt() | {LEFT_FULL: uneven_beside_full_disks()})


@pytest.mark.slow
def test_random_sound_plans_break_no_rule_in_process() -> None:
    """tests/quality/in_process shows that Spark says the same; `make test-thorough` asks Spark."""
    plans = [*sound_plans(SOUND, seed=0), *once_refused()]
    plans += sound_plans(SOUND, seed=5_000, with_limits=True)
    plans += sound_plans(SOUND, seed=7_000, to_destinations=True)
    broken = {name: rules_broken_by(checked) for name, checked in plans}
    assert {name: rules for name, rules in broken.items() if rules} == {}


def test_sound_plans_pass(broken: dict[str, list[Broken]]) -> None:
    assert {name: what for name, what in broken.items() if name.startswith("sound") and what} == {}


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_corruption_is_caught_by_the_rules_that_name_it(
    name: str, broken: dict[str, list[Broken]]
) -> None:
    assert {item.rule for item in broken[name]} == CORRUPTIONS[name][1]


@pytest.mark.slow
def test_every_rule_has_a_corruption_that_breaks_it() -> None:
    requests = [checked.request for checked in spoilt().values()]
    rules = {rule.name for request in requests for rule in plan_rules(request, rack_levels=3)}
    assert rules == {name for _, names in CORRUPTIONS.values() for name in names}


def test_the_row_that_breaks_a_rule_is_shown_with_what_is_wrong(
    broken: dict[str, list[Broken]],
) -> None:
    shown = {
        case: [row for item in broken[case] if item.rule == rule for row in item.rows]
        for case, rule in {
            "an unknown broker": ONLY_LIVE,
            "a disk too full in mid-move": MID_MOVE,
            "an unknown log dir": LOG_DIR,
            "what was not planned is sent": FILES,
        }.items()
    }
    assert shown == {
        "an unknown broker": ["topic payments, partition 2, target [3, 9], not_live [9]"],
        "a disk too full in mid-move": ["broker 4, arriving_bytes 1000, headroom_bytes 0"],
        "an unknown log dir": ["topic payments, partition 2, unusable_log_dirs ['2:/data/9']"],
        "what was not planned is sent": [
            "file reassignment.json, topic payments, partition 0, times_listed 1"
        ],
    }


@pytest.mark.long
def test_no_sound_plan_is_refused(spark: SparkSession) -> None:
    plans = dict(sound_plans(1_000, seed=10_000))
    plans |= dict(sound_plans(1_000, seed=20_000, with_limits=True))
    plans |= dict(sound_plans(1_000, seed=30_000, to_destinations=True))
    broken = broken_by(spark, plans)
    assert {
        name: what
        for name, what in broken.items()
        if not all(forgivable(plans[name], item) for item in what)
    } == {}


def test_rows_behind_an_empty_chunk_are_seen(spark: SparkSession) -> None:
    """A table read from several files has one where a file was empty."""
    rows = pa.table({"topic": ["a"], "target": [[1]]})
    assert frame_of(spark, pa.concat_tables([rows, rows[:0], rows])).count() == 2


def test_a_table_is_read_in_as_many_tasks_as_its_rows_need(spark: SparkSession) -> None:
    for rows, tasks in ((0, 1), (100_000, 1), (250_000, 3)):
        assert frame_of(spark, pa.table({"n": range(rows)})).rdd.getNumPartitions() == tasks


def test_a_plan_without_moves_passes(spark: SparkSession) -> None:
    made = planned(Rows().snapshot(), ReassignmentRequest(Action.REPAIR_RACKS))
    assert made.plan.moves == ()
    result = check_plan(
        *(spark, made.snapshot, made.plan, made.request),
        reassignment=made.reassignment,
        rollback=made.rollback,
        min_free_disk_fraction=made.min_free,
    )
    assert result.passed, result


def test_full_disks_do_not_excuse_an_uneven_plan_and_the_better_broker_is_named(
    broken: dict[str, list[Broken]],
) -> None:
    row = "topic payments, partition 0, current [0, 2], target [0, 1], better [3]"
    assert broken[LEFT_FULL] == [Broken(SPREAD_1, (row,))]
    (rule,) = (each for each in plan_rules(drain().request, rack_levels=1) if each.name == SPREAD_1)
    assert "free disk on better ones" in rule.remedy
