"""What happens on that day. Nothing is expected here: what followed is in the rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.domain.run.watched.finding_kinds import FindingKind
from rehome.run.context import RunContext
from tests.conftest import Topics, impatient_gateway
from tests.dags.approval import answers
from tests.dags.day.day import Day
from tests.dags.day.happened import Act

SLOW_S = 9.0


def restarts(day: Day) -> None:
    with day.act(Act.RESTART, "Broker 1 restarts, and is back within ten minutes"):
        day.look()
        day.kill(1)
        day.look()
        day.restart(1)
        day.look(3)


def flaps(day: Day) -> None:
    what = "Broker 6 is away for ten minutes and back for ten, four times"
    with day.act(Act.FLAPPING, what):
        for _ in range(4):
            day.kill(6)
            day.look()
            day.restart(6)
            day.look()
        day.look()


def dies(day: Day) -> None:
    with day.act(Act.BROKER_DIES, "Broker 2 dies") as row:
        day.kill(2)
        day.until(lambda: bool(row.started))
        day.look()
        day.until(lambda: not day.is_open(FindingKind.DEAD_BROKER, "broker 2"), 4)


def a_new_one_comes(day: Day, patch: pytest.MonkeyPatch) -> None:
    what = "A new broker comes, broker 7, and a person approves the proposal"
    with day.act(Act.NEW_BROKER, what) as row, patch.context() as patched:
        answers.answered_by(patched, "ann")
        day.restart(7)
        day.until(lambda: bool(row.started))
        day.until(lambda: not day.is_open(FindingKind.EMPTY_BROKER, "broker 7"), 4)


def a_disk_fills(day: Day, topic: str, broker: int, index: int) -> None:
    disk = day.cluster.log_dirs(broker)[index]
    what = f"A disk of broker {broker} is full. Later it is emptied, and the broker restarted"
    with day.act(Act.DISK_FULL, what) as row:
        filler = disk / "not-kafka.bin"
        with pytest.raises(OSError, match="No space"):
            _fill(filler)
        _write_until(day, topic, lambda: _offline(day, broker))
        day.until(lambda: bool(row.started))
        day.look(5)
        filler.unlink()
        day.restart(broker)
        kind = FindingKind.OFFLINE_LOG_DIR
        day.until(lambda: not day.is_open(kind, f"broker {broker} {disk}"), 5)


def _fill(path: Path) -> None:
    """Until no byte is left."""
    with path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 12))


def _offline(day: Day, broker: int) -> bool:
    with impatient_gateway(day.cluster) as gateway:
        found: Any = gateway.describe_log_dirs([broker])
    return "STORAGE" in str(found)


def _write_until(day: Day, topic: str, over: Callable[[], bool]) -> None:
    topics = Topics(day.cluster)

    def wrote() -> bool:
        topics.fill(topic, 100, 10_000, acks="1")
        return over()

    wait_until(wrote, "the broker to see that its disk is full", 120)


def the_connection_is_edited(day: Day, other: LocalCluster, patch: pytest.MonkeyPatch) -> None:
    what = "The connection is edited: for half an hour it leads to another cluster"
    with day.act(Act.EDITED_CONNECTION, what) as row:
        before = len(day.ledger.plans())
        _connect(patch, other)
        day.look(3)
        _connect(patch, day.cluster)
        day.look(4)
        row.facts["plans_made"] = len(day.ledger.plans()) - before


def _connect(patch: pytest.MonkeyPatch, cluster: LocalCluster) -> None:
    kafka = {"conn_type": "kafka", "extra": dict(cluster.client_settings())}
    patch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(kafka))


def the_file_is_broken(day: Day, clusters_file: Path) -> None:
    what = "The clusters file is saved with a mistake, and fixed ten minutes later"
    with day.act(Act.BROKEN_FILE, what) as row:
        right = clusters_file.read_text()
        clusters_file.write_text(right.replace("connection", "conection"))
        with pytest.raises(AirflowException):
            day.look()
        row.facts["run_state"] = day.rehome(day.cluster, dag="watch_clusters").state
        clusters_file.write_text(right)
        day.look()


def a_rack_dies(day: Day) -> None:
    with day.act(Act.RACK_DIES, "Rack c is away, brokers 5 and 6, for an hour") as row:
        day.kill(5, 6)
        day.look(6)
        day.restart(5, 6)
        day.until(lambda: not day.is_open(FindingKind.DEAD_BROKER, "broker 5"), 5)
        day.until(lambda: not day.is_open(FindingKind.DEAD_BROKER, "broker 6"), 2)
        row.facts["heals"] = len(row.started)


def the_webhook_is_slow(day: Day) -> None:
    what = f"Broker 1 dies, while the webhook takes {SLOW_S:g} s to answer. It comes back later"
    with day.act(Act.SLOW_WEBHOOK, what) as row:
        day.webhook.answers_after_s = SLOW_S
        day.kill(1)
        day.until(lambda: bool(row.started))
        day.look(2)
        day.webhook.answers_after_s = 0.0
        day.look()
        row.facts |= {
            "longest_judging_s": round(max(day.judging_s), 1),
            "longest_sending_s": round(max(day.sending_s), 1),
        }


def nobody_answers(day: Day, patch: pytest.MonkeyPatch) -> None:
    what = (
        "Broker 2 is back, empty, and no person answers the proposal for a day. Then broker 3 dies"
    )
    with day.act(Act.NO_ANSWER, what) as row, patch.context() as patched:

        def lapses(asking: Any, context: Any) -> Any:
            day.clock.pass_until(day.clock.utc_now() + timedelta(days=1))
            return asking.execute_complete(
                RunContext(context), {"timedout": True, "chosen_options": []}
            )

        patched.setattr(
            "rehome.run.asking.hitl.show_question", lambda a, _: (a.body, list(a.options))
        )
        operator = "airflow.providers.standard.operators.hitl.ApprovalOperator"
        patched.setattr(f"{operator}.execute", lapses)
        day.restart(2)
        day.until(lambda: bool(row.started))
        day.look(2)
        day.kill(3)
        day.until(lambda: len(row.started) > 1)
        day.look()
