"""What is started for a finding remedies it: judged, planned as asked, and judged again."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import reduce

import pytest

from include.domain.request.parse_request import parse_request
from include.planning.options import PlanOptions
from include.planning.planner import make_plan
from include.watching.finding import FindingRecord, Seen
from include.watching.judge import ClusterFacts, judge
from include.watching.kinds import FindingKind, WatchPolicy
from include.watching.respond import Facts, respond
from include.watching.rules import WatchRules
from tests.planning.clusters import Cluster, cluster
from tests.planning.planned import T, both

NOW = datetime(2030, 1, 2, tzinfo=UTC)
RULES = WatchRules(
    policy=WatchPolicy.HEAL, count_tolerance=0.3, replication_factors={"t": 2}, budget_bytes=10_000
)
ALL = [""] * 4
EVEN = [(0, 1), (1, 2), (2, 3), (3, 0)]
MANY_TOPICS = reduce(
    both,
    (cluster(ALL, [(0, 1)], [0], topic=f"small-{number}") for number in range(8)),
    cluster(ALL, EVEN),
)


def shown(of: Cluster) -> dict[tuple[FindingKind, str], Seen]:
    return {seen.key: seen for seen in judge(of.snapshot(), RULES, ClusterFacts()).seen}


@pytest.mark.parametrize(
    ("kind", "subject", "of"),
    [
        (FindingKind.DEAD_BROKER, "broker 3", cluster(ALL, EVEN, dead=frozenset({3}))),
        (FindingKind.RACK_VIOLATION, "", cluster(["/a", "/a", "/b", "/b"], [(0, 1), (2, 3)])),
        (FindingKind.REPLICATION_FACTOR, "t", cluster(ALL, [*EVEN, (0,), (1, 2, 3)])),
        (FindingKind.IMBALANCE, "bytes", cluster(ALL, [*EVEN, (0, 1), (0, 1), (0, 1), (0, 2)])),
        (FindingKind.IMBALANCE, "replicas", MANY_TOPICS),
        (FindingKind.IMBALANCE, "leaders", cluster(ALL, [(0, 1), (0, 2), (0, 3)] * 4)),
        (
            FindingKind.LEADER_SKEW,
            "",
            cluster(ALL, EVEN, leaders={T[0]: 1, T[1]: 2, T[2]: 3, T[3]: 0}),
        ),
        (FindingKind.EMPTY_BROKER, "broker 4", cluster([*ALL, ""], EVEN * 3)),
    ],
)
def test_what_is_started_remedies_the_finding(kind: FindingKind, subject: str, of: Cluster) -> None:
    facts = shown(of)[kind, subject].facts
    finding = FindingRecord("c1", kind, subject, NOW, NOW, NOW, 3, 0, NOW, None, facts)
    start = respond([finding], Facts(), RULES, NOW).start
    assert start is not None
    options = PlanOptions(plan_id="p", rate_bytes_per_s=10)
    plan = make_plan(of.snapshot(), parse_request(start.params), options)
    assert (kind, subject) not in shown(of.after(plan))
