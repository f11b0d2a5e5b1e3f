"""What the planner packs into log dirs, the gate packs as well, by code of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehome.domain.request.parse_request import parse_request
from rehome.errors import InvalidRequestError
from rehome.quality.facts.disks import Disks
from rehome.quality.facts.gate_input import Checked
from rehome.quality.plan.broker_table import brokers_after
from rehome.quality.plan.tables import plan_tables
from tests.examples import examples
from tests.planning.clusters import Cluster, cluster
from tests.planning.jbod import Disks as GivenDisks
from tests.planning.jbod import with_disks
from tests.planning.result.test_log_dir_choice import REQUESTS, jbods
from tests.quality.plan.cases import planned, with_moves

GB = 10**9


def all_of_it(_broker: int) -> float:
    """Nothing of a log dir has to stay free."""
    return 0.0


def headrooms_of_broker_1(disks: Disks) -> dict[tuple[int, str], int]:
    found = disks.headrooms_of_brokers()[1]
    assert found is not None
    return found


def too_much(checked: Checked) -> list[dict[str, Any]]:
    """Rows that break a rule of room."""
    tables = plan_tables(checked)
    return [
        *(row for row in tables["brokers_after"].to_pylist() if row["fits_nowhere"]),
        *(
            row
            for row in tables["log_dirs_after"].to_pylist()
            if None not in (row["headroom_bytes"], row["arriving_bytes"])
            and row["arriving_bytes"] > row["headroom_bytes"]
        ),
    ]


@pytest.mark.slow
@examples(40)
@given(jbod=jbods(), request=st.sampled_from(REQUESTS))
def test_the_gate_finds_room_for_what_the_planner_has_placed(
    jbod: tuple[Cluster, GivenDisks], request: dict[str, Any]
) -> None:
    of, disks = jbod
    wanted = {
        broker: {path: (total, free + total // 20 + 1) for path, (total, free) in dirs.items()}
        for broker, dirs in disks.items()
    }  # the gate's tests keep a twentieth free
    try:
        checked = planned(with_disks(of, wanted), parse_request(request))
    except InvalidRequestError:
        return
    assert too_much(checked) == []


def test_the_gate_sees_what_fits_together_but_into_no_log_dir() -> None:
    """What the issue shows: 15 GB in three partitions, and two log dirs of 8 GB."""
    of = cluster(["", ""], [(0,)] * 3, [5 * GB] * 3)
    ample = {1: {"/a": (20 * GB, 18 * GB), "/b": (24 * GB, 18 * GB)}}
    made = planned(with_disks(of, ample), parse_request({"action": "drain", "brokers": [0]}))
    assert too_much(made) == []
    tight = {1: {"/a": (20 * GB, 9 * GB), "/b": (24 * GB, 9_200_000_000)}}  # less a twentieth each
    seen = with_moves(replace(made, snapshot=with_disks(of, tight)), made.plan.moves)
    (row,) = too_much(seen)
    assert row["arriving_bytes"] <= row["headroom_bytes"]
    assert row["fits_nowhere"] == [f"t-2 {5 * GB}"]
    named = [replace(move, target_log_dirs=("/a",)) for move in made.plan.moves]
    (row, *_) = too_much(with_moves(seen, named))
    assert row["log_dir"] == "/a"


@pytest.mark.parametrize(("held", "headrooms"), [(1 * GB, 1), (4 * GB, 2)])
def test_the_gate_counts_a_volume_once_unless_its_log_dirs_hold_more_than_is_used(
    held: int, headrooms: int
) -> None:
    of = cluster(["", ""], [(1,)] * 2 + [(0,)], [held] * 3)
    disks = {1: {"/a": (10 * GB, 6 * GB), "/b": (10 * GB, 6 * GB)}}
    found = Disks.of(with_disks(of, disks), all_of_it)
    assert len(headrooms_of_broker_1(found)) == headrooms
    assert found.capacity[1] == headrooms * 10 * GB
    checked = planned(with_disks(of, disks), parse_request({"action": "rebalance"}))
    assert sum(headrooms_of_broker_1(found).values()) == headrooms * 6 * GB
    assert brokers_after(checked).to_pylist()[1]["fits_nowhere"] is None


def test_the_gate_takes_empty_disks_for_apart_where_another_broker_has_the_same_paths_apart() -> (
    None
):
    of = cluster([""] * 3, [(0,)], [GB])
    empty = {"/a": (10 * GB, 9 * GB), "/b": (10 * GB, 9 * GB)}
    old = {"/a": (10 * GB, 3 * GB), "/b": (10 * GB, 5 * GB)}
    beside_empty = Disks.of(with_disks(of, {1: empty, 2: empty}), all_of_it)
    assert len(headrooms_of_broker_1(beside_empty)) == 1
    beside_old = Disks.of(with_disks(of, {1: empty, 2: old}), all_of_it)
    assert len(headrooms_of_broker_1(beside_old)) == 2
