"""A drain by the wheel, in Airflows of defaults that have Rehome from the package alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from local.kafka.cluster import LocalCluster
from rehome.cluster.gateway import ClusterGateway
from tests.cluster.connection.logins import login_cluster
from tests.conftest import Topics, impatient_gateway
from tests.dags.clusters import no_throttles, throttles_of
from tests.e2e.installed.drains import (
    DRAINED,
    airflow_with,
    connection_by,
    connection_to,
    connects,
    drains,
    loads_all,
)
from tests.plugins.wheel import (
    BETWEEN,
    LOWEST,
    NEWEST,
    Installed,
    Release,
    installed_wheel,
    installed_with,
    interpreter_of,
)
from tests.rights import REASSIGNER
from tests.session.tried import Outcome

SHOWN = (
    "apache-airflow",
    "apache-airflow-providers-apache-kafka",
    "apache-airflow-providers-apache-spark",
    "pyspark",
    "great-expectations",
    "confluent-kafka",
    "pandas",
    "SQLAlchemy",
)

CLIENT, SECRET = "robot", "client-secret"


@dataclass(frozen=True)
class Ground:
    """A cluster, of which a broker is to be drained of a topic."""

    cluster: LocalCluster
    gateway: ClusterGateway
    topics: Topics

    def is_drained_by(self, installed: Installed, home: Path) -> None:
        """Press *Test*, make a dry run, and drain the broker, in an Airflow of this environment."""
        topic = self.topics.create([[DRAINED, 1], [2, DRAINED]])
        self.topics.fill(topic, 2_000)
        before = throttles_of(self.gateway, [topic])
        ledger_url = f"sqlite:///{home}/ledger.db"
        env = {"REHOME_LEDGER_URL": ledger_url, "REHOME_WAREHOUSE": (home / "warehouse").as_uri()}
        connection = connection_to(self.cluster)
        with airflow_with(installed, home, connection, env) as airflow:
            loads_all(airflow.api)
            connects(airflow.api, connection)
            drains(airflow, ledger_url, topic)
            assert "Failed to fetch run info" not in airflow.log_file.read_text(errors="replace")
        found = self.gateway.current_topics([topic])[topic].partitions.values()
        assert all(DRAINED not in each.replicas for each in found)
        assert throttles_of(self.gateway, [topic]) == before


@pytest.fixture
def ground(cluster: LocalCluster, gateway: ClusterGateway, topics: Topics) -> Ground:
    """The brokers of these tests."""
    return Ground(cluster, gateway, topics)


pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(3600)]


@pytest.mark.parametrize("release", [None, LOWEST, BETWEEN, NEWEST], ids=str)
def test_a_drain_in_an_airflow_that_has_the_wheel_and_nothing_else(
    ground: Ground, tmp_path: Path, release: Release | None, outcome: Callable[[Outcome], None]
) -> None:
    """None = the packages of these tests; others come from the package registry."""
    installed = installed_with(release, tmp_path) if release else installed_wheel(tmp_path)
    ground.is_drained_by(installed, tmp_path / "home")
    if release:
        outcome(Outcome(f"drain-{release}", installed.versions(*SHOWN)))


@pytest.mark.parametrize("python", ["3.12", "3.13"])
def test_a_drain_with_another_python(
    ground: Ground, tmp_path: Path, python: str, outcome: Callable[[Outcome], None]
) -> None:
    interpreter = interpreter_of(python)
    if interpreter is None:
        pytest.skip(f"This machine has no Python {python}.")
    installed = installed_with(NEWEST, tmp_path, interpreter, python=python)
    ground.is_drained_by(installed, tmp_path / "home")
    versions = {"python": installed.version_of_python(), **installed.versions(*SHOWN)}
    outcome(Outcome(f"drain-python-{python}", versions))


def test_a_drain_through_a_connection_with_oauthbearer(
    tmp_path: Path, outcome: Callable[[Outcome], None]
) -> None:
    """Brokers that check every token; the client has the documented rights and no others."""
    installed, home = installed_wheel(tmp_path), tmp_path / "home"
    ledger_url = f"sqlite:///{home}/ledger.db"
    env = {"REHOME_LEDGER_URL": ledger_url, "REHOME_WAREHOUSE": (home / "warehouse").as_uri()}
    with login_cluster(brokers=4) as logins, Topics(logins.cluster) as topics:
        logins.tokens.clients[CLIENT] = SECRET
        logins.cluster.allow_all(CLIENT, REASSIGNER)
        topic = topics.create([[DRAINED, 1], [2, DRAINED]])
        topics.fill(topic, 2_000)
        connection = connection_by(logins.by_token(CLIENT, SECRET), CLIENT, SECRET)
        with airflow_with(installed, home, connection, env) as airflow:
            loads_all(airflow.api)
            connects(airflow.api, connection)
            drains(airflow, ledger_url, topic)
        with impatient_gateway(logins.cluster) as gateway:
            found = gateway.current_topics([topic])[topic].partitions.values()
            assert all(DRAINED not in each.replicas for each in found)
            assert throttles_of(gateway, [topic]) == no_throttles(gateway, [topic])
    outcome(Outcome("drain-oauthbearer", installed.versions(*SHOWN)))
