"""What lives in different places in Airflow's versions, beyond its common.compat provider."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING

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

__all__ = ["TaskDeferralError", "TaskDeferralTimeout", "configured_executors", "stats"]


def configured_executors() -> list[ExecutorName]:
    """The executors of Airflow's configuration, of all teams where its version has teams; whether
    there are these teams would be a question to the database, which tasks do not reach.
    """
    from airflow.executors.executor_loader import ExecutorLoader

    ask = ExecutorLoader.get_executor_names
    has_teams = "validate_teams" in signature(ask).parameters
    return list(ask(validate_teams=False) if has_teams else ask())
