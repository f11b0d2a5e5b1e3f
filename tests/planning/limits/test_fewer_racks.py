"""A plan that would spread a partition worse over the racks, for want of a broker that takes it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rehome.domain.request.parse_request import parse_request
from rehome.quality.facts.gate_input import Checked
from tests.planning.clusters import Cluster, cluster
from tests.planning.planned import plan, problems
from tests.quality.plan.cases import planned, rules_broken_by, with_moves

OF = cluster(["/a", "/a", "/b", "/b"], [(0, 2)], 100)
"""Where broker 3 takes nothing, broker 1 is left for what broker 2 has."""
CLOSED = {
    "with all log dirs offline or cordoned": (replace(OF, cordoned=frozenset({3})), {}),
    "excluded by the request": (OF, {"exclude_brokers": [3]}),
}
DISKS = {**dict.fromkeys(range(3), (1000, 900)), 3: (1000, 10)}
FULL: dict[str, tuple[Cluster, dict[str, Any]]] = {"without room": (replace(OF, disks=DISKS), {})}
WORSE = "replicas are spread over level 1 of the racks no worse than before"


@pytest.mark.parametrize("why", CLOSED)
def test_it_is_refused_with_what_is_in_the_way(why: str) -> None:
    of, asked = CLOSED[why]
    assert problems(of, action="drain", brokers=[2], **asked) == (
        "t-0 would be spread worse over the racks than it is: of brokers that would be better none "
        f"takes new replicas: broker 3 (/b), {why}. Change that, or plan without racks "
        "(ignore_racks)."
    )
    anyhow = plan(of, action="drain", brokers=[2], ignore_racks=True, **asked)
    assert anyhow.moves[0].target == (0, 1)


def test_where_its_disks_are_in_the_way_the_gate_refuses_it() -> None:
    of, _ = FULL["without room"]
    request = parse_request({"action": "drain", "brokers": [2]})
    assert rules_broken_by(planned(of.snapshot(), request)) == {WORSE}


def test_what_is_spread_no_worse_or_as_evenly_as_live_brokers_allow_is_planned() -> None:
    uneven = replace(cluster(["/a", "/a", "/b", "/a"], [(0, 1)], 100), cordoned=frozenset({2}))
    assert plan(uneven, action="drain", brokers=[1]).moves[0].target == (0, 3)
    dead = replace(OF, dead=frozenset({3}))
    assert plan(dead, action="drain", brokers=[2]).moves[0].target == (0, 1)


@pytest.mark.parametrize("why", CLOSED | FULL)
def test_what_is_offline_is_copied_to_its_leaders_rack_rather_than_not_at_all(why: str) -> None:
    of, asked = (CLOSED | FULL)[why]
    healed = _healed(of, asked)
    assert [move.target for move in healed.plan.moves] == [(0, 1)]
    assert rules_broken_by(healed) == set()
    assert healed.plan.summary.weakened == (), "no dead broker has a rack"


def test_what_is_offline_is_not_copied_there_where_a_better_broker_takes_it() -> None:
    healed = _healed(OF, {})
    assert [move.target for move in healed.plan.moves] == [(0, 3)]
    worse = with_moves(healed, [replace(healed.plan.moves[0], target=(0, 1))])
    assert rules_broken_by(worse) == {WORSE}


def _healed(of: Cluster, asked: dict[str, list[int]]) -> Checked:
    request = parse_request({"action": "fix_offline_replicas", **asked})
    return planned(replace(of, dead=frozenset({2})).snapshot(), request)
