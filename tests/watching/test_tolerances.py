"""A plan that remedies an imbalance ends well within the rule that has opened the finding.

Judged, planned by the parameters that a run would have, and judged again.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from rehome.clusters.watch_rules import WatchRules
from rehome.domain.kafka import BrokerId, TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.presets import Filled
from rehome.domain.request.request import Preset, ReassignmentRequest
from rehome.domain.request.targets import with_targets
from rehome.domain.run.watched.finding import FindingRecord
from rehome.domain.run.watched.finding_kinds import FindingKind, WatchPolicy
from rehome.params import FORM_DEFAULTS
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from rehome.watching.judging.judge import ClusterFacts, judge
from rehome.watching.respond import Facts, respond
from tests.planning.clusters import Cluster

NOW = datetime(2030, 1, 2, tzinfo=UTC)
ALL = [""] * 4
RING = [(0, 1), (1, 2), (2, 3), (3, 0)]
EVEN = RING * 15
HEAVY, LIGHT = 1000, 200
WIDE = {
    "tolerance": 0.9,
    "tolerances": {"bytes_in": 0.9, "bytes_out": 0.9},
}


def loaded(name: str, disks: Mapping[int, tuple[int, int]] | None = None) -> Cluster:
    """A cluster in which broker 0 has more than its share of a resource; each partition is of a
    topic of its own, so that the spread of topics binds nothing.
    """
    rows, sizes, rates = EVEN, [100] * len(EVEN), [1.0] * len(EVEN)
    match name:
        case "bytes":
            sizes = [HEAVY if 0 in row else LIGHT for row in rows]
        case "bytes_in":
            rates = [HEAVY if 0 in row else LIGHT for row in rows]
        case "bytes_out":  # only changes of leader even it out
            rows = [(0, 1), (0, 2), (0, 3)] * 5 + [(1, 0), (2, 0), (3, 0), *RING[1:3], (3, 1)] * 8
            sizes, rates = [100] * len(rows), [HEAVY if row[0] == 0 else LIGHT for row in rows]
    partitions = [TopicPartition(f"t{number}", 0) for number in range(len(rows))]
    even = dict.fromkeys(partitions, 1.0)
    off = dict(zip(partitions, rates, strict=True))
    return Cluster(
        racks=dict(enumerate(ALL)),
        replicas=dict(zip(partitions, rows, strict=True)),
        sizes=dict(zip(partitions, sizes, strict=True)),
        disks=disks,
        bytes_in=off if name == "bytes_in" else even,
        bytes_out=off if name == "bytes_out" else even,
    )


def traffic(of: Cluster) -> dict[str, dict[BrokerId, float]]:
    found: dict[str, dict[BrokerId, float]] = {}
    for name, rates, led in (("bytes_in", of.bytes_in, False), ("bytes_out", of.bytes_out, True)):
        for partition, rate in (rates or {}).items():
            held = of.replicas[partition]
            for broker in held[:1] if led else held:
                sums = found.setdefault(name, dict.fromkeys(of.racks, 0.0))
                sums[broker] += rate
    return found


def imbalance(of: Cluster, rules: WatchRules) -> dict[str, float]:
    """Resource → the largest deviation of a broker that is a finding."""
    seen = judge(of.snapshot(), rules, ClusterFacts(), (), traffic(of)).sightings
    return {
        each.subject: max(abs(off) for off in each.facts["deviation"].values())
        for each in seen
        if each.kind is FindingKind.IMBALANCE
    }


def asked_for(name: str, rules: WatchRules, targets: Mapping[str, Any]) -> ReassignmentRequest:
    """The request of the run that is started for the imbalance of one resource."""
    finding = FindingRecord("c1", FindingKind.IMBALANCE, name, NOW, NOW, NOW, 3, 0, NOW, None, {})
    start = respond([finding], Facts(targets=targets), rules, NOW).start
    assert start is not None
    shown = Filled({**FORM_DEFAULTS, **start.params}, Preset.NONE, {}, {})
    return parse_request(with_targets(shown, targets, FORM_DEFAULTS, start.params).params)


def planned(of: Cluster, request: ReassignmentRequest) -> Plan:
    return make_plan(of.snapshot(), request, PlanOptions(plan_id="p", rate_bytes_per_s=10))


@pytest.mark.slow
@pytest.mark.parametrize("targets", [{}, WIDE], ids=["no targets", "wide targets"])
@pytest.mark.parametrize("tolerance", [0.04, 0.3, 1.5])
@pytest.mark.parametrize("name", ["bytes", "bytes_in", "bytes_out"])
def test_the_plan_ends_well_within_the_rule(
    name: str, tolerance: float, targets: dict[str, Any]
) -> None:
    """Half of 0.04 is what the form shows: a target must not replace it."""
    every: dict[str, Any] = {"traffic_tolerance": tolerance}
    rules = WatchRules(
        policy=WatchPolicy.HEAL, balance_tolerance=min(tolerance, 1.0), **every, grace_s=0
    )
    of, half, well = loaded(name), min(tolerance, 1.0) / 2, 0.75 * tolerance
    request = asked_for(name, rules, targets)
    if name == "bytes":
        assert request.tolerance == half
    else:
        assert request.tolerances[name] == half
    if tolerance < 1:
        assert name in imbalance(of, rules)
    after = of.after(planned(of, request))
    within = rules.model_copy(update={"balance_tolerance": well, **dict.fromkeys(every, well)})
    assert name not in imbalance(after, within)


@pytest.mark.slow
def test_the_plan_moves_no_more_than_it_has_to() -> None:
    """The form's default of 2 % would move more than the half of 40 %."""
    of, rules = loaded("bytes"), WatchRules(policy=WatchPolicy.HEAL, balance_tolerance=0.4)
    needed = planned(of, asked_for("bytes", rules, {})).summary.bytes_to_move
    at_default = planned(of, parse_request({"action": "rebalance"})).summary.bytes_to_move
    assert 0 < needed < at_default


@pytest.mark.parametrize("name", ["bytes", "bytes_in", "bytes_out"])
def test_a_narrower_target_of_the_cluster_stays(name: str) -> None:
    tolerances = {"bytes_in": 0.01, "bytes_out": 0.01, "replicas": 0.01}
    narrow = {"tolerance": 0.01, "tolerances": {**tolerances, "topic_spread": None}}
    request = asked_for(name, WatchRules(policy=WatchPolicy.HEAL), narrow)
    assert request.tolerance == 0.01
    assert dict(request.tolerances) == narrow["tolerances"]


def test_a_target_of_another_resource_than_the_findings_stays_whatever_it_is() -> None:
    rules = WatchRules(policy=WatchPolicy.HEAL)
    request = asked_for("bytes", rules, {"tolerances": {"bytes_in": None, "replicas": 0.9}})
    assert dict(request.tolerances) == {"bytes_in": None, "replicas": 0.9, "bytes_out": 0.25}


def test_disks_that_fill_up_are_evened_out_as_in_any_rebalance() -> None:
    finding = FindingRecord(
        "c1", FindingKind.DISK_FULL_SOON, "broker 0", NOW, NOW, NOW, 3, 0, NOW, None, {}
    )
    start = respond([finding], Facts(), WatchRules(policy=WatchPolicy.HEAL), NOW).start
    assert start is not None
    assert "tolerance" not in start.params


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bytes", "bytes_in"])
def test_shares_are_judged_as_they_are_planned_by_the_size_of_disks(name: str) -> None:
    """What a plan has brought to its shares is no finding, and what is even by number is one."""
    disks = {0: (10**6, 10**6), 1: (10**6, 10**6), 2: (3 * 10**6, 10**6), 3: (3 * 10**6, 10**6)}
    rules = WatchRules(policy=WatchPolicy.HEAL, balance_tolerance=0.3, traffic_tolerance=0.3)
    of = loaded(name, disks)
    assert name in imbalance(of, rules)
    after = of.after(planned(of, asked_for(name, rules, {})))
    assert name not in imbalance(after, rules)


def test_no_heal_copies_faster_than_the_rules_allow_whatever_the_targets_say() -> None:
    rules = WatchRules(policy=WatchPolicy.HEAL, largest_throttle=50_000)
    free = asked_for("bytes", rules, {"unthrottled": True})
    assert not free.unthrottled
    assert (free.throttle_bytes_per_s, free.throttle_max) == (None, 50_000)
    fast = asked_for("bytes", rules, {"throttle": 500_000, "throttle_min": 60_000})
    assert (fast.throttle_bytes_per_s, fast.throttle_min, fast.throttle_max) == (
        50_000,
        50_000,
        50_000,
    )
    slow = asked_for("bytes", rules, {"throttle": 20_000, "throttle_max": 30_000})
    assert (slow.throttle_bytes_per_s, slow.throttle_max) == (20_000, 30_000)


def test_what_the_clusters_targets_ask_a_person_for_is_asked() -> None:
    rules = WatchRules(policy=WatchPolicy.HEAL)
    assert asked_for("bytes", rules, {"approval": True}).approval
    assert not asked_for("bytes", rules, {}).approval
