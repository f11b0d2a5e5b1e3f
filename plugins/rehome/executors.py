"""Where Airflow runs tasks: a ledger or a warehouse on a disk serves those of one machine only."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from sqlalchemy import make_url

from rehome.airflow_versions import configured_executors
from rehome.errors import RehomeError
from rehome.places.uris import scheme_of

if TYPE_CHECKING:
    from airflow.executors.executor_utils import ExecutorName

    from rehome.run.context import RunContext

_BY_LOCAL = "have this DAG's tasks run by LocalExecutor (executor in its default_args)"
# Airflow's own marks of a process that an executor has started in a container; the configuration
# in there may name another executor.
_CONTAINERS = ("AIRFLOW_IS_K8S_EXECUTOR_POD", "AIRFLOW_IS_EXECUTOR_CONTAINER")


class UnsharedLedgerError(RehomeError):
    """The ledger is a file, and tasks run on machines that do not have it."""


class UnsharedWarehouseError(RehomeError):
    """The warehouse is a folder, and tasks run on machines that may not have it."""


def refuse_unshared(context: RunContext) -> None:
    """See that all tasks of the run write to one ledger, and find one another's files.

    :raises UnsharedLedgerError: as :func:`refuse_unshared_ledger`.
    :raises UnsharedWarehouseError: the warehouse is a folder of which no setting says that all
        machines share it, and tasks may run on several.
    """
    refuse_unshared_ledger(context)
    settings = context.settings
    if scheme_of(settings.warehouse) != "file" or settings.warehouse_is_shared:
        return
    if elsewhere := _elsewhere(context):
        raise UnsharedWarehouseError(
            f"The warehouse is the folder {settings.warehouse}, but {elsewhere} may run tasks on "
            "other machines: each would look for the others' plans on its own disk",
            next_step="Name an object store in the setting warehouse. If these machines mount one "
            f"shared folder there, set warehouse_is_shared to true. Or {_BY_LOCAL}.",
        )


def refuse_unshared_ledger(context: RunContext) -> None:
    """See that all tasks of the run write to one ledger.

    :raises UnsharedLedgerError: it is an SQLite file, and an executor of the run's tasks does not
        run them on the scheduler's machine (``BaseExecutor.is_local``).
    """
    if make_url(context.settings.ledger_url).get_backend_name() != "sqlite":
        return
    if elsewhere := _elsewhere(context):
        raise UnsharedLedgerError(
            f"The ledger is an SQLite file, but {elsewhere} may run tasks on other machines: each "
            "would write to a file of its own",
            next_step="Set up a PostgreSQL database and name it in the connection rehome_ledger, "
            f"or {_BY_LOCAL}.",
        )


def _elsewhere(context: RunContext) -> str:
    """The executors of a run's tasks that may run them on other machines; "" = none."""
    chosen = {getattr(task, "executor", None) for task in _tasks(context)}
    return " and ".join(remote_executors(chosen))


def _tasks(context: RunContext) -> Collection[Any]:
    dag = context.dag
    return dag.tasks if dag is not None else (context.task,)


def remote_executors(chosen: Collection[str | None]) -> list[str]:
    """Names of executors that may run tasks on other machines than the scheduler's.

    :param chosen: what tasks name as their executor; None = the configuration's first, of each
        team where there are teams.
    """
    marks = [mark for mark in _CONTAINERS if os.environ.get(mark)]
    if marks:
        return [f"an executor that sets {marks[0]}"]
    configured = configured_executors()
    executors = [name for one in chosen for name in _executors_for(one, configured)]
    remote = {_class_name(name) for name in executors if not _is_local(name)}
    spellings = {spelling for name in configured for spelling in _spellings(name)}
    return sorted(remote | {one for one in chosen if one is not None and one not in spellings})


def _executors_for(chosen: str | None, configured: Collection[ExecutorName]) -> list[ExecutorName]:
    if chosen is not None:
        return [name for name in configured if chosen in _spellings(name)]
    defaults: dict[str | None, ExecutorName] = {}
    for name in configured:
        defaults.setdefault(name.team_name, name)
    return list(defaults.values())


def _spellings(name: ExecutorName) -> set[str | None]:
    return {name.alias, name.module_path, _class_name(name)} - {None}


def _class_name(name: ExecutorName) -> str:
    return str(name.module_path).rpartition(".")[2]


def _is_local(name: ExecutorName) -> bool:
    from airflow.executors.executor_loader import ExecutorLoader

    try:
        executor, _ = ExecutorLoader.import_executor_cls(name)
    except ImportError:
        return False  # Airflow brings the local one along
    return bool(executor.is_local)
