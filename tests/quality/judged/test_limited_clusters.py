"""Plans of odd clusters with limits and harm: no rule, no judge and no note says otherwise."""

from __future__ import annotations

import warnings

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
    2_902: "a share of a topic that is larger than any number of replicas",
    2_931: "a replica outside of the broker set counts in the racks of the set",
    3_420: "caps change leaders after the notes on topics",
    4_736: "a lower factor takes the replica that is outside of the set",
    20_930: "a broker set is kept at the cost of racks, where better brokers take no part",
    21_570: "a disk is fuller than its cap",
    27_716: "a broker above its caps gives leaders up that it had to have",
    29_929: "what is outside of a set evens out the racks of the set in a search",
    30_279: "the same of replacements",
    32_799: "another path of leaders keeps what a broker had to lead",
    34_777: "a replacement crowds a rack, where violations are as many as before",
    36_158: "of a repair, the gate saw no less crowded racks above more crowded ones",
    45_112: "the gate counts more replicas to move than there are brokers to move them to",
    60_557: "an expansion copies to another broker, which makes no racks more even",
    62_491: "what is undone for caps takes a leader that a broker had to have",
    70_941: "a leader only returns to a broker if another one gets its own back, too",
}


@pytest.mark.parametrize("seed", ONCE_WRONG)
def test_what_was_wrong_once_is_not(seed: int) -> None:
    with warnings.catch_warnings(action="error", category=RuntimeWarning):
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
