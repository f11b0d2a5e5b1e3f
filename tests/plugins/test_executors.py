"""An SQLite ledger serves one machine: executors that run tasks on others are refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.executors import executor_loader
from airflow.executors.local_executor import LocalExecutor

from rehome.executors import UnsharedLedgerError, refuse_unshared_ledger

SQLITE, POSTGRESQL = "sqlite:////somewhere/ledger.db", "postgresql://db/ledger"
ECS = "airflow.providers.amazon.aws.executors.ecs.ecs_executor.AwsEcsExecutor"
EDGE = "airflow.providers.edge3.executors.EdgeExecutor"
OURS = f"{__name__}.OurLocalExecutor"


class OurLocalExecutor(LocalExecutor):
    """As sites derive their own."""


def context(*executors: str | None) -> dict[str, Any]:
    tasks = [SimpleNamespace(executor=name) for name in executors or (None,)]
    return {"dag": SimpleNamespace(tasks=tasks)}


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loader reads the configuration once per process."""
    monkeypatch.setattr(executor_loader, "_executor_names", [])


@pytest.mark.parametrize(
    ("configured", "chosen", "remote"),
    [
        ("LocalExecutor", (), ""),
        (OURS, (), ""),
        ("CeleryExecutor", (), "CeleryExecutor"),
        ("KubernetesExecutor", (), "KubernetesExecutor"),
        (ECS, (), "AwsEcsExecutor"),
        (f"far:{EDGE}", (), "EdgeExecutor"),
        ("LocalExecutor,CeleryExecutor", (), ""),
        ("LocalExecutor,CeleryExecutor", (None, "CeleryExecutor"), "CeleryExecutor"),
        ("CeleryExecutor,LocalExecutor", (), "CeleryExecutor"),
        ("CeleryExecutor,LocalExecutor", ("LocalExecutor",), ""),
        (f"LocalExecutor,far:{EDGE}", (None, "far"), "EdgeExecutor"),
        ("LocalExecutor", ("gone",), "gone"),
    ],
)
def test_executors_that_run_tasks_elsewhere_are_refused_with_the_remedy(
    configured: str, chosen: tuple[str | None, ...], remote: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", configured)
    refuse_unshared_ledger(context(*chosen), POSTGRESQL)
    if not remote:
        refuse_unshared_ledger(context(*chosen), SQLITE)
        return
    with pytest.raises(UnsharedLedgerError, match=remote) as refused:
        refuse_unshared_ledger(context(*chosen), SQLITE)
    assert "name it in the connection rehome_ledger" in str(refused.value)


@pytest.mark.parametrize("mark", ["AIRFLOW_IS_K8S_EXECUTOR_POD", "AIRFLOW_IS_EXECUTOR_CONTAINER"])
def test_a_container_is_known_whatever_its_configuration_says(
    mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "LocalExecutor")
    monkeypatch.setenv(mark, "True")
    with pytest.raises(UnsharedLedgerError, match=mark):
        refuse_unshared_ledger(context(), SQLITE)
