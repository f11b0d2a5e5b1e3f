"""A connection that leads to another cluster than it was bound to: nothing acts by its entry."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rehome import installation
from rehome.alerts.kinds import AlertKind
from rehome.clusters.binding import MisledBy, MisledError
from rehome.clusters.clusters_file import ClustersFileError
from rehome.domain.run.watched.finding_kinds import FindingKind
from rehome.fleet import bound
from rehome.ledger.base.audit_entry import Decided
from rehome.ledger.store import Ledger
from rehome.ledger.stores.by_cluster.bindings import Bound
from rehome.run.context import RunContext
from rehome.watching.finding_text import text_of
from tests.ledger.audit_rows import audit_of
from tests.load_history.recorded import CLUSTER, Cluster
from tests.plugins.fleet.recorded import Rules, open_kinds, watch
from tests.plugins.run.asked import BY_ANN

FILE = """
clusters:
  first:
    connection: kafka_first
    watch: {policies: {replication_factor: heal}, replication_factors: {"*": 4}}
  second:
    connection: kafka_second
    watch: {policies: {replication_factor: heal}, replication_factors: {"*": 3}}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Writes the clusters file; both connections are there."""
    for name in ("KAFKA_FIRST", "KAFKA_SECOND"):
        connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": "b1:9092"}}
        monkeypatch.setenv(f"AIRFLOW_CONN_{name}", json.dumps(connection))
    path = tmp_path / "clusters.yaml"
    monkeypatch.setenv("REHOME_CLUSTERS_FILE", str(path))

    def write(text: str) -> None:
        path.write_text(text)

    return write


def through(connection: str, *uris: str) -> list[dict[str, Any]]:
    return watch(*uris, connection=connection)


def asked_for(runs: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Through which connection, and which replication factor."""
    return [(run["conf"]["kafka_config_id"], run["conf"]["replication_factor"]) for run in runs]


def snapshots(recorded: Cluster, *minutes: float) -> list[str]:
    return [recorded.snapshot(each) for each in minutes]


def open_alerts(ledger: Ledger) -> list[str]:
    return [each.subject for each in ledger.open_alerts(AlertKind.WRONG_CLUSTER)]


@pytest.mark.slow
def test_an_edited_connection_heals_no_cluster_by_the_rules_of_another(
    recorded: Cluster, rules: Rules, file: Callable[[str], None]
) -> None:
    """Both entries want other replicas; the first one in the file has the edited connection."""
    file(FILE)
    with installation.open_ledger() as ledger:
        ledger.record_connection("kafka_first", "another")
        ledger.record_connection("kafka_second", CLUSTER)
        assert bound.record_binding(RunContext(BY_ANN, "kafka_first"), CLUSTER) is not None
        assert open_alerts(ledger) == ["kafka_first"]
        started = through("kafka_first", *snapshots(recorded, 0, 10, 20))
        assert asked_for(started) == [("kafka_second", 3)]
        found = {each.subject: text_of(each) for each in ledger.open_findings(CLUSTER)}
        assert found["connection kafka_first"] == (
            "Bound to cluster another, but leads to cluster test: entry first of the clusters "
            "file, with connection kafka_first."
        )
        alerts = ledger.open_alerts(AlertKind.FINDING)
        assert not [each for each in alerts if "wrong_connection" in each.subject], "it has its own"


@pytest.mark.slow
def test_nothing_starts_on_a_cluster_that_only_an_edited_connection_leads_to(
    recorded: Cluster, rules: Rules, file: Callable[[str], None]
) -> None:
    """With a file, and without one, where the setting's rules hold. It is judged all the same."""
    file(FILE)
    with installation.open_ledger() as ledger:
        for connection in ("kafka_first", "kafka_default"):
            ledger.record_connection(connection, "another")
            ledger.record_connection(connection, CLUSTER)
        assert through("kafka_first", *snapshots(recorded, 0, 10, 20)) == []
        file("clusters: {}")
        rules(policies={"replication_factor": "heal"}, replication_factors={"*": 3})
        assert watch(*snapshots(recorded, 30, 40, 50)) == []
        assert FindingKind.REPLICATION_FACTOR in open_kinds(ledger)
        ledger.rebind("kafka_default", None, CLUSTER, "ann")
        assert asked_for(watch(recorded.snapshot(60))) == [("kafka_default", 3)]


@pytest.mark.slow
def test_the_snapshot_of_an_entry_whose_own_connection_leads_elsewhere_starts_nothing(
    recorded: Cluster, rules: Rules, file: Callable[[str], None]
) -> None:
    file(FILE)
    for connection, cluster_id in (("kafka_first", CLUSTER), ("kafka_of_ann", CLUSTER)):
        assert bound.record_binding(RunContext(BY_ANN, connection), cluster_id) is None
    assert bound.record_binding(RunContext(BY_ANN, "kafka_first"), "another") is not None
    assert through("kafka_of_ann", *snapshots(recorded, 0, 10, 20)) == []


@pytest.mark.slow
def test_two_entries_of_one_cluster_start_nothing_and_are_told(
    recorded: Cluster, rules: Rules, file: Callable[[str], None]
) -> None:
    file(FILE)
    with installation.open_ledger() as ledger:
        for connection in ("kafka_first", "kafka_second"):
            ledger.record_connection(connection, CLUSTER)
        assert through("kafka_second", *snapshots(recorded, 0, 10, 20)) == []
        with pytest.raises(MisledError, match="Entries first, second"):
            bound.require(RunContext(BY_ANN, "kafka_second"), CLUSTER)
        file(FILE.replace("connection: kafka_first", "connection: kafka_other"))
        assert open_alerts(ledger) == ["kafka_first", "kafka_second"]
        started = through("kafka_second", *snapshots(recorded, 30, 40, 50))
        assert asked_for(started) == [("kafka_second", 3)]
        assert open_alerts(ledger) == []


def test_what_is_used_first_is_bound_and_a_person_changes_it(
    recorded: Cluster, file: Callable[[str], None]
) -> None:
    file(FILE)
    with installation.open_ledger() as ledger:
        bound.require(RunContext(BY_ANN, "kafka_first"), "A")
        for kind, name in ((Bound.CONNECTION, "kafka_first"), (Bound.ENTRY, "first")):
            binding = ledger.binding(kind, name)
            assert binding is not None
            assert (binding.cluster_id, binding.read_by) == ("A", "reassign_partitions/r1/snapshot")
        with pytest.raises(MisledError, match="bound to cluster A"):
            bound.require(RunContext(BY_ANN, "kafka_first"), "rebuilt")
        assert open_alerts(ledger) == ["kafka_first"]
        ledger.rebind("kafka_first", "first", "rebuilt", "ann")
        bound.require(RunContext(BY_ANN, "kafka_first"), "rebuilt")
        assert open_alerts(ledger) == []


def refusals(ledger: Ledger) -> list[tuple[str | None, str | None, str]]:
    """In whose name, of which cluster, and why."""
    return [
        (each.user_name, each.cluster_id, each.detail["why"])
        for each in audit_of(ledger)
        if each.decision is Decided.REFUSED
    ]


def test_each_refusal_to_act_is_in_the_audit_and_what_lasts_is_told_once(
    recorded: Cluster, file: Callable[[str], None]
) -> None:
    file(FILE)
    elsewhere = ("ann", "X", MisledBy.CONNECTION_BOUND_ELSEWHERE)
    with installation.open_ledger() as ledger:
        bound.require(RunContext(BY_ANN, "kafka_first"), "A")
        bound.record_binding(RunContext(BY_ANN, "kafka_first"), "X")
        bound.record_binding(RunContext(BY_ANN, "kafka_first"), "X")
        assert refusals(ledger) == [elsewhere]
        for _ in range(2):
            with pytest.raises(MisledError):
                bound.require(RunContext(BY_ANN, "kafka_first"), "X")
        assert refusals(ledger) == [elsewhere] * 3
        bound.record_binding(RunContext(BY_ANN, "kafka_second"), "A")
        assert refusals(ledger)[3:] == [("ann", "A", MisledBy.TWO_ENTRIES)]
        (*_, told) = audit_of(ledger)
        assert told.detail == {
            "why": "two_entries",
            "connection": "kafka_second",
            "leads_to": "A",
            "bound_to": "A",
            "entries": ["first", "second"],
        }


def test_a_broken_file_begins_nothing_and_hides_no_edited_connection(
    recorded: Cluster, file: Callable[[str], None]
) -> None:
    file("clusters: [")
    first = RunContext(BY_ANN, "kafka_first")
    assert bound.record_binding(first, "A") is None
    assert bound.record_binding(first, "B") is not None
    with pytest.raises(ClustersFileError):
        bound.require(first, "A")
