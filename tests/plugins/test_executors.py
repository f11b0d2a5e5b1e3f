"""An SQLite ledger serves one machine: executors that run tasks on others are refused."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from airflow.executors import executor_loader
from airflow.executors.local_executor import LocalExecutor

from rehome.executors import (
    UnsharedLedgerError,
    UnsharedWarehouseError,
    refuse_unshared,
    refuse_unshared_ledger,
)
from rehome.run.context import RunContext
from rehome.settings import Settings

SQLITE = Settings(ledger_url="sqlite:////somewhere/ledger.db", warehouse="s3://bucket/rehome")
POSTGRESQL = Settings(ledger_url="postgresql://db/ledger", warehouse="s3://bucket/rehome")
FOLDER = POSTGRESQL.model_copy(update={"warehouse": "file:///somewhere/rehome"})
SHARED = FOLDER.model_copy(update={"warehouse_is_shared": True})
ECS = "airflow.providers.amazon.aws.executors.ecs.ecs_executor.AwsEcsExecutor"
EDGE = "airflow.providers.edge3.executors.EdgeExecutor"
OURS = f"{__name__}.OurLocalExecutor"


class OurLocalExecutor(LocalExecutor):
    """As sites derive their own."""


def context(*executors: str | None, settings: Settings) -> RunContext:
    tasks = [SimpleNamespace(executor=name) for name in executors or (None,)]
    found = RunContext({"dag": SimpleNamespace(tasks=tasks)})
    found.settings = settings
    return found


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
    for shared in (POSTGRESQL, SHARED):
        refuse_unshared(context(*chosen, settings=shared))
    refuse_unshared_ledger(context(*chosen, settings=FOLDER))
    if not remote:
        for local in (SQLITE, FOLDER):
            refuse_unshared(context(*chosen, settings=local))
        return
    with pytest.raises(UnsharedLedgerError, match=remote) as refused:
        refuse_unshared(context(*chosen, settings=SQLITE))
    assert "name it in the connection rehome_ledger" in str(refused.value)
    with pytest.raises(UnsharedWarehouseError, match=f"somewhere/rehome.*{remote}") as away:
        refuse_unshared(context(*chosen, settings=FOLDER))
    assert "set warehouse_is_shared to true" in str(away.value)


@pytest.mark.parametrize("mark", ["AIRFLOW_IS_K8S_EXECUTOR_POD", "AIRFLOW_IS_EXECUTOR_CONTAINER"])
def test_a_container_is_known_whatever_its_configuration_says(
    mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "LocalExecutor")
    monkeypatch.setenv(mark, "True")
    with pytest.raises(UnsharedLedgerError, match=mark):
        refuse_unshared(context(settings=SQLITE))
