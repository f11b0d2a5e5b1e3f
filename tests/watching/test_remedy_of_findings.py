"""What is started for a finding remedies it: judged, planned as asked, and judged again."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rehome.clusters.watch_rules import WatchRules
from rehome.domain.request.parse_request import parse_request
from rehome.domain.run.watched.finding import FindingRecord, Seen
from rehome.domain.run.watched.finding_kinds import FindingKind, WatchPolicy
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from rehome.watching.judging.judge import ClusterFacts, judge
from rehome.watching.respond import Facts, respond
from tests.planning.clusters import Cluster, cluster
from tests.planning.planned import T

NOW = datetime(2030, 1, 2, tzinfo=UTC)
RULES = WatchRules(policy=WatchPolicy.HEAL, replication_factors={"t": 2}, budget_bytes=10_000)
ALL = [""] * 4
EVEN = [(0, 1), (1, 2), (2, 3), (3, 0)]


def shown(of: Cluster) -> dict[tuple[FindingKind, str], Seen]:
    return {seen.key: seen for seen in judge(of.snapshot(), RULES, ClusterFacts()).sightings}


@pytest.mark.parametrize(
    ("kind", "subject", "of"),
    [
        (FindingKind.DEAD_BROKER, "broker 3", cluster(ALL, EVEN, dead=frozenset({3}))),
        (FindingKind.RACK_VIOLATION, "", cluster(["/a", "/a", "/b", "/b"], [(0, 1), (2, 3)])),
        (FindingKind.REPLICATION_FACTOR, "t", cluster(ALL, [*EVEN, (0,), (1, 2, 3)])),
        (FindingKind.IMBALANCE, "bytes", cluster(ALL, [*EVEN, (0, 1), (0, 1), (0, 1), (0, 2)])),
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


@pytest.mark.parametrize(
    ("kind", "subject", "of"),
    [
        (FindingKind.IMBALANCE, "bytes", cluster([*ALL, ""], [*EVEN, *[(0, 1)] * 3, (0, 2)])),
        (FindingKind.DEAD_BROKER, "broker 3", cluster([*ALL, ""], EVEN, dead=frozenset({3}))),
    ],
)
def test_a_broker_that_was_drained_stays_empty(
    kind: FindingKind, subject: str, of: Cluster
) -> None:
    """Broker 4: it is to be switched off."""
    facts = shown(of)[kind, subject].facts
    finding = FindingRecord("c1", kind, subject, NOW, NOW, NOW, 3, 0, NOW, None, facts)
    start = respond([finding], Facts(drained={4}), RULES, NOW).start
    assert start is not None
    options = PlanOptions(plan_id="p", rate_bytes_per_s=10)
    plan = make_plan(of.snapshot(), parse_request(start.params), options)
    assert plan.moves
    assert not [move for move in plan.moves if 4 in move.target]
    assert (kind, subject) not in shown(of.after(plan))


def test_what_the_clusters_targets_forbid_leaves_the_finding_open() -> None:
    """Broker 3 holds too little, and no broker too much by more than the rule's half."""
    of, targets = cluster(ALL, [(0, 1), (1, 2), (2, 0)] * 4 + [(3, 0)]), {"one_sided": True}
    key = (FindingKind.IMBALANCE, "bytes")
    facts = shown(of)[key].facts
    finding = FindingRecord("c1", *key, NOW, NOW, NOW, 3, 0, NOW, None, facts)
    start = respond([finding], Facts(targets=targets), RULES, NOW).start
    assert start is not None
    asked = {**targets, **start.params}
    plan = make_plan(of.snapshot(), parse_request(asked), PlanOptions("p", rate_bytes_per_s=10))
    assert key in shown(of.after(plan))
