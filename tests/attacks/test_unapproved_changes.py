"""Changes of a cluster that no approval covers: by what is in no plan, by another connection, by
files that were edited; and by a cluster that is not the one that was meant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from local.kafka.cluster import LocalCluster
from tests.attacks.in_process import GUARDED, LAX, Attacked, moving
from tests.dags.runs import fresh_dag
from tests.versions.since import cordons

pytestmark = pytest.mark.slow
MOVES = "reassign_partitions"
CORDON = "cordoned.log.dirs"


@pytest.fixture
def uncordoned(cluster: LocalCluster) -> Iterator[int]:
    """A broker that takes new replicas, and will again."""
    broker = 4
    yield broker
    admin = AdminClient(cluster.client_settings())
    entry = ConfigEntry(CORDON, None, incremental_operation=AlterConfigOpType.DELETE)
    resource = ConfigResource(ConfigResource.Type.BROKER, str(broker), incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(60)


@cordons
def test_a_cordon_is_approved_though_nothing_moves(attacked: Attacked, uncordoned: int) -> None:
    """(4) And what is asked says that it stays."""
    topic = attacked.topics.create([[1, 2]])
    run = attacked.run(
        MOVES,
        action="drain",
        brokers=[uncordoned],
        topics=[topic],
        cordon="keep",
        approval=False,
        kafka_config_id=GUARDED,
    )
    assert attacked.witness.cordoned(uncordoned) == ""
    assert run.state == "failed"
    (question,) = attacked.asked
    assert "cordon" in question.lower()


def test_a_new_plan_through_the_lax_connection_is_asked_about_as_well(attacked: Attacked) -> None:
    """(10) Of all connections that are known to lead to a cluster, the strictest policy holds."""
    topic = attacked.topics.create([[1, 2]])
    attacked.run("collect_snapshots", kafka_config_id=GUARDED)
    run = attacked.run(MOVES, **moving(topic, [3, 2], approval=False) | {"kafka_config_id": LAX})
    assert attacked.witness.replicas(topic) == {0: (1, 2)}, run.log


FORGED = 7_777_777_777


def _forged(value: Any) -> Any:
    """The same with another number wherever there is one."""
    if isinstance(value, dict):
        return {key: _forged(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_forged(each) for each in value]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return type(value)(FORGED) if is_number and value > 4 else value


@pytest.mark.parametrize("name", ["summary.json", "dry_run.json"])
def test_figures_that_were_edited_are_not_what_a_person_is_asked_by(
    attacked: Attacked, name: str
) -> None:
    """(6) Who may write to the warehouse decides nothing about what the approver reads."""
    topic = attacked.topics.create([[1, 2]])
    attacked.topics.fill(topic, 20, size_bytes=1000)
    made = attacked.run(MOVES, **moving(topic, [3, 2], dry_run=True))
    assert made.state == "success", made.log
    file = attacked.plan_file(name)
    plan_id = json.loads(attacked.plan_file("summary.json").read_text())["plan_id"]
    honest = json.loads(file.read_text())
    edited = _forged(honest)
    if name == "summary.json":  # what is checked today stays
        edited |= {key: honest[key] for key in ("plan_hash", "plan_id", "files") if key in honest}
    assert edited != honest
    file.write_text(json.dumps(edited))
    run = attacked.run(MOVES, **moving(topic, [3, 2], plan_id=plan_id))
    assert run.state == "failed"
    shown = "\n".join(attacked.asked)
    assert not re.search(r"7[.,]?78 GB|7.?777.?777.?777", shown), shown
    assert attacked.witness.replicas(topic) == {0: (1, 2)}


def test_a_cluster_id_leads_to_no_other_folder(tmp_path: Path) -> None:
    """(9) It comes from the brokers that answer, whoever they are."""
    from rehome.domain.kafka import TopicPartition
    from rehome.errors import RehomeError
    from rehome.warehouse import Warehouse
    from tests.planning.clusters import Cluster

    cluster = Cluster(
        racks={1: "a"},
        replicas={TopicPartition("t", 0): (1,)},
        sizes={TopicPartition("t", 0): 1},
        disks={1: (10, 1)},
    )
    home = tmp_path / "a" / "b" / "warehouse"
    warehouse = Warehouse(home.as_uri())
    for hostile in ("../../../outside", "x/../../y", "a/b", "..", "x*", "x?y", "\x00", "%2e%2e"):
        try:
            uri = warehouse.write_snapshot(replace(cluster.snapshot(), cluster_id=hostile))
        except (RehomeError, ValueError, OSError):
            continue  # refused
        assert ".." not in uri.split("/"), uri
    there = [path for path in tmp_path.rglob("*") if path.is_file()]
    snapshots = home / "snapshots"
    assert all(path.parents[2] == snapshots for path in there), there


@pytest.fixture
def heals_small_clusters(
    attacked: Attacked, tmp_path: Path, private_cluster: Callable[..., LocalCluster]
) -> LocalCluster:
    """A clusters file in which a cluster of one broker comes first; its rules heal topics to one
    replica. The other entry asks people.
    """
    small = private_cluster(brokers=1)
    watch = {"policy": "heal", "replication_factors": {"*": 1}, "snapshots_to_open": 1}
    watch |= {"grace_s": 0}
    entries = {
        "small": {"connection": "kafka_small", "watch": watch, "windows": _always()},
        "big": {"connection": "kafka_big", "policy": {"approval": True}, "windows": _always()},
    }
    file = tmp_path / "clusters.yaml"
    file.write_text(json.dumps({"clusters": entries}))
    attacked.patch.setenv("REHOME_CLUSTERS_FILE", str(file))
    attacked.connect("kafka_small", small)
    attacked.connect("kafka_big")
    return small


def _always() -> list[dict[str, Any]]:
    return [{"cron": "0 * * * *", "hours": 1, "timezone": "UTC"}]


def test_nothing_heals_a_cluster_by_the_rules_of_another(
    attacked: Attacked, heals_small_clusters: LocalCluster
) -> None:
    """(11) A connection is edited, and leads to the other entry's cluster."""
    assert heals_small_clusters.cluster_id != attacked.cluster.cluster_id
    topic = attacked.topics.create([[1, 2, 3]] * 8)
    for through in ("kafka_small", "kafka_big"):
        taken = attacked.run("collect_snapshots", kafka_config_id=through)
        assert taken.state == "success", taken.log
    attacked.connect("kafka_small")
    attacked.run("collect_snapshots", kafka_config_id="kafka_small")
    known = _started(attacked)
    watched = attacked.run("watch_clusters")
    for conf in _started(attacked)[len(known) :]:
        assert conf.get("kafka_config_id") != "kafka_small", watched.log
        attacked.run(MOVES, **conf)
    assert set(attacked.witness.replicas(topic).values()) == {(1, 2, 3)}


def _started(attacked: Attacked) -> list[dict[str, Any]]:
    """The parameters of runs that watching has started."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    assert fresh_dag(MOVES)
    query = select(DagRun.conf).where(
        DagRun.dag_id == MOVES, DagRun.run_id.like("watch\\_\\_%", escape="\\")
    )
    with create_session() as session:
        return [dict(conf or {}) for conf in session.scalars(query.order_by(DagRun.id))]
