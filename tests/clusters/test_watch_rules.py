"""The rules of watching: defaults that start nothing, and every problem named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rehome.clusters.watch_rules import REMOVED, WatchRules
from rehome.domain.run.watched.finding_kinds import FindingKind, WatchPolicy
from rehome.errors import InvalidRequestError
from rehome.field_descriptions import describe_fields

ROOT = Path(__file__).resolve().parents[2]


def test_by_default_nothing_is_started() -> None:
    rules = WatchRules()
    assert {rules.policy_of(kind) for kind in FindingKind} == {WatchPolicy.WATCH}


def test_a_kind_that_no_plan_remedies_is_watched_whatever_the_general_policy_is() -> None:
    rules = WatchRules.parse({"policy": "heal"})
    assert rules.policy_of(FindingKind.DEAD_BROKER) is WatchPolicy.HEAL
    assert rules.policy_of(FindingKind.FOREIGN_REASSIGNMENT) is WatchPolicy.WATCH


def test_every_problem_is_named() -> None:
    wrong = {"grace": 3, "heals_a_day": 0, "policies": {"slow_broker": "heal"}}
    with pytest.raises(InvalidRequestError) as refused:
        WatchRules.parse(wrong)
    text = "\n".join(refused.value.problems)
    assert len(refused.value.problems) == 3
    assert "grace=3" in text
    assert "the policy of slow_broker can only be watch" in text


def test_rules_of_the_version_before_are_taken_and_ignored() -> None:
    """No installation stops at an upgrade."""
    rules = WatchRules.parse({**dict.fromkeys(REMOVED, 1), "heals_a_day": 7})
    assert (rules.heals_a_day, set(rules.removed)) == (7, set(REMOVED))
    upgrade = (ROOT / "docs" / "upgrade.md").read_text()
    assert [name for name in REMOVED if f"`{name}`" not in upgrade] == []


def test_every_rule_is_reported_in_full() -> None:
    for rule in describe_fields(WatchRules):
        assert rule.description.endswith("."), rule.name
        assert rule.shown_default, rule.name
        if rule.name.endswith("_s"):
            assert rule.unit == "s"


def test_the_handbook_has_the_severity_of_each_kind() -> None:
    lines = (ROOT / "docs" / "howto" / "watch.md").read_text().splitlines()
    rows = [line.split("|") for line in lines if line.startswith("| `")]
    reported = {name: row[2].strip() for row in rows for name in re.findall("`([a-z_]+)`", row[1])}
    assert reported == {kind.value: kind.severity.value for kind in FindingKind}
