"""What lives in different places in Airflow's versions, beyond its common.compat provider."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING

from airflow.utils.state import TaskInstanceState

if TYPE_CHECKING:
    from airflow.executors.executor_utils import ExecutorName
try:
    from airflow.sdk.exceptions import TaskDeferralError, TaskDeferralTimeout
except ImportError:  # before Airflow 3.2
    from airflow.exceptions import TaskDeferralError, TaskDeferralTimeout

try:
    from airflow.sdk.observability import stats
except ImportError:  # before Airflow 3.2
    from airflow.stats import Stats as stats

__all__ = [
    "TaskDeferralError",
    "TaskDeferralTimeout",
    "asking_states",
    "configured_executors",
    "listeners_are_called_after_commit",
    "stats",
]


def configured_executors() -> list[ExecutorName]:
    """The executors of Airflow's configuration, of all teams where its version has teams; whether
    there are these teams would be a question to the database, which tasks do not reach.
    """
    from airflow.executors.executor_loader import ExecutorLoader

    ask = ExecutorLoader.get_executor_names
    has_teams = "validate_teams" in signature(ask).parameters
    return list(ask(validate_teams=False) if has_teams else ask())


def asking_states() -> list[TaskInstanceState]:
    """The states of a task that waits for a person: before Airflow 3.3 a trigger waits for it."""
    states = TaskInstanceState.__members__
    return [states[name] for name in ("AWAITING_INPUT", "DEFERRED") if name in states]


def listeners_are_called_after_commit() -> bool:
    """Whether Airflow has committed an asset event when it calls listeners. Before Airflow 3.3 it
    calls them in its own transaction.
    """
    from airflow.assets.manager import AssetManager

    return "callback_sink" in signature(AssetManager.register_asset_change).parameters
