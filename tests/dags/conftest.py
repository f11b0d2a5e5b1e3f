"""Runs the DAGs in this process, on real brokers: `dag.test()`."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from local.kafka.cluster import LocalCluster
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.plan.plan import Plan
from rehome.domain.request.parse_request import parse_request
from rehome.domain.run.run_policy import Policy
from rehome.execution.access.lease import hold
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.advance import advance
from rehome.execution.control.cancel import abort
from rehome.execution.throttle.keys import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
)
from rehome.execution.throttle.set_up import clear_throttle, set_up_throttle
from rehome.ledger.store import Ledger
from rehome.warehouse import Warehouse
from tests.conftest import Topics
from tests.dags.clusters import MARKS, Throttles, throttles_become, to
from tests.dags.runs import Run, fresh_dag, plan_without_gates, run_dag
from tests.dags.site import Site
from tests.e2e.webhook import Webhook
from tests.execution.access.own_gateway import OwnGateway
from tests.ledger.empty_ledgers import EmptyLedgers
from tests.ledger.small_plans import make_plan, move
from tests.plugins.mailbox import Mailbox, Reported, alerts_to
from tests.session.spark_session import quick_spark

if TYPE_CHECKING:
    from airflow.sdk import DAG

CRAWL = 10_000
"""A rate that one fetch of 1 MB exceeds: the next comes when Kafka has forgotten it, 11 s later."""
Throttle = Callable[[str, int], Throttles]


@pytest.fixture
def ledger_url(tmp_path: Path, empty_ledgers: EmptyLedgers) -> str:
    """Of the ledger that a run finds."""
    empty_ledgers.put(tmp_path / "ledger.db")
    return f"sqlite:///{tmp_path}/ledger.db"


@pytest.fixture
def rehome(
    airflow_database: None,
    tmp_path: Path,
    ledger_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> Callable[..., Run]:
    """Runs `reassign_partitions` on a cluster with a ledger and a warehouse of its own.

    ``rehome(cluster, action="drain", brokers=[4])``, or another ``dag``; the gates are left out
    unless ``with_spark=True``: starting Spark takes longer than everything else.
    """
    monkeypatch.setenv("REHOME_WAREHOUSE", (tmp_path / "warehouse").as_uri())
    monkeypatch.setenv("REHOME_LEDGER_URL", ledger_url)
    monkeypatch.setenv("REHOME_POLL_INTERVAL_S", "1")
    monkeypatch.setattr("rehome.sensors.reassignment.FIRST_POLL_S", 0.0)
    spark = {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(spark))
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", quick_spark())

    def run(
        cluster: LocalCluster | Mapping[str, str],
        *,
        dag: str | DAG = "reassign_partitions",
        with_spark: bool = False,
        **conf: Any,
    ) -> Run:
        settings = cluster.client_settings() if isinstance(cluster, LocalCluster) else cluster
        kafka = {"conn_type": "kafka", "extra": dict(settings)}
        monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(kafka))
        with monkeypatch.context() as patched:
            if not with_spark:
                plan_without_gates(patched)
            caplog.clear()
            with caplog.at_level("INFO"):
                chosen = fresh_dag(dag) if isinstance(dag, str) else dag
                return run_dag(chosen, conf, capfd, caplog)

    return run


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    """The ledger that :func:`rehome`'s runs write to."""
    with Ledger.open(ledger_url) as opened:
        yield opened


@pytest.fixture
def site(
    cluster: LocalCluster,
    topics: Topics,
    gateway: OwnGateway,
    ledger: Ledger,
    rehome: Callable[..., Run],
) -> Site:
    """All that a run acts on; ``site.run(action="drain", brokers=[4])`` runs it."""
    return Site(cluster, topics, gateway, ledger, rehome)


@pytest.fixture
def reported(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reported]:
    """A mail server and a webhook, both of which get every alert."""
    with Webhook() as webhook, Mailbox() as mailbox:
        alerts_to(monkeypatch, webhook, mailbox)
        yield Reported(webhook, mailbox)


@pytest.fixture
def abandoned(site: Site, tmp_path: Path) -> Iterator[Callable[..., Plan]]:
    """A plan with one move in flight and one to come, whose run has sent its last heartbeat.

    Whatever the test leaves of it is taken back.
    """
    plans: list[Plan] = []

    def make(topic: str, **more: Any) -> Plan:
        site.topics.fill(topic, 1000, size_bytes=10_000)
        moves = (move(topic, n, (1, 2), (3, 2), 10_000_000) for n in (0, 1))
        plan = make_plan(f"dead-{topic}", *moves, cluster_id=site.cluster.cluster_id)
        wanted = to(topic, {0: [3, 2], 1: [3, 2]})
        params = {"action": "reassign", "reassignment": wanted, **more}
        plans.append(plan)
        directory = Warehouse((tmp_path / "warehouse").as_uri()).plan(plan.plan_id)
        directory.save(plan, parse_request(params))
        ledger = site.ledger
        ledger.create_plan(plan, params, directory.uri, "dead-run", "test")
        ledger.approve(plan.plan_id, plan.plan_hash, "test")
        own = OwnCluster.of_plan(site.gateway, ledger.plan(plan.plan_id))
        with hold(ledger, own, "dead-run", 0.0) as held:
            set_up_throttle(plan, held.ledger, held.cluster, CRAWL)
            one = Policy(CRAWL, max_partitions_in_flight=1)
            assert len(advance(plan, held.ledger, held.cluster, one).admitted) == 1
        assert ledger.holder(plan.cluster_id) is None
        return plan

    yield make
    for plan in plans:
        abort(plan.plan_id, site.ledger, site.gateway, "the test is over")
        clear_throttle(plan.plan_id, site.ledger, site.gateway)


@pytest.fixture
def another_clients_throttle(gateway: OwnGateway, topics: Topics) -> Iterator[Throttle]:
    """Slows copies of a topic down, as their owner might; returns all throttles then."""
    default = ConfigResource.cluster_default()

    def put(topic: str, rate_bytes_per_s: int) -> Throttles:
        rates = dict.fromkeys((LEADER_RATE, FOLLOWER_RATE), str(rate_bytes_per_s))
        lists = dict.fromkeys((LEADER_REPLICAS, FOLLOWER_REPLICAS), "*")
        changes = [
            ConfigChange(resource, key, ConfigOperation.SET, value)
            for resource, values in ((default, rates), (ConfigResource.topic(topic), lists))
            for key, value in values.items()
        ]
        assert not any(gateway.alter_configs(changes).values())
        names = [f"broker {broker}" for broker in topics.cluster.broker_ids]
        expected: Throttles = {name: {} for name in names}
        expected |= {"broker ": rates, f"topic {topic}": lists, MARKS: {}}
        throttles_become(gateway, [topic], expected)
        return expected

    yield put
    gone = [
        ConfigChange(default, key, ConfigOperation.DELETE) for key in (LEADER_RATE, FOLLOWER_RATE)
    ]
    assert not any(gateway.alter_configs(gone).values())


@pytest.fixture
def first_poll(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when an observer has polled for the first time."""
    from rehome.triggers.watch import PollOutcome, ReassignmentWatch

    polled = threading.Event()
    real = ReassignmentWatch.poll

    def poll(watch: ReassignmentWatch) -> PollOutcome:
        found = real(watch)
        polled.set()
        return found

    monkeypatch.setattr(ReassignmentWatch, "poll", poll)
    return polled
