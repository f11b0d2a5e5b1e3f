"""Runs that tasks start are what their row says, once; requests are carried out once."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from rehome.domain.run.askers import Asker, AskerKind, RunDoor
from rehome.ledger.store import Ledger
from rehome.ledger.stores.authority.requested_runs import RequestedRun

AT = datetime(2030, 1, 1, tzinfo=UTC)
RUN = RequestedRun(
    "reassign_partitions",
    "control__r1",
    {"plan_id": "p1", "throttle": 7, "topics": ["a"], "window_end": None},
    RunDoor.CONTROL,
    "ann",
    "control_reassignment",
    "r1",
    "request",
    AT,
)


def test_what_was_asked_for_never_changes(ledger: Ledger) -> None:
    assert ledger.requested_run(RUN.dag_id, RUN.run_id) is None
    ledger.request_run(RUN)
    ledger.request_run(replace(RUN, asked_by="eve", conf={"plan_id": "p2"}))
    assert ledger.requested_run(RUN.dag_id, RUN.run_id) == RUN
    assert ledger.requested_run("rebalance_in_window", RUN.run_id) is None


def test_only_the_very_parameters_are_those_that_were_asked_for() -> None:
    assert RUN.has_conf(dict(reversed(list(RUN.conf.items()))))
    for other in (None, {}, {**RUN.conf, "throttle": 8}, {**RUN.conf, "brokers": [1]}):
        assert not RUN.has_conf(other)
    assert replace(RUN, conf={}).has_conf(None), "Airflow keeps no empty ones"


def test_a_request_is_begun_by_one_run_however_often_that_is_tried_again(ledger: Ledger) -> None:
    ledger.request_run(RUN)
    of_run = RUN.dag_id, RUN.run_id
    assert ledger.begin_requested(*of_run, AT)
    assert ledger.begin_requested(*of_run, AT)
    assert not ledger.begin_requested(*of_run, AT + timedelta(microseconds=1))
    found = ledger.requested_run(*of_run)
    assert found == replace(RUN, begun_by=AT)
    assert not ledger.begin_requested(RUN.dag_id, "unknown", AT)


def test_behind_a_run_that_a_task_has_started_is_a_person_or_the_rules() -> None:
    assert RUN.asker == Asker(AskerKind.PERSON, "ann")
    for door, kind in ((RunDoor.WATCH, AskerKind.WATCHING), (RunDoor.CONTROL, AskerKind.NOT_KNOWN)):
        assert replace(RUN, door=door, asked_by=None).asker == Asker(kind)


def test_when_a_request_was_carried_out_is_known_from_the_first_time_on(ledger: Ledger) -> None:
    assert ledger.carried_out("control_reassignment", "r1") is None
    ledger.carry_out("control_reassignment", "r1", 1)
    ledger.carry_out("control_reassignment", "r1", 2)
    assert ledger.carried_out("control_reassignment", "r1") == 1
    assert ledger.carried_out("control_reassignment", "r2") is None


def test_the_latest_attempt_says_which_clusters_are_not_watched(ledger: Ledger) -> None:
    ledger.record_not_watched("watch_clusters", "r1", ["b", "a"])
    assert ledger.not_watched("watch_clusters", "r1") == ["a", "b"]
    assert ledger.not_watched("watch_clusters", "r2") == []
    ledger.record_not_watched("watch_clusters", "r1", [])
    assert ledger.not_watched("watch_clusters", "r1") == []
