"""FAB says who may do what: the page, a dry run and an approval by users with roles."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from local.airflow.standalone import ROOT, AirflowStandalone
from local.kafka.cluster import LocalCluster
from rehome.airflow_settings import AirflowSettings
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.run.states import PlanState
from rehome.ledger.store import Ledger
from tests.attacks.people import Person
from tests.conftest import Topics
from tests.e2e.installed.drains import DRAINED, connection_to, loads_all, wheel_sources
from tests.e2e.runs import DAG, TIMEOUT_S
from tests.plugins.wheel import Installed
from tests.session.needs import Need, needs
from tests.session.spark_session import quick_spark
from tests.session.tried import Outcome

FAB = "airflow.providers.fab.auth_manager.fab_auth_manager.FabAuthManager"
MAKES_USERS = ROOT / "tests" / "attacks" / "fab_users.py"
ROLES = {"vic": "Viewer", "ann": "User", "bob": "User", "admin": "Admin"}
FORBIDDEN, UNKNOWN = httpx.codes.FORBIDDEN, httpx.codes.UNAUTHORIZED
SHOWN = ("apache-airflow", "apache-airflow-providers-fab")

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]


@dataclass(frozen=True)
class WithRoles:
    """An Airflow whose users have FAB's roles."""

    airflow: AirflowStandalone
    ledger_url: str

    def person(self, name: str) -> Person:
        passwords = json.loads((self.airflow.home / "passwords.json").read_text())
        return Person(self.airflow.url, name, passwords.get(name, ""))


@pytest.fixture
@needs(Need.AIRFLOW)
def with_roles(company: Installed, cluster: LocalCluster, tmp_path: Path) -> Iterator[WithRoles]:
    home = tmp_path / "home"
    ledger_url = f"sqlite:///{home}/ledger.db"
    env = {
        "AIRFLOW__CORE__AUTH_MANAGER": FAB,
        "REHOME_LEDGER_URL": ledger_url,
        "REHOME_WAREHOUSE": (home / "warehouse").as_uri(),
        "SPARK_SUBMIT_OPTS": quick_spark(),
    }
    connections = {"kafka_default": connection_to(cluster)}
    starting = AirflowStandalone(
        home,
        settings=AirflowSettings.read().with_connections(connections),
        env=env,
        dags=(DAG,),
        before=[str(MAKES_USERS), *(f"{name}:{role}" for name, role in ROLES.items())],
        sources=wheel_sources(company, home),
    )
    with starting as airflow:
        yield WithRoles(airflow, ledger_url)


def test_a_user_of_fab_approves_what_a_viewer_may_only_read(
    with_roles: WithRoles,
    gateway: ClusterGateway,
    topics: Topics,
    company: Installed,
    outcome: Callable[[Outcome], None],
) -> None:
    vic, ann, bob, stranger = map(with_roles.person, ("vic", "ann", "bob", ""))
    loads_all(with_roles.airflow.api)
    topic = topics.create([[DRAINED, 1], [2, DRAINED]])
    asked = {"action": "drain", "brokers": [DRAINED], "topics": [topic], "throttle": 50_000_000}
    body = {"logical_date": None, "conf": {**asked, "dry_run": True}}
    assert vic.ask("POST", f"/dags/{DAG}/dagRuns", body).status_code == FORBIDDEN
    dry = ann.triggers(DAG, {**asked, "dry_run": True})
    assert ann.wait_for_end(dry, TIMEOUT_S) == "success", ann.states(dry)
    with Ledger.open(with_roles.ledger_url) as ledger:
        (plan,) = ledger.plans()
    where = f"plans/{plan.plan_id}"
    assert topic in vic.page("GET", where).text
    assert stranger.page("GET", where).status_code == UNKNOWN

    run = ann.triggers(DAG, {**asked, "plan_id": plan.plan_id, "approval": True})
    assert ann.waits_for_question(run)["assigned_users"] == []
    assert vic.answers(run, "Approve").status_code == FORBIDDEN
    bob.insists(run, timeout_s=TIMEOUT_S)
    assert bob.wait_for_end(run, TIMEOUT_S) == "success", bob.states(run)
    with Ledger.open(with_roles.ledger_url) as ledger:
        done = ledger.plan(plan.plan_id)
    assert (done.state, done.actor) == (PlanState.DONE, "ann")
    assert str(done.approved_by).startswith("bob (id "), "FAB knows people by numbers"
    found = gateway.current_topics([topic])[topic].partitions.values()
    assert all(DRAINED not in each.replicas for each in found)
    outcome(Outcome("fab", company.versions(*SHOWN)))
