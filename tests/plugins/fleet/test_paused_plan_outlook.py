"""What a paused plan waits for, by the ledger, the settings and Airflow."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rehome import installation
from rehome.domain.run.paused.paused_plan import GoesOn, NeedsPerson, Outlook, Why
from rehome.domain.run.states import PlanState
from rehome.fleet import paused_plan
from rehome.fleet.paused_plan import DagPaused
from rehome.ledger.store import Ledger
from tests.ledger.small_plans import make_plan, move
from tests.load_history.recorded import CLUSTER
from tests.plugins.fleet.recorded import CONNECTION


@pytest.fixture(autouse=True)
def window(recorded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten minutes, which began a minute ago."""
    opened = datetime.now(UTC) - timedelta(minutes=1)
    monkeypatch.setenv("REHOME_WINDOW_CRON", f"{opened.minute} {opened.hour} * * *")
    monkeypatch.setenv("REHOME_WINDOW_DURATION_S", "600")


def pause(ledger: Ledger) -> None:
    plan = make_plan("p1", move("t", 0, (1, 3), (1, 2)), cluster_id=CLUSTER)
    ledger.create_plan(plan, {}, "file:///nowhere", "run-1", "ann", CONNECTION, "a_dag")
    ledger.approve("p1", plan.plan_hash, "ann")
    for state in (PlanState.RUNNING, PlanState.PAUSED):
        ledger.transition("p1", state, "the window has ended")


def found(ledger: Ledger, dag_paused: DagPaused = lambda _: False) -> Outlook | None:
    return paused_plan.outlook(ledger, ledger.plan("p1"), datetime.now(UTC), dag_paused)


def test_it_goes_on_in_the_next_window_as_airflow_says_at_that_moment() -> None:
    with installation.open_ledger() as ledger:
        pause(ledger)
        seen = found(ledger)
        assert isinstance(seen, GoesOn)
        assert seen.sure
        tomorrow = seen.opens_at - datetime.now(UTC)
        assert timedelta(hours=23) < tomorrow < timedelta(days=1)
        assert found(ledger, lambda dag_id: dag_id == "rebalance_in_window") == NeedsPerson(
            Why.WINDOW_DAG_PAUSED
        )
        assert found(ledger, paused_plan.cannot_ask) == replace(seen, sure=False)


def test_a_plan_gets_nowhere_when_no_move_of_it_ended_in_its_last_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with installation.open_ledger() as ledger:
        pause(ledger)
        assert paused_plan.is_stuck(ledger, ledger.plan("p1"))
        seen = found(ledger)
        assert isinstance(seen, GoesOn)
        assert seen.stuck
        monkeypatch.setattr(ledger, "last_done_at", lambda _: datetime.now(UTC))
        assert not paused_plan.is_stuck(ledger, ledger.plan("p1"))
        monkeypatch.undo()
        ledger.request_pause("p1", "ann")
        assert not paused_plan.is_stuck(ledger, ledger.plan("p1")), "a person has paused it"


@pytest.mark.parametrize(
    ("request_", "rate", "stuck"),
    [
        ({"throttle": 1_000}, None, True),
        ({"throttle": 1_000}, 2_000, False),
        ({"throttle": 2_000}, None, False),
        ({"throttle": 1_000, "on_window_end": "cancel"}, None, False),
        ({"throttle": 1_000, "unthrottled": True}, None, False),
        ({"throttle": "auto"}, None, False),
    ],
)
def test_a_plan_whose_smallest_move_outlasts_the_window_is_known_to_before_it_is_handed_over(
    request_: dict[str, Any], rate: int | None, stuck: bool
) -> None:
    moves = (move("t", n, (1, 3), (1, 2), size) for n, size in ((0, 1_000_000), (1, 2_000_000)))
    plan = make_plan("p1", *moves, cluster_id=CLUSTER)
    with installation.open_ledger() as ledger:
        ledger.create_plan(plan, request_, "file:///nowhere", "run-1", "ann", CONNECTION, "a_dag")
        record, now = ledger.plan("p1"), datetime.now(UTC)
        seen = paused_plan.next_window(ledger, record, now, lambda _: False, rate=rate)
        assert isinstance(seen, GoesOn)
        assert seen.stuck is stuck


def test_copies_between_log_dirs_start_in_any_window() -> None:
    dirs = {"current_log_dirs": ("/a", "/a"), "target_log_dirs": ("/b", "/a")}
    plan = make_plan("p1", move("t", 0, (1, 3), (1, 3), 2_000_000, **dirs), cluster_id=CLUSTER)
    with installation.open_ledger() as ledger:
        asked = {"throttle": 1_000}
        ledger.create_plan(plan, asked, "file:///nowhere", "run-1", "ann", CONNECTION, "a_dag")
        assert ledger.smallest_move_bytes("p1") == 2_000_000
        record, now = ledger.plan("p1"), datetime.now(UTC)
        seen = paused_plan.next_window(ledger, record, now, lambda _: False)
        assert isinstance(seen, GoesOn)
        assert not seen.stuck


def test_a_person_is_needed_by_a_persons_pause_and_by_settings_that_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with installation.open_ledger() as ledger:
        pause(ledger)
        broken = tmp_path / "clusters.yaml"
        broken.write_text("clusters: [")
        with monkeypatch.context() as patch:
            patch.setenv("REHOME_CLUSTERS_FILE", str(broken))
            unread = found(ledger)
            assert isinstance(unread, NeedsPerson)
            assert unread.why is Why.NOT_KNOWN
            assert "clusters.yaml" in unread.detail
        broken.write_text("clusters:\n  other:\n    connection: kafka_other\n")
        with monkeypatch.context() as patch:
            patch.setenv("REHOME_CLUSTERS_FILE", str(broken))
            assert found(ledger) == NeedsPerson(Why.NO_WINDOW), "the file leaves its cluster out"
        ledger.request_pause("p1", "ann")
        assert found(ledger) == NeedsPerson(Why.PAUSED_BY_PERSON)
        ledger.withdraw_pause("p1", "ann")
        ledger.transition("p1", PlanState.CANCELLED, "enough")
        assert found(ledger) is None
