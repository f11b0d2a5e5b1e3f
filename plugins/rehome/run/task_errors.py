"""Rehome's errors as Airflow's, in plain sentences."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from include.cluster.interface.errors import MissingRightError, Unreachable
from include.domain.run.askers import NotAskedForError
from include.errors import InvalidRequestError, PlanConflictError, RehomeError
from include.execution.access.connection_policy import PolicyError
from include.execution.access.own_cluster import WrongClusterError
from rehome.executors import UnsharedLedgerError

# Errors that another attempt would meet again.
_FINAL = (
    InvalidRequestError,
    NotAskedForError,
    PlanConflictError,
    PolicyError,
    WrongClusterError,
    MissingRightError,
    UnsharedLedgerError,
)
# Causes of a ClusterUnreachableError that stay until the connection is changed.
_MISCONFIGURED = frozenset(
    {
        Unreachable.WRONG_PASSWORD,
        Unreachable.WRONG_MECHANISM,
        Unreachable.WRONG_PROTOCOL,
        Unreachable.WRONG_CA,
        Unreachable.WRONG_HOST,
    }
)

log = logging.getLogger(__name__)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn Rehome's errors into Airflow's: one sentence in the log, before any traceback.

    An error that another attempt would meet again fails the task at once.
    """
    try:
        yield
    except RehomeError as error:
        log.error("%s", error)
        final = isinstance(error, _FINAL) or getattr(error, "cause", None) in _MISCONFIGURED
        raise (AirflowFailException if final else AirflowException)(str(error)) from None
