"""``rehome foreign``: what any client has in flight on real brokers, from a shell."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cli import foreign
from rehome.cli.main import main
from rehome.cli.output import ExitCode
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import TopicPartition
from rehome.execution.throttle.keys import FOLLOWER_RATE, LEADER_RATE, LISTS
from tests.conftest import Topics
from tests.execution.throttle.on_brokers import (
    leave_no_rates,  # noqa: F401 - an autouse fixture
    set_config,
)

HERE = ("--connection", "kafka_one")


@pytest.fixture
def moving(
    cluster: LocalCluster,
    gateway: ClusterGateway,
    topics: Topics,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> TopicPartition:
    """A partition that another client moves, slowly."""
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")
    connection = {"conn_type": "kafka", "extra": dict(cluster.client_settings())}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_ONE", json.dumps(connection))
    topic = topics.create([[1, 2], [1, 2]])
    topics.fill(topic, 3000)
    throttle_by_hand(gateway, topic)
    partition = TopicPartition(topic, 0)
    assert gateway.alter_reassignments({partition: (3, 2)}) == {partition: None}
    return partition


def throttle_by_hand(gateway: ClusterGateway, topic: str, rate: int = 20_000) -> None:
    """As another client throttles what goes from broker 1 to broker 3."""
    for key in LISTS:
        set_config(gateway, ConfigResource.topic(topic), key, "*")
    set_config(gateway, ConfigResource.broker(1), LEADER_RATE, str(rate))
    set_config(gateway, ConfigResource.broker(3), FOLLOWER_RATE, str(rate))


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    capsys.readouterr()
    assert main(["foreign", *words, *HERE, "--json"]) == ExitCode.DONE
    return json.loads(capsys.readouterr().out)


def test_it_is_listed_described_and_followed_to_its_end(
    moving: TopicPartition,
    gateway: ClusterGateway,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of_it = ("--topics", moving.topic)
    (row,) = printed(capsys, "list", *of_it)["reassignments"]
    assert (row["partition"], row["adding"], row["removing"]) == (0, [3], [1])
    assert printed(capsys, "list", "--topics", f"{moving.topic}:1")["reassignments"] == []
    assert printed(capsys, "list", *of_it, "--brokers", "4")["reassignments"] == []
    (found,) = printed(capsys, "describe", *of_it)["reassignments"]
    assert (found["leader"], found["plan_id"], found["target"]) == (1, None, [3, 2])
    assert found["never_ends"] is None
    once = printed(capsys, "follow", "--once", *of_it)
    assert {each["broker"] for each in once["replicas"]} == {2, 3}
    assert main(["foreign", "follow", "--once", *of_it, *HERE]) == ExitCode.DONE
    assert "[3, 2]" in describe_text(capsys, *of_it)
    looks: list[float] = []

    def no_throttle(seconds: float) -> None:
        looks.append(seconds)
        throttle_by_hand(gateway, moving.topic, rate=100_000_000)

    monkeypatch.setattr(foreign, "time", SimpleNamespace(sleep=no_throttle))
    assert main(["foreign", "follow", *of_it, *HERE]) == ExitCode.DONE
    assert "1 of 1 are complete." in capsys.readouterr().out
    assert looks
    assert gateway.list_reassignments([moving]) == {}


def describe_text(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main(["foreign", "describe", *words, *HERE]) == ExitCode.DONE
    return capsys.readouterr().out


def test_what_is_cancelled_while_it_is_followed_ends_the_command_with_1(
    moving: TopicPartition,
    gateway: ClusterGateway,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def cancelled(seconds: float) -> None:
        gateway.alter_reassignments({moving: None})
        wait_until(lambda: moving not in gateway.list_reassignments(), "the cancel")

    monkeypatch.setattr(foreign, "time", SimpleNamespace(sleep=cancelled))
    of_it = ("--topics", moving.topic)
    assert main(["foreign", "follow", *of_it, *HERE]) == ExitCode.FAILED
    assert "another client cancelled it" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("list", "--connection", "kafka_none"), ExitCode.NOT_THERE),
        (("list", "--topics", "re:("), ExitCode.USAGE),
        (("cancel", "--yes"), ExitCode.USAGE),
        (("adopt", "--all", "--throttle", "fast", "--yes"), ExitCode.USAGE),
        (("adopt", "--all", "--topics", "orders", "--yes"), ExitCode.USAGE),
    ],
)
def test_each_failure_has_its_code(
    words: tuple[str, ...], code: ExitCode, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["foreign", *words]) == code
    assert capsys.readouterr().err.startswith("rehome: ")
