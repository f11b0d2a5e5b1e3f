"""The worst attacks again where FAB says who may do what: by an Op, who may write XComs, and by a
User, who may create events of assets.

FAB is not in the lock: docs/threats.md says how to install it.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.kafka.cluster import LocalCluster
from rehome.domain.request.partition_counts import AddedPartitions
from tests.attacks.conftest import DAGS, RATE, Stack, attacked_airflow
from tests.attacks.in_process import GUARDED, moving
from tests.attacks.listener import Trap
from tests.attacks.people import ENDED, RETURNED, TRIED, Person, Run

WHY_NOT = "apache-airflow-providers-fab is not installed (docs/threats.md)"
pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not importlib.util.find_spec("airflow.providers.fab"), reason=WHY_NOT),
]

ADDS, CONTROLS, MOVES = "add_partitions", "control_reassignment", "reassign_partitions"
WATCHES, IN_WINDOW = "watch_clusters", "rebalance_in_window"
FAB = "airflow.providers.fab.auth_manager.fab_auth_manager.FabAuthManager"
ROLES = {"vic": "Viewer", "ann": "User", "bob": "User", "eve": "User", "ops": "Op"}
FORGED = 45_000_000


@pytest.fixture(scope="module")
def fab(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Airflow with FAB, and a user of each role."""
    env = {
        "AIRFLOW__CORE__AUTH_MANAGER": FAB,
        "REHOME_WINDOW_CRON": "0 0 29 2 *",  # it is closed
    }
    users = [f"{name}:{role}" for name, role in {**ROLES, "admin": "Admin"}.items()]
    home = tmp_path_factory.mktemp("with_fab")
    more: dict[str, Any] = {
        "dag_ids": (*DAGS, WATCHES, IN_WINDOW),
        "before": ["-m", "tests.attacks.fab_users", *users],
    }
    with attacked_airflow(cluster, home, ROLES, env, **more) as started:
        yield started


def forges(who: Person, run: Run, task: str, value: Any, key: str = RETURNED) -> int:
    """Try to write an XCom; the status of the answer."""
    where = f"{run.task(task)}/xcomEntries"
    body = {"key": key, "value": value, "map_index": -1}
    there = who.ask("PATCH", f"{where}/{key}", {"value": value, "map_index": -1})
    return there.status_code if there.is_success else who.ask("POST", where, body).status_code


def may_write(name: str) -> bool:
    """Whether FAB lets a role write XComs."""
    return ROLES[name] == "Op"


@pytest.mark.parametrize("forger", ["bob", "ops"])
def test_an_approval_that_was_written_by_hand_creates_no_partitions(
    fab: Stack, forger: str
) -> None:
    """(1) The same, approved by another user, does."""
    ann, attacker = fab["ann"], fab[forger]
    topic = fab.topic([1, 2])
    conf = {"partitions": {topic: 2}, "kafka_config_id": GUARDED}
    run = ann.triggers(ADDS, conf)
    ann.waits_for_question(run)
    placed = ann.xcom(run, "place").removeprefix("file://")
    digest = AddedPartitions.from_json(json.loads(Path(placed).read_text())).plan_hash
    codes = {forges(attacker, run, "approve", "eve", "approver")}
    codes |= {forges(attacker, run, "approve", digest, key) for key in (RETURNED, "plan_hash")}
    assert all((code < 400) is may_write(forger) for code in codes), codes
    attacker.marks(run, "approve", "success")
    attacker.wait(run, "create", TRIED)
    assert len(fab.witness.replicas(topic)) == 1, "nobody was asked"

    honest = ann.triggers(ADDS, conf)
    ann.waits_for_question(honest)
    fab["eve"].insists(honest, lambda: len(fab.witness.replicas(topic)) == 2)
    assert ann.wait_for_end(honest) == "success", ann.states(honest)
    assert len(fab.witness.replicas(topic)) == 2


def test_what_a_person_has_read_is_what_runs(fab: Stack) -> None:
    """(2) An Op asks for another throttle while the question is open, and forges the terms."""
    ann, ops, eve = fab["ann"], fab["ops"], fab["eve"]
    topic, plan_id = fab.planned()
    conf = {"plan_id": plan_id, "action": "run", "kafka_config_id": GUARDED}
    honest = ann.triggers(CONTROLS, conf)
    assert ann.wait_for_end(honest) == "success", ann.log(honest, "request")
    run = Run(MOVES, f"control__{honest.run_id}")
    assert str(RATE) in ann.waits_for_question(run)["body"]
    faster = ops.triggers(CONTROLS, conf | {"action": "change_throttle", "throttle": FORGED})
    ops.wait_for_end(faster)
    for key in ("terms", RETURNED):
        forges(ops, run, "approve", {"rate_bytes_per_s": FORGED}, key)
    eve.insists(run, times=1)
    again = eve.question(run)
    if again is None:
        ann.wait_for_end(run)
        assert max(fab.rates_set(plan_id), default=0) <= 1.2 * RATE
    else:
        assert str(FORGED) in again["body"]
        assert fab.witness.replicas(topic) == {0: (1, 2)}


@pytest.mark.parametrize("forger", ["bob", "ops"])
def test_a_run_in_another_persons_name_is_not_theirs(fab: Stack, forger: str) -> None:
    """(3) A failed request of ann's is given a forged result and cleared; its forger answers."""
    ann, attacker = fab["ann"], fab[forger]
    conf = {"plan_id": "none", "action": "run", "kafka_config_id": GUARDED}
    failed = ann.triggers(CONTROLS, conf)
    topic, plan_id = fab.planned()
    assert ann.wait_for_end(failed) == "failed"
    forged = moving(topic, (3, 2), throttle=RATE, plan_id=plan_id, approval=False)
    code = forges(attacker, failed, "request", forged)
    assert (code < 400) is may_write(forger), code
    attacker.marks(failed, "request", "success")
    attacker.clears(failed, "start")
    attacker.wait(failed, "start", TRIED)
    started = Run(MOVES, f"control__{failed.run_id}")
    assert not attacker.ask("GET", started.path).is_success, "nothing was started"
    assert fab.witness.replicas(topic) == {0: (1, 2)}


def test_an_event_of_a_snapshot_that_nobody_has_taken_is_left_out(fab: Stack, trap: Trap) -> None:
    """FAB's User may create events of assets."""
    bob, ops = fab["bob"], fab["ops"]
    ops.does("PATCH", f"/dags/{WATCHES}", {"is_paused": False})
    assets = bob.does("GET", "/assets?name_pattern=rehome_snapshots")["assets"]
    (asset,) = (each["id"] for each in assets if each["name"] == "rehome_snapshots")
    extra = {"cluster_id": fab.topics.cluster.cluster_id, "connection": GUARDED}
    extra |= {"taken_at": "2030-01-01T00:00:00+00:00"}
    began = len(bob.runs(MOVES))
    for uri in (*trap.hostile[:2], "file:///etc"):
        answer = bob.ask(
            "POST", "/assets/events", {"asset_id": asset, "extra": extra | {"uri": uri}}
        )
        assert answer.is_success, answer.text
    run = fab.waits_for_a_run(WATCHES)
    assert bob.wait_for_end(run) in ENDED
    assert "is left out" in bob.log(run, "watch")
    assert (trap.heard, len(bob.runs(MOVES))) == ([], began)


def test_a_window_is_not_made_longer_by_who_triggers_its_run(fab: Stack) -> None:
    """The data interval is the caller's choice. A backfill has no runs of windows that are over."""
    ann = fab["ann"]
    fab["ops"].does("PATCH", f"/dags/{IN_WINDOW}", {"is_paused": False})
    own = {
        "logical_date": "2026-11-01T00:00:00Z",
        "data_interval_start": "2026-11-01T00:00:00Z",
        "data_interval_end": "2030-01-01T00:00:00Z",
    }
    run = ann.triggers(IN_WINDOW, {"kafka_config_id": GUARDED}, **own)
    assert ann.wait(run, "snapshot", TRIED) == "failed"
    assert "window_end=2024-02-29 04:00:00+00:00 has passed" in ann.log(run, "snapshot")
    backfill = {
        "dag_id": IN_WINDOW,
        "from_date": "2024-02-28T00:00:00Z",
        "to_date": "2024-03-01T00:00:00Z",
        "dag_run_conf": {"kafka_config_id": GUARDED, "approval": False},
    }
    answer = ann.ask("POST", "/backfills", backfill)
    assert (answer.status_code, "No runs to create" in answer.text) == (422, True)
