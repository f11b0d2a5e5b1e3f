"""Auth managers say who may do what: the page, a dry run and an approval by users with roles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from local.airflow.standalone import ROOT
from local.kafka.cluster import LocalCluster
from rehome.cluster.gateway import ClusterGateway
from tests.conftest import Topics
from tests.e2e.installed.drains import airflow_with, connection_to
from tests.e2e.installed.spread.keycloak_server import Keycloak, keycloak_server
from tests.e2e.installed.spread.roles import ROLES, WithRoles, drains_by_roles, outlives_its_token
from tests.plugins.wheel import Installed
from tests.session.needs import Need, needs
from tests.session.spark_session import quick_spark
from tests.session.tried import Outcome

FAB = "airflow.providers.fab.auth_manager.fab_auth_manager.FabAuthManager"
KEYCLOAK = "airflow.providers.keycloak.auth_manager.keycloak_auth_manager.KeycloakAuthManager"
FABS_USERS = ROOT / "tests" / "attacks" / "fab_users.py"
KEYCLOAKS_USERS = Path(__file__).parent / "keycloak_users.py"
TOKEN_LASTS_S = 20
"""A login and a page on a busy machine take less; Airflow's own tokens last a day."""

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture(scope="session")
def keycloak(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keycloak]:
    """A server without a realm."""
    with keycloak_server(tmp_path_factory.mktemp("keycloak")) as running:
        yield running


@pytest.fixture
@needs(Need.AIRFLOW)
def by_fab(company: Installed, cluster: LocalCluster, tmp_path: Path) -> Iterator[WithRoles]:
    env = {"AIRFLOW__CORE__AUTH_MANAGER": FAB}
    with _with_roles(company, cluster, tmp_path / "home", env, FABS_USERS) as running:
        yield running


@pytest.fixture
@needs(Need.AIRFLOW)
def by_keycloak(
    company: Installed, cluster: LocalCluster, keycloak: Keycloak, tmp_path: Path
) -> Iterator[WithRoles]:
    env = {"AIRFLOW__CORE__AUTH_MANAGER": KEYCLOAK, **keycloak.airflow_env()}
    with _with_roles(company, cluster, tmp_path / "home", env, KEYCLOAKS_USERS) as running:
        yield running


@contextmanager
def _with_roles(
    company: Installed, cluster: LocalCluster, home: Path, env: Mapping[str, str], makes_users: Path
) -> Iterator[WithRoles]:
    before = [str(makes_users), *(f"{name}:{role}" for name, role in ROLES.items())]
    env = {**env, "SPARK_SUBMIT_OPTS": quick_spark()}
    with airflow_with(company, home, connection_to(cluster), env, before=before) as airflow:
        yield WithRoles(airflow)


def test_a_user_of_fab_approves_what_a_viewer_may_only_read(
    by_fab: WithRoles,
    gateway: ClusterGateway,
    topics: Topics,
    company: Installed,
    outcome: Callable[[Outcome], None],
) -> None:
    done = drains_by_roles(by_fab, gateway, topics)
    assert str(done.approved_by).startswith("bob (id "), "FAB knows people by numbers"
    shown = company.versions("apache-airflow", "apache-airflow-providers-fab")
    outcome(Outcome("fab", shown))


def test_a_user_of_keycloak_approves_what_a_viewer_may_only_read(
    by_keycloak: WithRoles,
    keycloak: Keycloak,
    gateway: ClusterGateway,
    topics: Topics,
    company: Installed,
    outcome: Callable[[Outcome], None],
) -> None:
    done = drains_by_roles(by_keycloak, gateway, topics)
    assert str(done.approved_by).startswith("bob (id "), "Keycloak knows people by UUIDs"
    keycloak.tokens_last(TOKEN_LASTS_S)
    outlives_its_token(by_keycloak, done.plan_id)
    shown = company.versions("apache-airflow", "apache-airflow-providers-keycloak")
    outcome(Outcome("keycloak", {**shown, "Keycloak": keycloak.version}))
