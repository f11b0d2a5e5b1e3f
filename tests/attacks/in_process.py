"""DAGs that are run in this process, on real brokers, by a policy that asks a person.

No person is there: whoever is asked, answers nothing, and the run ends there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from local.kafka.cluster import LocalCluster
from tests.attacks.kafka_seen import Witness
from tests.conftest import Topics
from tests.dags.runs import Run, fresh_dag, plan_without_gates, run_dag

if TYPE_CHECKING:
    from airflow.sdk import DAG

GUARDED, LAX = "kafka_default", "kafka_lax"
POLICIES: Mapping[str, Mapping[str, Any]] = {GUARDED: {"approval": True}, LAX: {}}


class Attacked:
    """A ledger and a warehouse of its own, on the session's brokers.

    :param asked: what people were asked.
    """

    def __init__(
        self,
        cluster: LocalCluster,
        topics: Topics,
        home: Path,
        monkeypatch: pytest.MonkeyPatch,
        output: pytest.CaptureFixture[str],
        callbacks: pytest.LogCaptureFixture,
    ) -> None:
        self.cluster, self.topics, self.patch = cluster, topics, monkeypatch
        self.warehouse, self.ledger = home / "warehouse", home / "ledger.db"
        self.witness = Witness(cluster.client_settings())
        self.asked: list[str] = []
        self._output, self._callbacks = output, callbacks
        monkeypatch.setenv("REHOME_WAREHOUSE", self.warehouse.as_uri())
        monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{self.ledger}")
        monkeypatch.setenv("REHOME_POLL_INTERVAL_S", "1")
        spark = {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(spark))
        for name, policy in POLICIES.items():
            self.connect(name, **policy)
        self._nobody_answers()

    def connect(self, name: str, cluster: LocalCluster | None = None, **policy: Any) -> None:
        """Have a connection lead to a cluster."""
        extra: dict[str, Any] = dict((cluster or self.cluster).client_settings())
        extra |= {"rehome.policy": policy} if policy else {}
        value = json.dumps({"conn_type": "kafka", "extra": extra})
        self.patch.setenv(f"AIRFLOW_CONN_{name.upper()}", value)

    def run(self, dag: str | DAG, **conf: Any) -> Run:
        """A run that a person has triggered."""
        with self.patch.context() as patched:
            plan_without_gates(patched)
            patched.setattr("rehome.sensors.reassignment.FIRST_POLL_S", 0.0)
            self._callbacks.clear()
            with self._callbacks.at_level("INFO"):
                chosen = fresh_dag(dag) if isinstance(dag, str) else dag
                return run_dag(chosen, conf, self._output, self._callbacks)

    def tell(self, text: str) -> None:
        """Print, past what runs print."""
        with self._output.disabled():
            print(text)

    def plan_file(self, name: str) -> Path:
        """A file of the newest plan."""
        return self.plan_files(name)[-1]

    def plan_files(self, name: str) -> list[Path]:
        """The files of this name of all plans, oldest first."""
        found = (self.warehouse / "plans").glob(f"*/{name}")
        return sorted(found, key=lambda file: file.stat().st_mtime)

    def _nobody_answers(self) -> None:
        from airflow.providers.standard.operators.hitl import ApprovalOperator
        from airflow.sdk.exceptions import AirflowFailException

        def ask(operator: Any, context: Any) -> Any:
            self.asked.append(f"{operator.subject}\n{operator.body}")
            raise AirflowFailException("nobody answers")

        self.patch.setattr(ApprovalOperator, "execute", ask)


def moving(topic: str, replicas: Sequence[int], **more: Any) -> dict[str, Any]:
    """What a run is asked for that moves a topic's first partition."""
    entry = {"topic": topic, "partition": 0, "replicas": list(replicas)}
    wanted = {"version": 1, "partitions": [entry]}
    return {"action": "reassign", "reassignment": wanted, "kafka_config_id": GUARDED, **more}


def forged(dag: DAG, task_id: str, value: Any, *, instead: bool = True) -> None:
    """Have a task return a value of the attacker's, or what that makes of the task's context.

    :param instead: it does nothing else, as one that was set to success by hand; else it does its
        work first.
    """
    task: Any = dag.get_task(task_id)

    def given(context: Any, work: Callable[[], Any]) -> Any:
        if not instead:
            work()
        return value(context) if callable(value) else value

    if task.is_mapped:
        kind = task.operator_class

        def of_class(operator: Any, context: Any) -> Any:
            return given(context, lambda: kind.execute(operator, context))

        task.operator_class = type("Forged", (kind,), {"execute": of_class})
        return
    work = task.execute
    object.__setattr__(task, "execute", lambda context: given(context, lambda: work(context)))
