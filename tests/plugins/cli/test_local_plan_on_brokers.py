"""A plan from a laptop: made, judged and tried out on real brokers, without Airflow or a ledger."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from local.kafka.cluster import LocalCluster
from rehome.cli.local_plan import NOT_RECORDED
from rehome.cli.main import main
from rehome.cli.output import ExitCode
from rehome.cluster.gateway import ClusterGateway
from tests.conftest import Topics
from tests.dags.clusters import throttles_of


def test_a_drain_is_planned_and_tried_out_and_nothing_changes(
    cluster: LocalCluster,
    gateway: ClusterGateway,
    topics: Topics,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic = topics.create([[4, 1], [2, 4]])
    topics.fill(topic, 50)
    before = throttles_of(gateway, [topic])
    settings = tmp_path / "client.json"
    settings.write_text(json.dumps(cluster.client_settings()))
    policy = "{actions: [rebalance], largest_throttle: 1000000}"
    clusters = tmp_path / "clusters.yaml"
    clusters.write_text(f"clusters: {{here: {{connection: k1, policy: {policy}}}}}")
    drain = ["plan", "drain", "--brokers", "4", "--topics", topic, "--throttle", "1MB/s", "--local"]
    asked = [*drain, "--client-config", str(settings)]

    assert main(asked) == ExitCode.DONE
    said = capsys.readouterr()
    assert NOT_RECORDED in said.err
    assert "may run; nothing was changed" in said.err
    moved = json.loads(said.out)["partitions"]
    moves = {(each["topic"], each["partition"]): each for each in moved}
    assert set(moves) == {(topic, 0), (topic, 1)}
    assert all(4 not in each["replicas"] for each in moves.values())

    within = ["--clusters-file", str(clusters), "--connection", "k1", "--json"]
    assert main([*asked, *within]) == ExitCode.FAILED
    found = json.loads(capsys.readouterr().out)
    assert found["state"] == "not recorded"
    assert found["dry_run"]["ok"]
    assert "drain" in " ".join(found["policy_refusals"])
    back = {each["partition"]: each["replicas"] for each in found["rollback"]["partitions"]}
    assert back == {0: [4, 1], 1: [2, 4]}

    assert main([*asked, "--connection", "other", *within[:2]]) == ExitCode.REFUSED
    assert "names no connection of the clusters file" in capsys.readouterr().err
    assert throttles_of(gateway, [topic]) == before
    assert not gateway.list_reassignments()
