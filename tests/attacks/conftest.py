"""An Airflow with people of every role, on the session's brokers: what is attacked.

One for all attacks. Its DAGs are those of Rehome as they are; what a DAG is attacked with is
Airflow's public API.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local.airflow.standalone import RARELY_PARSED, ROOT, AirflowStandalone
from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.airflow_settings import AirflowSettings
from rehome.domain.request.parse_request import parse_request
from rehome.ledger.store import Ledger
from rehome.warehouse import Warehouse
from tests.attacks.in_process import GUARDED, LAX, Attacked, moving
from tests.attacks.kafka_seen import Witness
from tests.attacks.listener import Trap
from tests.attacks.people import Person, Run
from tests.conftest import Topics
from tests.ledger.empty_ledgers import EmptyLedgers
from tests.ledger.small_plans import make_plan, move
from tests.session.needs import Need, needs

USERS = {"vic": "viewer", "ann": "user", "bob": "user", "ops": "op", "admin": "admin"}
DAGS = ("reassign_partitions", "control_reassignment", "add_partitions")
RATE = 1_000_000
"""The throttle of plans, bytes per second."""

_serial = itertools.count()


@dataclass(frozen=True)
class Stack:
    """What is attacked, by whom, and who sees what comes of it.

    :param ledger: the file of its ledger.
    """

    airflow: AirflowStandalone
    people: Mapping[str, Person]
    witness: Witness
    topics: Topics
    ledger: Path
    warehouse: Path

    def topic(self, *assignment: Sequence[int]) -> str:
        """A topic that no other test knows."""
        return self.topics.create(assignment, f"attacked{next(_serial)}")

    def __getitem__(self, name: str) -> Person:
        return self.people[name]

    def waits_for_a_run(self, dag_id: str) -> Run:
        """The newest run of a DAG, once there is one."""
        newest: Callable[[], list[dict[str, Any]]] = lambda: self["ops"].runs(dag_id)  # noqa: E731
        return Run(dag_id, wait_until(newest, f"a run of {dag_id}", 240, 1.0)[0]["dag_run_id"])

    def planned(self) -> tuple[str, str]:
        """A topic, and the id of a plan that moves its first partition to brokers 3 and 2: as a dry
        run of ann's has recorded it, whose Spark job takes longer than an attack.
        """
        topic = self.topic([1, 2])
        plan_id = f"planned-{topic}"
        asked = moving(topic, (3, 2), throttle=RATE)
        moves = move(topic, 0, (1, 2), (3, 2), 1000)
        plan = make_plan(plan_id, moves, cluster_id=self.topics.cluster.cluster_id)
        directory = Warehouse(self.warehouse.as_uri()).plan(plan_id)
        directory.save(plan, parse_request(asked))
        recorded = (directory.uri, f"dry-run-{plan_id}", "ann", GUARDED, "reassign_partitions")
        with Ledger.open(f"sqlite:///{self.ledger}") as ledger:
            ledger.create_plan(plan, {**asked, "dry_run": True}, *recorded)
        return topic, plan_id

    def rates_set(self, plan_id: str) -> list[int]:
        """The throttles that a plan was run with, bytes per second; [] = it has not begun."""
        with sqlite3.connect(f"file:{self.ledger}?mode=ro", uri=True) as ledger:
            found = ledger.execute(
                "SELECT rate_bytes_per_s FROM rate_changes WHERE plan_id = ?", (plan_id,)
            )
            return [int(rate) for (rate,) in found if rate is not None]


@pytest.fixture(scope="session")
@needs(Need.AIRFLOW)
def stack(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Airflow, once for all attacks."""
    users = ",".join(f"{name}:{role}" for name, role in USERS.items())
    env = {"AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": users}
    home = tmp_path_factory.mktemp("attacked")
    with attacked_airflow(cluster, home, USERS, env) as started:
        yield started


@contextmanager
def attacked_airflow(
    cluster: LocalCluster,
    home: Path,
    users: Collection[str],
    more_env: Mapping[str, str],
    *,
    dag_ids: Collection[str] = DAGS,
    **options: Any,
) -> Iterator[Stack]:
    """An Airflow with a connection that asks a person, and one that asks nobody.

    :param users: whose passwords are in its home.
    :param options: of ``AirflowStandalone``.
    """
    dags = home / "dags"
    dags.mkdir()
    for name in dag_ids:
        shutil.copy(ROOT / "dags" / f"{name}.py", dags)

    def connection(**policy: bool) -> dict[str, Any]:
        extra = cluster.client_settings() | ({"rehome.policy": policy} if policy else {})
        return {"conn_type": "kafka", "extra": json.dumps(extra)}

    settings = AirflowSettings.read().with_connections(
        {GUARDED: connection(approval=True), LAX: connection()}
    )
    ledger, warehouse = home / "ledger.db", home / "warehouse"
    env = {
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        **RARELY_PARSED,
        "REHOME_WAREHOUSE": warehouse.as_uri(),
        "REHOME_LEDGER_URL": f"sqlite:///{ledger}",
        "REHOME_POLL_INTERVAL_S": "2",
        **more_env,
    }
    starting = AirflowStandalone(
        home / "airflow", settings=settings, env=env, dags=tuple(dag_ids), **options
    )
    with starting as airflow, Topics(cluster) as topics:
        passwords = json.loads((airflow.home / "passwords.json").read_text())
        people = {name: Person(airflow.url, name, passwords[name]) for name in users}
        people[""] = Person(airflow.url)
        witness = Witness(cluster.client_settings())
        yield Stack(airflow, people, witness, topics, ledger, warehouse)


@pytest.fixture
def trap() -> Iterator[Trap]:
    """A port that must hear nothing."""
    with Trap() as listening:
        yield listening


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attacks go to this machine."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    os.environ.setdefault("NO_PROXY", "127.0.0.1")


@pytest.fixture
def attacked(
    airflow_database: None,
    cluster: LocalCluster,
    topics: Topics,
    tmp_path: Path,
    empty_ledgers: EmptyLedgers,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> Attacked:
    """DAGs of this process."""
    empty_ledgers.put(tmp_path / "ledger.db")
    return Attacked(cluster, topics, tmp_path, monkeypatch, capfd, caplog)
