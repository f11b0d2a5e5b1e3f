"""What a plan does besides its moves; and that nothing changes a cluster that is not listed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rehome.cluster.interface.port import ClusterPort
from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.request import Cordon
from rehome.domain.run.approval.effects import WHAT_CHANGES, Effect, Effects, FollowUp
from rehome.domain.run.approval_terms import Terms
from tests.ledger.small_plans import make_plan

ROOT = Path(__file__).parents[4]
READS = (
    "describe",
    "list",
    "log_",
    "current",
    "finalized",
    "consumer",
    "high",
    "name",
    "supported",
)
CHANGES = {name for name in vars(ClusterPort) if not name.startswith(("_", *READS))}
OUTSIDE = "rehome.cluster."
"""The gateway itself."""
ONLY_ASK = {"rehome.execution.dry_run.throttle_checks", "rehome.execution.access.own_cluster"}
"""They validate only, or pass a call on."""
DRAIN = {"action": "drain", "brokers": [3]}


def calls() -> Iterator[tuple[str, str]]:
    """Module, and the request to a cluster that it calls."""
    for root, folder in (("include", "rehome"), ("plugins", "rehome"), ("", "spark_jobs")):
        for path in (ROOT / root / folder).rglob("*.py"):
            module = ".".join(path.relative_to(ROOT / root).with_suffix("").parts)
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Attribute) and node.attr in CHANGES:
                    yield module, node.attr


def test_the_requests_that_change_a_cluster_are_known() -> None:
    assert {
        "alter_reassignments",
        "alter_replica_log_dirs",
        "alter_configs",
        "create_partitions",
        "create_topics",
        "elect_preferred_leaders",
    } == CHANGES


@pytest.mark.slow
def test_every_module_that_changes_a_cluster_is_listed_with_what_it_changes() -> None:
    """Where this fails: is the new effect among the terms of an approval?"""
    found = {module for module, _ in calls() if not module.startswith(OUTSIDE)}
    assert found - ONLY_ASK == set(WHAT_CHANGES)
    assert set(WHAT_CHANGES.values()) == set(Effect)


@pytest.mark.parametrize(
    ("params", "moves", "changes"),
    [
        (DRAIN, False, False),
        (DRAIN | {"cordon": "keep"}, False, True),
        (DRAIN | {"cordon": "undo"}, False, True),
        (DRAIN, True, True),
        ({"action": "elect_preferred"}, True, True),
    ],
)
def test_a_plan_without_moves_that_changes_the_cluster_is_one_that_does(
    params: dict[str, Any], moves: bool, changes: bool
) -> None:
    plan = make_plan("p1") if moves else replace(make_plan("p1"), moves=())
    assert Effects.of(plan, parse_request(params)).changes_cluster is changes


def test_each_effect_is_read_and_read_back() -> None:
    request = parse_request(DRAIN | {"cordon": "keep", "budget_bytes": 7, "budget_moves": 2})
    effects = Effects.of(make_plan("p1"), request)
    assert effects == Effects(
        leaders=True, cordon=Cordon.KEEP, cordoned=(3,), follow_up=FollowUp(7, 2)
    )
    assert Effects.from_json(effects.to_json()) == effects
    terms = Terms("h", 1, effects=effects, evidence={"summary.json": "a" * 64})
    assert Terms.from_json(terms.to_json()) == terms
    text = "\n".join(terms.lines())
    for words in (
        "log dirs of brokers 3 are cordoned **for good**",
        "preferred leaders of its partitions are elected",
        "one more plan in the same window, within 7 B and 2 moves for both plans",
        "summary.json (aaaaaaaa)",
    ):
        assert words in text


def test_the_plan_that_follows_up_is_the_last() -> None:
    effects = Effects.of(make_plan("p1"), parse_request(DRAIN), followed_up=False)
    assert effects.follow_up is None
