"""A connection or an entry that leads elsewhere than it is bound to; two entries for a cluster."""

from __future__ import annotations

import pytest

from rehome.alerts.kinds import AlertKind
from rehome.clusters.binding import (
    Misled,
    MisledBy,
    MisledError,
    all_misled,
    entries_for,
    misled_through,
)
from rehome.clusters.binding_alert import of_connection
from rehome.clusters.clusters_file import NO_FILE, ClustersFile, read_clusters
from rehome.ledger.stores.by_cluster.bindings import Bindings

FILE = read_clusters("""
clusters:
  berlin: {connection: kafka_berlin}
  oslo: {connection: kafka_oslo}
""")


def bound(entries: dict[str, str] | None = None, **connections: str) -> Bindings:
    return Bindings(connections, entries or {}, {})


@pytest.mark.parametrize("file", [NO_FILE, FILE])
def test_what_is_used_for_the_first_time_fits(file: ClustersFile) -> None:
    assert misled_through("kafka_berlin", "B", file, bound()) is None
    assert misled_through("kafka_berlin", "B", file, bound(kafka_berlin="B")) is None


def test_an_edited_connection_does_not_fit_with_a_file_or_without() -> None:
    for file, entry in ((NO_FILE, ""), (FILE, "berlin")):
        found = misled_through("kafka_berlin", "X", file, bound({"berlin": "B"}, kafka_berlin="B"))
        why = MisledBy.CONNECTION_BOUND_ELSEWHERE
        assert found == Misled(why, "kafka_berlin", "X", "B", entry)
        text = str(MisledError(found))
        assert all(each in text for each in ("kafka_berlin", "cluster X", "cluster B", entry))


def test_an_entry_that_names_another_clusters_connection_does_not_fit() -> None:
    found = misled_through("kafka_berlin", "X", FILE, bound({"berlin": "B"}, kafka_berlin="X"))
    assert found == Misled(MisledBy.ENTRY_BOUND_ELSEWHERE, "kafka_berlin", "X", "B", "berlin")


def test_two_entries_for_one_cluster_act_neither_and_both_are_named() -> None:
    for bindings in (
        bound({"berlin": "B", "oslo": "B"}, kafka_berlin="B", kafka_oslo="B"),
        bound({"berlin": "B"}, kafka_berlin="B", kafka_oslo="B"),  # oslo's first use
    ):
        for connection in ("kafka_berlin", "kafka_oslo"):
            found = misled_through(connection, "B", FILE, bindings)
            assert found is not None
            assert (found.why, found.entries) == (MisledBy.TWO_ENTRIES, ("berlin", "oslo"))
            assert not found.rebinds


def test_an_edited_connection_does_not_stop_the_cluster_that_it_leads_to() -> None:
    edited = bound({"berlin": "B", "oslo": "O"}, kafka_berlin="B", kafka_oslo="O")
    assert misled_through("kafka_oslo", "O", FILE, edited) is None
    assert entries_for("O", FILE, edited) == ["oslo"]
    leads = {"kafka_berlin": "O", "kafka_oslo": "O", "kafka_ann": "O"}
    seen = Bindings(edited.connections, edited.entries, leads)
    (found,) = all_misled(FILE, seen)
    assert (found.connection, found.cluster_id, found.bound_id) == ("kafka_berlin", "O", "B")


def test_several_connections_may_lead_to_a_cluster_that_one_entry_is_for() -> None:
    seen = bound({"berlin": "B"}, kafka_berlin="B", kafka_ann="B")
    assert misled_through("kafka_ann", "B", FILE, seen) is None
    assert misled_through("kafka_berlin", "B", FILE, seen) is None


def test_people_are_alerted_until_it_leads_where_it_is_bound_to() -> None:
    found = misled_through("kafka_berlin", "X", FILE, bound(kafka_berlin="B"))
    ((alert,), over) = of_connection("kafka_berlin", found)
    assert (alert.key, over) == ((AlertKind.WRONG_CLUSTER, "kafka_berlin"), [])
    assert "cluster X" in alert.text
    assert "bind it to that cluster on the page" in alert.next_step
    assert of_connection("kafka_berlin", None) == ([], [alert.key])


def test_what_is_found_on_a_cluster_that_a_connection_strays_to_is_not_told() -> None:
    strays = Misled(MisledBy.CONNECTION_BOUND_ELSEWHERE, "kafka_berlin", "X", "B")
    assert strays.strays_to("X")
    assert not strays.strays_to("B"), "its own cluster is told of, whoever has taken the snapshot"
    both = Misled(MisledBy.TWO_ENTRIES, "kafka_berlin", "B", "B", "berlin", ("berlin", "oslo"))
    assert not both.strays_to("B")
