"""The text of the request for approval."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime

from rehome.domain.plan.summary import PlanSummary
from rehome.domain.run.approval_terms import Terms
from rehome.domain.run.askers import Askers, Term
from rehome.domain.run.findings import Finding, Severity
from rehome.run.asking.approval_text import approval_text
from tests.planning.clusters import cluster
from tests.planning.planned import plan
from tests.planning.stored_clusters import Stored

TRIED = {
    "predicted": {"least_s": 20.0, "most_s": 75.0},
    "rate_cause": "half of what broker 3 can spare",
    "findings": [
        asdict(Finding(Severity.INFO, "foreign", "x-0", "a reassignment is in flight")),
        *(
            asdict(Finding(Severity.WARNING, "drift", f"t-{n}", "has `grown`", "Plan anew."))
            for n in range(12)
        ),
        asdict(Finding(Severity.INFO, "alerts", "alert_channels", "there is none")),
    ],
}


def text_of(summary: PlanSummary) -> str:
    ends = datetime(2030, 1, 1, 5, tzinfo=UTC)
    terms = Terms(summary.plan_hash, 10_000_000, ends, additional=True)
    return approval_text(
        summary,
        "Drain broker 0",
        terms,
        "http://airflow/plugin/reassignments/rehome/plans/p1",
        Askers("ann", "bob", {Term.RATE: "bob", Term.WINDOW: "carl"}),
        lasting_s=7200,
        tried=TRIED,
    )


def test_moves_between_log_dirs_are_distinguished_from_what_crosses_the_network() -> None:
    of = Stored({(0, "/a"): {0: 100, 1: 100, 2: 100, 3: 100}, (0, "/b"): {}})
    text = text_of(plan(of, action="move_log_dirs", rate=10).summary)
    assert "| to move | 0 B;" in text
    assert "| 2 replicas (200 B) move between log dirs of the brokers they are on" in text


def test_a_plan_without_moves_between_log_dirs_does_not_speak_of_them() -> None:
    drained = plan(cluster([""] * 3, [(0, 1)]), action="drain", brokers=[0], rate=10)
    text = text_of(drained.summary)
    assert "| to move | 100 B;" in text
    assert "log dirs" not in text


def test_an_approver_reads_exactly_what_is_approved_and_for_how_long() -> None:
    drained = plan(cluster([""] * 3, [(0, 1)]), action="drain", brokers=[0], rate=10)
    text = text_of(drained.summary)
    assert drained.plan_hash in text
    assert "| Drain broker 0 |" in text
    assert "20 s to 1 min 15 s at 10 MB/s per broker and direction (auto: half of what" in text
    assert "10 MB/s (10000000 bytes per second) for each broker and direction at most" in text
    assert "until 2030-01-01 05:00:00 UTC, when nothing is in flight any more" in text
    assert "also while other clients reassign partitions" in text
    assert "2 h after it was given" in text
    assert "| findings | 1 warning and 2 notes |" in text
    line = "- `warning: drift: t-0, t-1, t-2, t-3, t-4 and 7 more: has 'grown'. Plan anew.`\n"
    assert text.count(line) == 1
    asked_by = "ann (the plan), bob (the run and the throttle), carl (the window)"
    assert f"| asked for by | {asked_by} |" in text
    assert "(http://airflow/plugin/reassignments/rehome/plans/p1)" in text


def test_an_approver_reads_what_the_plan_weakens() -> None:
    away = plan(cluster(["a", "a", "b"], [(0, 2)]), action="drain", brokers=[2], rate=10)
    assert "| **weakens** | 1 partition, such as " in text_of(away.summary)
    assert "in 1 rack instead of 2" in text_of(away.summary)
    kept = plan(cluster(["a", "b", "b"], [(0, 2)]), action="drain", brokers=[2], rate=10)
    assert "weakens" not in text_of(kept.summary)
