"""Which connection the page takes for a cluster, and whose settings it shows it by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehome.ui import clusters
from rehome.ui.routes import planning

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.ui.site import Site

FILE = """
clusters:
  berlin: {connection: kafka_berlin, settings: {history_days: 3}}
"""


def test_a_cluster_is_reached_by_the_connection_that_leads_there(
    airflow_database: None, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it has no plan yet; one that the clusters file names comes first."""
    path = tmp_path / "clusters.yaml"
    path.write_text(FILE)
    monkeypatch.setenv("REHOME_CLUSTERS_FILE", str(path))
    for connection, cluster_id in (
        ("kafka_berlin", "b1"),
        ("of_ann", "b1"),
        ("kafka_default", "o1"),
        ("of_ann_2", "o1"),
        ("of_ben", "x1"),
    ):
        site.ledger.record_connection(connection, cluster_id)
    found = [planning.connection_offered(one) for one in ("b1", "o1", "x1", "unseen")]
    assert found == ["kafka_berlin", "kafka_default", "of_ben", "kafka_default"]
    days = [clusters.history_asked(one, site.ledger)[0] for one in ("b1", "o1")]
    assert days[0] == 3
    assert days[1] != 3
