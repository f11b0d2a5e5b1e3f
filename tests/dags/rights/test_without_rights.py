"""Without rights to configure a cluster: files for Kafka's own tools, runs without a throttle."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.run.states import PlanState
from rehome.execution.throttle.keys import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
)
from rehome.ledger.store import Ledger
from rehome.warehouse import PlanDirectory
from tests.conftest import Topics
from tests.dags.clusters import throttles_become, throttles_of, to, whole_state
from tests.dags.runs import Run
from tests.rights import PLANNER, UNTHROTTLED, granted
from tests.versions.since import class_of_tool

USER = "reassigner"
TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
Rehome = Callable[..., Run]


def run_commands(cluster: LocalCluster, script: str, *entities: str) -> None:
    """Carry out the commands of a script for these brokers and topics, by the class that
    kafka-configs.sh starts.
    """
    for line in script.splitlines():
        words = shlex.split(line, comments=True)
        if words and words[0] == "kafka-configs.sh":
            said = words[words.index("--alter") :]
            if said[said.index("--entity-name") + 1] in entities:
                done = cluster.run_tool(class_of_tool("ConfigCommand"), *said)
                assert "Completed updating config" in done.stdout, done


def test_an_export_changes_nothing_and_kafkas_own_tool_carries_its_files_out(
    secured_cluster: LocalCluster,
    secured_topics: Topics,
    admin: ClusterGateway,
    ledger: Ledger,
    rehome: Rehome,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = secured_topics.create([[1, 2], [2, 1], [1, 3]])
    secured_topics.fill(topic, 20)
    wanted = {0: [3, 2], 1: [2, 3], 2: [4, 3]}
    before = whole_state(admin)
    monkeypatch.setenv("REHOME_MAX_PARTITIONS_IN_FLIGHT", "2")
    with granted(secured_cluster, USER, *PLANNER):
        run = rehome(
            secured_cluster.client_settings(USER),
            action="reassign",
            reassignment=to(topic, wanted),
            throttle=5_000_000,
            export=True,
        )
    assert run.state == "success", run.log
    assert run.tasks["execute"] == "skipped"
    assert whole_state(admin) == before
    (record,) = ledger.plans()
    assert record.state is PlanState.PLANNED
    directory = PlanDirectory(record.plan_dir)
    tried = directory.read_json("dry_run.json")
    lacking = [item for item in tried["findings"] if item["check"] == "rights"]
    assert tried["ok"]
    assert {item["severity"] for item in lacking} == {"warning"}
    assert {"Cluster AlterConfigs", "Cluster Alter", f"Topic AlterConfigs on {topic}"} == {
        item["subject"] for item in lacking
    }
    made = directory.read_json("export.json")
    assert made["batches"] == ["reassignment-0001.json", "reassignment-0002.json"]
    folder = directory.folder("export")
    run_commands(secured_cluster, folder.read_text("throttle-set.sh"), topic, "3")
    throttled = {name: dict[str, str]() for name in throttles_of(admin, [topic])} | {
        f"topic {topic}": {
            LEADER_REPLICAS: "0:1,0:2,1:2,1:1,2:1,2:3",
            FOLLOWER_REPLICAS: "0:3,1:3,2:4",
        },
        "broker 3": {LEADER_RATE: "5000000", FOLLOWER_RATE: "5000000"},
    }
    throttles_become(admin, [topic], throttled)
    for batch in made["batches"]:
        file = tmp_path / batch
        file.write_text(folder.read_text(batch))
        shown = ("--reassignment-json-file", str(file))
        done = secured_cluster.run_tool(TOOL, *shown, "--execute")
        assert "Successfully started partition reassignment" in done.stdout, done
        wait_until(lambda: not admin.list_reassignments(), "the batch")
    done = secured_cluster.run_tool(TOOL, *shown, "--verify", "--preserve-throttles")
    assert done.stdout.count("is completed") == len(json.loads(file.read_text())["partitions"])
    found = admin.describe_topics([topic])[topic].partitions
    assert {n: list(state.replicas) for n, state in found.items()} == wanted
    run_commands(secured_cluster, folder.read_text("throttle-clear.sh"), topic, "3")
    wait_until(lambda: whole_state(admin)["configs"] == before["configs"], "configs as before")


def test_without_a_throttle_a_plan_runs_only_where_the_policy_allows_it_and_says_so(
    secured_cluster: LocalCluster,
    secured_topics: Topics,
    admin: ClusterGateway,
    ledger: Ledger,
    rehome: Rehome,
) -> None:
    topic = secured_topics.create([[1, 2]])
    secured_topics.fill(topic, 20)
    before = whole_state(admin)
    asked: dict[str, Any] = {
        "action": "reassign",
        "reassignment": to(topic, {0: [3, 2]}),
        "unthrottled": True,
        "max_moves_per_broker": 1,
    }
    settings: dict[str, Any] = {**secured_cluster.client_settings(USER)}
    with granted(secured_cluster, USER, *UNTHROTTLED):
        for policy in (None, {"actions": ["reassign"]}):
            extra = {} if policy is None else {"rehome.policy": policy}
            refused = rehome({**settings, **extra}, **asked)
            assert refused.state == refused.tasks["snapshot"] == "failed"
            assert "No plan may run without a throttle" in refused.log
        assert whole_state(admin) == before
        run = rehome({**settings, "rehome.policy": {"unthrottled": True}}, **asked)
    assert run.state == "success", run.log
    (record,) = ledger.plans()
    assert record.state is PlanState.DONE
    assert admin.describe_topics([topic])[topic].partitions[0].replicas == (3, 2)
    wait_until(lambda: whole_state(admin)["configs"] == before["configs"], "configs as before")
    assert not ledger.throttles()
    assert record.rate_bytes_per_s is None
    assert record.approval is not None
    assert record.approval.terms.unthrottled == 1
    assert "**without a throttle**: 1 move at once" in run.log, "the approval"
    assert "it runs without a throttle: 1 move at once" in run.log, "the dry run"
    assert "without a throttle" in run.note
    report = PlanDirectory(record.plan_dir).read_text("report.html")
    assert "without a throttle, 1 move at once for each broker and direction" in report
