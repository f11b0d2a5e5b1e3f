"""Plans of Rehome's own that its gate has refused, each for a reason of the gate's."""

from __future__ import annotations

from typing import Any

import pytest

from rehome.domain.request.parse_request import parse_request
from tests.planning.clusters import Cluster, cluster
from tests.quality.plan.cases import planned, rules_broken_by

LOWER = {"action": "set_replication_factor", "replication_factor": 2}
KEPT_OFF = [{"name": "s", "topics": ["other"], "brokers": [2], "exclusive": True}]
CASES: dict[str, tuple[Cluster, dict[str, Any]]] = {
    "the replica outside of the set goes": (
        cluster(["/a", "/a", "/b", "/b"], [(0, 1, 2)]),
        {**LOWER, "broker_sets": KEPT_OFF},
    ),
    "only a dead broker is in a rack within a rack": (
        cluster(["/a", "/b", "/c/d"], [(0, 1, 2)], dead=frozenset({2})),
        {**LOWER, "replication_factor": 1},
    ),
    "a disk may be filled in part": (
        cluster([""] * 3, [(0,), (1,)] * 20, disks=dict.fromkeys(range(3), (10_000, 8_000))),
        {
            "action": "rebalance",
            "caps": {"default": {}, "brokers": {"2": {"disk_fraction": 0.21}}},
        },
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_gate_passes(name: str) -> None:
    of, params = CASES[name]
    made = planned(of.snapshot(), parse_request(params))
    assert made.plan.moves
    assert rules_broken_by(made) == set()
