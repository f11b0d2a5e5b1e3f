"""What Rehome's operators reach outside of Airflow's own calls, taken from the simulated world.

An actor's name says whose it is: ``A:run-1.progress`` runs on the machines of installation A.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event
from types import SimpleNamespace
from typing import Any, Protocol

from airflow.providers.standard.operators import hitl as operators_hitl

import rehome.reporting.collect
import rehome.warehouse
from rehome import installation
from rehome.alerts.channels import Channel
from rehome.cluster.interface.port import ClusterPort
from rehome.clusters.clusters_file import ClustersFile
from rehome.domain.clock import monotonic_s
from rehome.domain.plan import plan_hash
from rehome.domain.plan.plan import Plan
from rehome.extras import airflow_metrics
from rehome.fleet import clusters
from rehome.hooks.cluster import KafkaClusterHook
from rehome.ledger.store import Ledger
from rehome.notifiers import delivery
from rehome.operators.plan import PlanReassignmentOperator
from rehome.operators.upkeep.rollup import RollUpSnapshotsOperator
from rehome.run.asking import hitl
from rehome.run.context import RunContext
from rehome.settings import Settings
from world.airflow.in_memory import WarehouseInMemory

CONNECTION = "kafka_default"
SETTINGS = Settings(
    poll_interval_s=20.0, wake_s=6.0, ledger_url="postgresql://ledger", alert_again_s=3600.0
)


class Site(Protocol):
    """What belongs to one installation."""

    warehouse: WarehouseInMemory
    file: ClustersFile

    def ledger(self) -> Ledger:
        """A connection to its ledger."""
        ...

    def connect(self) -> ClusterPort:
        """A connection to the cluster."""
        ...

    def channels(self) -> tuple[Channel, ...]:
        """Where its alerts are sent."""
        ...

    def notifier(self, *, body: str, message_id: str) -> Any:
        """Of its only channel."""
        ...

    def thread(self, **options: Any) -> Any:
        """A thread of the process that runs now."""
        ...

    def plans_in_process(self, operator: Any, context: RunContext) -> None:
        """In the place of the Spark application."""
        ...


class Gateway:
    """A connection of the model's, as operators hold and close one."""

    def __init__(self, port: ClusterPort) -> None:
        self._port = port

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        self.__dict__[name] = found
        return found

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Nothing is held."""


def _connection(connection_id: str) -> Any:
    return SimpleNamespace(
        conn_id=connection_id, conn_type=KafkaClusterHook.conn_type, extra_dejson={}
    )


def _report(directory: Any, *_: Any, **__: Any) -> str:
    return str(directory.write_text("report.html", "not rendered"))


def _threads(site: Callable[[], Site]) -> Any:
    """In the place of the module ``threading``."""
    return SimpleNamespace(Thread=lambda **options: site().thread(**options), Event=Event)


def _remembered(original: Callable[[Plan], str]) -> Callable[[Plan], str]:
    """The hash of a plan that was loaded before: in memory nobody changes it."""
    known: dict[int, tuple[Plan, str]] = {}

    def hash_of(plan: Plan) -> str:
        if id(plan) not in known:
            known[id(plan)] = (plan, original(plan))
        return known[id(plan)][1]

    return hash_of


def replacements(site: Callable[[], Site]) -> Sequence[tuple[Any, str, Any]]:
    """What is put in the place of what: object, name, and the other.

    :param site: of the actor that runs now.
    """
    return (
        (installation, "settings", lambda _connection=None: SETTINGS),
        (installation, "open_ledger", lambda: site().ledger()),
        (installation, "warehouse", lambda: site().warehouse),
        (rehome.warehouse, "read_snapshot", lambda uri, **_: site().warehouse.read(uri)),
        (rehome.reporting.collect, "write_plan_report", _report),
        (rehome.reporting.collect, "note_of_end", lambda *_: ""),
        (clusters, "file", lambda: site().file),
        (KafkaClusterHook, "gateway", lambda _hook, _settings: Gateway(site().connect())),
        (KafkaClusterHook, "get_connection", staticmethod(_connection)),
        (hitl, "show_question", lambda operator, _id: (operator.body, list(operator.options))),
        (operators_hitl, "upsert_hitl_detail", lambda **_: None),
        (plan_hash, "hash_of", _remembered(plan_hash.hash_of)),
        (RollUpSnapshotsOperator, "step", lambda _operator, _context: None),
        (airflow_metrics, "way", lambda: airflow_metrics.Way.OFF),
        (delivery, "channels", lambda: (site().channels(), ())),
        (delivery, "notifier_class", lambda _path: site().notifier),
        (delivery, "threading", _threads(site)),
        (delivery, "one_callback", delivery.one_task),
        (delivery, "time", SimpleNamespace(monotonic=monotonic_s)),
        (delivery, "problems", lambda: ()),
        (
            PlanReassignmentOperator,
            "submit",
            lambda operator, context: site().plans_in_process(operator, context),
        ),
    )


@contextmanager
def standing_in(site: Callable[[], Site]) -> Iterator[None]:
    """Have operators and triggers of this process meanwhile act in the simulated world."""
    others = replacements(site)
    changed = [(where, name, where.__dict__.get(name)) for where, name, _ in others]
    log = logging.getLogger("rehome")
    level, log.level = log.level, logging.CRITICAL
    try:
        for where, name, other in others:
            setattr(where, name, other)
        yield
    finally:
        log.setLevel(level)
        for where, name, before in changed:
            if before is None:
                delattr(where, name)
            else:
                setattr(where, name, before)
