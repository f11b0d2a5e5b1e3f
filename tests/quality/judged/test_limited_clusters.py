"""Plans of odd clusters with limits and harm: no rule, no judge and no note says otherwise."""

from __future__ import annotations

import pytest

from tests.quality.judged.limited_clusters import limited_plans
from tests.quality.judged.test_odd_clusters import wrong

ONCE_WRONG = {
    3: "an expansion takes the only leader that a broker had to have",
    29: "two racks of different brokers had one name",
    172: "an expansion leaves a topic's leaders off at a broker that gave some",
    247: "a broker that takes no part gives a replica for min_leaders",
    457: "a replacement is taken that leaves nothing even for the next one",
    559: "a lower level of racks is made more even at the cost of an upper one",
    2_214: "a dead broker stays where an offline replica could go",
    2_931: "a replica outside of the broker set counts in the racks of the set",
    3_420: "caps change leaders after the notes on topics",
    4_736: "a lower factor takes the replica that is outside of the set",
}


@pytest.mark.parametrize("seed", ONCE_WRONG)
def test_what_was_wrong_once_is_not(seed: int) -> None:
    ((_, of),) = limited_plans(range(seed, seed + 1))
    assert list(wrong(of)) == []


@pytest.mark.parametrize(
    "seeds",
    [
        range(14),
        pytest.param(range(14, 140), marks=pytest.mark.slow),
        pytest.param(range(4_000), marks=[pytest.mark.long, pytest.mark.timeout(3600)]),
    ],
)
def test_no_plan_of_a_limited_cluster_is_wrong(seeds: range) -> None:
    made = {seed: list(wrong(of)) for seed, of in limited_plans(seeds)}
    assert len(made) > len(seeds) / 2
    assert {seed: found for seed, found in made.items() if found} == {}
