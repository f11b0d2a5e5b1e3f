"""Nobody but the account reads the ledger for what the account holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from rehome.account.evidence import (
    EvidenceFollower,
    read_evidence,
    read_hurting,
    read_samples,
)
from rehome.account.hurts import hurts_of
from rehome.domain.plan.plan import Plan
from rehome.domain.run.causes.hurts import Hurt, HurtKind
from rehome.domain.run.states import MoveState
from rehome.ledger.store import Ledger
from tests.account.plans_with_bytes import MOVES, admit, poll, settle
from tests.ledger.set_clock import SetClock

ROOT = Path(__file__).resolve().parents[2]
VIEWS = (
    *(f"include/rehome/{room}" for room in ("page", "reporting", "alerts", "metrics", "watching")),
    *(f"plugins/rehome/{room}" for room in ("ui", "cli", "notifiers", "api", "hooks", "scheduled")),
    *(f"plugins/rehome/{module}.py" for module in ("airflow_metrics", "alerting", "links")),
)
READS = {
    *("samples", "move_sums", "moves_changed", "flying", "hurts", "turns", "ended_runs_of"),
    *("throttle_counts", "rate_changes", "last_actor", "overtaken_by", "dry_runs", "lost_data"),
    *("owed_on", "plan_states_on", "watched_clusters", "open_alerts_of_cluster", "last_policies"),
}
"""Of the ledger: the evidence of the accounts of plans and clusters."""
FIGURES = {"bytes_done", "bytes_total", "received_bytes", "grown_bytes", "shrunk_bytes", "eta_s"}
FIGURES_OF_RECORDS = {"bytes_in_place", "bytes_taken_back", "in_place", "not_recorded"}
"""Of rows: the account's bytes."""
PICTURES = {
    "include/rehome/reporting/charts/progress_charts.py": {"bytes_done", "bytes_total"},
    "include/rehome/reporting/report.py": {"in_place"},
    "plugins/rehome/extras/airflow_metrics.py": {"flying"},
    "plugins/rehome/api/decisions.py": {"not_recorded"},
    "plugins/rehome/cli/foreign.py": {"eta_s", "bytes_in_place"},
}
"""Who draws samples over time, a bar of the account, counts its moves in flight by broker, or names
figures of something else than a plan: entries of the audit, other clients' reassignments.
"""


def of_their_own(source: str) -> Iterator[str]:
    """Reads of the ledger, and figures of its rows, that a module goes by."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield from READS & {node.func.attr}
        if isinstance(node, ast.Attribute):
            yield from (FIGURES | FIGURES_OF_RECORDS) & {node.attr}


@pytest.mark.slow
def test_views_of_a_plan_read_no_figure_that_its_account_holds() -> None:
    found: dict[str, set[str]] = {}
    for folder in VIEWS:
        place = ROOT / folder
        for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            own = set(of_their_own(path.read_text())) - PICTURES.get(name, set())
            found |= {name: own} if own else {}
    assert found == {}


@pytest.mark.parametrize(
    "source", ["ledger.move_sums(plan_id)", "a.ledger.samples(p)[-1]", "sample.bytes_done"]
)
def test_what_would_be_one(source: str) -> None:
    assert list(of_their_own(source))


def test_evidence_is_the_newest_of_all(ledger: Ledger, plan: Plan, clock: SetClock) -> None:
    admit(ledger, clock, *MOVES)
    for copied in (100, 200):
        poll(ledger, plan, clock, {MOVES[0]: (1000, copied)})
    settle(ledger, MoveState.FAILED, MOVES[1])
    ledger.record_hurts("p1", clock(), [Hurt(HurtKind.DEAD_BROKERS, (3,))])
    evidence = read_evidence(ledger, "p1")
    assert evidence.sample is not None
    assert evidence.sample.bytes_done == 200
    assert {state: sums.moves for state, sums in evidence.sums.items()} == {
        MoveState.ADMITTED: 2,
        MoveState.FAILED: 1,
    }
    hurting = read_hurting(ledger, evidence.record)
    assert hurts_of(hurting, clock()) == hurts_of(evidence, clock()) != ()
    follower = EvidenceFollower(ledger, "p1")
    assert follower.read() == evidence
    assert {move for move, _ in follower.flying} == {MOVES[0], MOVES[2]}
    settle(ledger, MoveState.DONE, MOVES[0])
    assert follower.read() == read_evidence(ledger, "p1")
    assert list(follower.newly_done) == [MOVES[0]]
    follower.read()
    assert list(follower.newly_done) == []
    assert [sample.bytes_done for sample in read_samples(ledger, "p1")] == [100, 200]
