"""What migrations make of rows that were there before."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, make_url, text

from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.request import OnWindowEnd, request_to_params
from rehome.domain.run.approval_terms import Approval, Terms
from rehome.domain.run.askers import Term
from rehome.domain.run.causes.cause import CauseKind
from rehome.ledger.base import database
from rehome.ledger.base.records import EndReason, SetBy
from rehome.ledger.store import Ledger

_ENTRY = (
    "INSERT INTO throttle_entries (plan_id, cluster_id, resource_type, resource_name, key, ours, "
    "prior_source, state, detail, changed_at) VALUES ('p', 'c', 'broker', '{name}', 'k', '[]', "
    "'NOT_SET', '{state}', '{detail}', '2026-01-01')"
)
_PLAN = (
    "INSERT INTO plans (plan_id, cluster_id, state, cause, action, plan_hash, request, plan_dir, "
    "run_id, actor, bytes_total, cancel_requested, pause_requested, created_at) VALUES "
    "('p', 'c', 'failed', '', '', '', '{}', '', '', '', 0, false, false, '2026-01-01')"
)
_CANCELLED = (
    "INSERT INTO plans (plan_id, cluster_id, state, cause, action, plan_hash, request, plan_dir, "
    "run_id, actor, bytes_total, cancel_requested, pause_requested, created_at, started_at) VALUES "
    "('{name}', 'c', 'cancelled', '{cause}', '', '', '{{}}', '', '', '', 0, false, false, "
    "'2026-01-01', {started_at})"
)
_RATED = (
    "INSERT INTO plans (plan_id, cluster_id, state, cause, action, plan_hash, request, plan_dir, "
    "run_id, actor, bytes_total, cancel_requested, pause_requested, created_at, "
    "requested_rate_bytes_per_s) VALUES ('{name}', 'c', '{state}', '', '', '', '{{}}', '', '', "
    "'ann', 0, false, false, '2026-01-01', {rate})"
)
_EVENT = (
    "INSERT INTO events (at, actor, kind, detail, plan_id) VALUES "
    "('2026-01-01', '{actor}', '{kind}', '{detail}', '{plan}')"
)


_ASKED = (
    "INSERT INTO plans (plan_id, cluster_id, state, cause, action, plan_hash, request, approval, "
    "plan_dir, run_id, actor, bytes_total, cancel_requested, pause_requested, created_at) VALUES "
    "('{name}', 'c', 'planned', '', 'drain', 'h', '{request}', {approval}, '', '', '', 0, false, "
    "false, '2026-01-01')"
)


def at_revision(ledger_url: str, revision: str, *statements: str) -> None:
    """A ledger as an older Rehome has left it."""
    config = _config()
    url = make_url(ledger_url)
    if url.get_backend_name() == "sqlite":
        Path(str(url.database)).parent.mkdir(parents=True)
    engine = create_engine(url)
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


def _migrate_down(ledger_url: str, revision: str) -> None:
    config, engine = _config(), create_engine(ledger_url)
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, revision)
    engine.dispose()


def _config() -> Config:
    config = Config()
    here = Path(database.__file__).parents[1] / "migrations"
    config.set_main_option("script_location", str(here))
    return config


def test_entries_that_said_in_words_that_others_had_changed_them_say_so_by_a_code(
    ledger_url: str,
) -> None:
    changed = "somebody has changed it since"
    at_revision(
        ledger_url,
        "0007",
        _PLAN,
        _ENTRY.format(name="1", state="owed", detail=changed),
        _ENTRY.format(name="2", state="cleared", detail=f"{changed}: None is now 7"),
        _ENTRY.format(name="3", state="owed", detail="broker 3 is not alive"),
    )
    with Ledger.open(ledger_url) as ledger:
        found = {entry.resource.name: entry.set_by for entry in ledger.throttles("p")}
    assert found == {"1": SetBy.OTHERS, "2": SetBy.OTHERS, "3": SetBy.REHOME}


def test_plans_that_said_in_a_word_that_they_were_rejected_say_so_by_a_code(
    ledger_url: str,
) -> None:
    at_revision(
        ledger_url,
        "0015",
        _CANCELLED.format(name="rejected", cause="rejected", started_at="NULL"),
        _CANCELLED.format(name="started", cause="rejected", started_at="'2026-01-01'"),
        _CANCELLED.format(name="cancelled", cause="cancelled by ann", started_at="NULL"),
    )
    with Ledger.open(ledger_url) as ledger:
        found = {record.plan_id: record.end_reason for record in ledger.plans()}
    assert found == {"rejected": EndReason.REJECTED, "started": None, "cancelled": None}


def test_who_has_asked_for_the_throttle_of_a_plan_that_has_not_ended_is_found_in_its_events(
    ledger_url: str,
) -> None:
    request, resumed = "throttle of {} B/s requested", "reassign_partitions/a-run"
    at_revision(
        ledger_url,
        "0022",
        *(_RATED.format(name=name, state="planned", rate=7) for name in ("asked", "resumed")),
        _RATED.format(name="own", state="planned", rate="NULL"),
        _RATED.format(name="unknown", state="planned", rate=7),
        _RATED.format(name="ended", state="done", rate=7),
        _EVENT.format(plan="asked", kind="continued", detail=resumed, actor="eve"),
        *(
            _EVENT.format(plan=plan, kind="request", detail=request.format(rate), actor=actor)
            for plan, rate, actor in (
                ("asked", 7, "bob"),
                ("asked", 7, "carl"),
                ("asked", 6, "dan"),
                ("resumed", 6, "dan"),
                ("own", 7, "dan"),
                ("ended", 7, "dan"),
            )
        ),
        _EVENT.format(plan="resumed", kind="continued", detail=resumed, actor="eve"),
    )
    with Ledger.open(ledger_url) as ledger:
        found = {record.plan_id: record.terms_asked_by for record in ledger.plans()}
    nobody: dict[Term, str] = {}
    assert found == {
        "asked": {Term.RATE: "carl"},
        "resumed": {Term.RATE: "eve"},
        "own": nobody,
        "unknown": nobody,
        "ended": nobody,
    }


def test_what_windows_called_drain_is_called_finish_and_the_action_keeps_its_name(
    ledger_url: str,
) -> None:
    night = datetime(2030, 1, 1, 4, tzinfo=UTC)
    asked = request_to_params(parse_request({"action": "drain", "brokers": [1]}))
    settings = {"targets.on_window_end": "finish", "targets.seed": 1}
    terms = Terms("h", 7, night, settings=settings)
    given = Approval(terms, "ann", True, night, night + timedelta(hours=1))
    approval = given.to_json() | {"settings": settings | {"targets.on_window_end": "drain"}}
    rows = {
        "approved": (asked | {"on_window_end": "drain"}, approval | {"on_window_end": "drain"}),
        "cancels": (asked | {"on_window_end": "cancel"}, approval | {"on_window_end": "cancel"}),
        "planned": (asked | {"on_window_end": "drain"}, None),
        "older": ({"action": "drain"}, None),
    }
    at_revision(
        ledger_url,
        "0023",
        *(
            _ASKED.format(
                name=name,
                request=json.dumps(request),
                approval="NULL" if approved is None else f"'{json.dumps(approved)}'",
            )
            for name, (request, approved) in rows.items()
        ),
    )
    with Ledger.open(ledger_url) as ledger:
        found = {record.plan_id: record for record in ledger.plans()}
    assert {name: record.request for name, record in found.items()} == {
        "approved": asked,
        "cancels": asked | {"on_window_end": "cancel"},
        "planned": asked,
        "older": {"action": "drain"},
    }
    assert asked["on_window_end"] == "finish"
    assert found["approved"].approval == given
    cancels = found["cancels"].approval
    assert cancels is not None
    assert cancels.terms.on_window_end is OnWindowEnd.CANCEL
    assert found["planned"].approval is found["older"].approval is None
    assert _as_written(ledger_url)["approved"] == (asked, given.to_json())
    _migrate_down(ledger_url, "0023")
    assert _as_written(ledger_url) == rows


def _as_written(ledger_url: str) -> dict[str, tuple[Any, Any]]:
    """Requests and approvals of plans, as the database has them."""
    engine = create_engine(ledger_url)
    with engine.connect() as connection:
        plans = connection.execute(text("SELECT plan_id, request, approval FROM plans")).all()
    engine.dispose()
    return {name: (_json(request), _json(approval)) for name, request, approval in plans}


def _json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value  # SQLite keeps text


def test_which_plan_a_run_took_up_is_found_in_the_events_that_said_so_in_words(
    ledger_url: str,
) -> None:
    at_revision(
        ledger_url,
        "0023",
        *(
            _EVENT.format(plan=plan, kind=kind, detail=detail, actor="ann")
            for plan, kind, detail in (
                ("before", "continued", "windows/night"),
                ("last", "continued", "windows/night"),
                ("other", "continued", "windows/a/b"),
                ("request", "request", "windows/day"),
                ("old", "continued", "night"),
            )
        ),
    )
    with Ledger.open(ledger_url) as ledger:
        assert ledger.taken_up_by("windows", "night") == "last"
        assert ledger.taken_up_by("windows", "a/b") == "other"
        assert ledger.taken_up_by("windows", "day") is None


def test_what_has_refused_a_run_that_watching_started_is_its_cause(ledger_url: str) -> None:
    start = (
        "INSERT INTO watch_starts (dag_id, run_id, cluster_id, kind, subject, opened_at, policy, "
        "started_at, ended_at, failed, refusal) VALUES ('d', '{run}', 'c', 'dead_broker', "
        "'broker 3', '2026-01-01', 'heal', '2026-01-01', '2026-01-02', true, {refusal})"
    )
    said = '{{"by": "{by}", "reasons": ["A", "B"], "layout": "", "settings": ""}}'
    kinds = {
        "gate_refused": CauseKind.GATE,
        "broker_away": CauseKind.NOT_HEALED,
        "dry_run_of_paused": CauseKind.DRY_RUN,
    }
    at_revision(
        ledger_url,
        "0037",
        *(start.format(run=by, refusal=f"'{said.format(by=by)}'") for by in kinds),
        start.format(run="well", refusal="NULL"),
        start.format(run="known", refusal=f"'{said.format(by='crash')}'"),
        "INSERT INTO run_causes (dag_id, run_id, task_id, attempt, cleared, kind, text, "
        "state_left, remedy, at) VALUES ('d', 'known', 'plan', 1, 0, 'spark', 'C', '', '', "
        "'2026-01-02')",
    )
    with Ledger.open(ledger_url) as ledger:
        found = {
            each.run_id: ledger.cause_of("d", each.run_id) for each in ledger.watch_starts("c")
        }
    causes = {run: cause for run, cause in found.items() if cause is not None}
    assert {run: cause.kind for run, cause in causes.items()} == {
        **kinds,
        "known": CauseKind.SPARK,
    }
    assert causes["gate_refused"].text == "A. B."
    assert causes["gate_refused"].at == datetime(2026, 1, 2, tzinfo=UTC)
