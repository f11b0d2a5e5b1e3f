"""People with roles in an Airflow that has the wheel, and what each of them may do."""

from __future__ import annotations

import json
from dataclasses import dataclass

import httpx

from local.airflow.api import ANSWER_TIMEOUT_S
from local.airflow.standalone import AirflowStandalone
from local.process.waiting import wait_until
from rehome.cli.output import CommandError, ExitCode
from rehome.cli.remote.airflow_client import AirflowClient, SignIn
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.run.states import PlanState
from rehome.ledger.base.records import PlanRecord
from rehome.ledger.store import Ledger
from tests.attacks.people import Person
from tests.conftest import Topics
from tests.e2e.installed.drains import DRAINED, ON_A_BUSY_MACHINE_S, ledger_in, loads_all
from tests.e2e.runs import DAG, TIMEOUT_S

ROLES = {"vic": "Viewer", "ann": "User", "bob": "User", "admin": "Admin"}
"""FAB and Keycloak have these roles."""
FORBIDDEN, UNKNOWN = httpx.codes.FORBIDDEN, httpx.codes.UNAUTHORIZED


@dataclass(frozen=True)
class WithRoles:
    """An Airflow whose users have :data:`ROLES`."""

    airflow: AirflowStandalone

    def person(self, name: str) -> Person:
        """One of them; "" = nobody has logged in."""
        return Person(self.airflow.url, name, self._passwords().get(name, ""))

    def shell(self, who: SignIn) -> AirflowClient:
        """What a command asks by; use it as a context manager."""
        return AirflowClient(self.airflow.url, who)

    def sign_in(self, name: str) -> SignIn:
        """One of them, by a password."""
        return SignIn(user=name, password=self._passwords()[name])

    def _passwords(self) -> dict[str, str]:
        found: dict[str, str] = json.loads((self.airflow.home / "passwords.json").read_text())
        return found

    def plans(self) -> list[PlanRecord]:
        """Those of its ledger."""
        with Ledger.open(ledger_in(self.airflow.home)) as ledger:
            return list(ledger.plans())


def drains_by_roles(with_roles: WithRoles, gateway: ClusterGateway, topics: Topics) -> PlanRecord:
    """A user has a drain planned, asks for it, and another approves it; a viewer only reads."""
    vic, ann, bob, stranger = map(with_roles.person, ("vic", "ann", "bob", ""))
    loads_all(with_roles.airflow.api)
    topic = topics.create([[DRAINED, 1], [2, DRAINED]])
    asked = {"action": "drain", "brokers": [DRAINED], "topics": [topic], "throttle": 50_000_000}
    body = {"logical_date": None, "conf": {**asked, "dry_run": True}}
    assert vic.ask("POST", f"/dags/{DAG}/dagRuns", body).status_code == FORBIDDEN
    dry = ann.triggers(DAG, {**asked, "dry_run": True})
    assert ann.wait_for_end(dry, ON_A_BUSY_MACHINE_S) == "success", ann.states(dry)
    (plan,) = with_roles.plans()
    where = f"plans/{plan.plan_id}"
    assert topic in vic.page("GET", where, timeout=ANSWER_TIMEOUT_S).text
    assert stranger.page("GET", where).status_code == UNKNOWN

    run = ann.triggers(DAG, {**asked, "plan_id": plan.plan_id, "approval": True})
    assert ann.waits_for_question(run)["assigned_users"] == []
    assert vic.answers(run, "Approve").status_code == FORBIDDEN
    bob.insists(run, timeout_s=ON_A_BUSY_MACHINE_S)
    assert bob.wait_for_end(run, ON_A_BUSY_MACHINE_S) == "success", bob.states(run)
    (done,) = (each for each in with_roles.plans() if each.plan_id == plan.plan_id)
    assert (done.state, done.actor) == (PlanState.DONE, "ann")
    found = gateway.current_topics([topic])[topic].partitions.values()
    assert all(DRAINED not in each.replicas for each in found)
    return done


def outlives_its_token(with_roles: WithRoles, plan_id: str) -> None:
    """A shell goes on after the token of its login; with a token alone it says what to do.

    :param plan_id: a plan that is done.
    """
    path = f"/plans/{plan_id}"
    with with_roles.shell(with_roles.sign_in("vic")) as by_login:
        assert by_login.page(path)["state"] == "done"
        token = SignIn(with_roles.person("vic").token)
        with with_roles.shell(token) as by_token:

            def refused() -> CommandError | None:
                try:
                    by_token.page(path)
                except CommandError as error:
                    return error
                return None

            error = wait_until(refused, "the newer token to end", TIMEOUT_S)
        assert (error.code, error.what[:3]) == (ExitCode.NOT_ALLOWED, str(int(FORBIDDEN)))
        assert "If the token has ended" in error.next_step
        assert by_login.page(path)["state"] == "done"
