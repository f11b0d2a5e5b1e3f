"""Where Rehome was tried: each trial has its test, and each outcome its trial."""

from __future__ import annotations

import ast
from datetime import date

from handbook.installations import NOT_YET, installations, installations_page, outcomes
from handbook.sources import ROOT


def test_each_trial_is_made_by_a_test_that_is_there() -> None:
    for trial in installations().tried:
        path, _, name = trial.test.partition("::")
        tree = ast.parse((ROOT / path).read_text())
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_each_outcome_is_of_a_trial_and_has_a_day() -> None:
    trials = [trial.trial for trial in installations().tried]
    assert len(trials) == len(set(trials))
    assert set(outcomes()) <= set(trials)
    for tried in outcomes().values():
        assert date.fromisoformat(tried.date)
        assert tried.versions


def test_what_was_not_tried_yet_is_not_said_to_work() -> None:
    page = installations_page()
    missing = {trial.trial for trial in installations().tried} - set(outcomes())
    assert page.count(f"| {NOT_YET} |") == len(missing)
