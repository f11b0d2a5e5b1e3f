"""Of which kind a cause is: by the reason or the class of the error, never by its words."""

from __future__ import annotations

from collections.abc import Mapping

from airflow.providers.common.compat.sdk import AirflowTaskTimeout

from rehome.airflow_versions import TaskDeferralError, TaskDeferralTimeout
from rehome.cluster.interface.errors import (
    ClusterError,
    ClusterUnreachableError,
    MissingRightError,
    Unreachable,
)
from rehome.clusters.binding import MisledError
from rehome.directory import StoreDriverError
from rehome.domain.plan.plan_hash import PlanChangedError
from rehome.domain.run.askers import NotAskedForError
from rehome.domain.run.causes.cause import CauseKind
from rehome.errors import (
    ClusterBusyError,
    InvalidConnectionError,
    InvalidRequestError,
    NotHealedError,
    PlanConflictError,
    RehomeError,
)
from rehome.execution.access.connection_policy import PolicyError
from rehome.execution.access.own_cluster import WrongClusterError
from rehome.execution.control.refused import ApprovalLapsedError
from rehome.execution.direct.direct_throttle import DirectThrottleError
from rehome.execution.foreign.cancel_foreign import SetMeanwhileError
from rehome.execution.observation.drift import DriftError
from rehome.execution.throttle.configs import ThrottleError
from rehome.executors import UnsharedLedgerError, UnsharedWarehouseError
from rehome.ledger.base.database import LedgerNotOpenError, LedgerUnavailableError
from rehome.ledger.base.fencing import LeaseHeldError, LeaseLostError
from rehome.places.path_parts import PathPartError
from rehome.places.uris import UriNotAllowedError
from rehome.run.causes.errors import TypedError
from rehome.run.causes.task_end import TaskReason
from rehome.warehouse import PlanExistsError

KINDS: Mapping[type[BaseException], CauseKind] = {
    RehomeError: CauseKind.REHOME,
    InvalidRequestError: CauseKind.REQUEST,
    InvalidConnectionError: CauseKind.CONNECTION,
    PlanConflictError: CauseKind.PLAN_STATE,
    ClusterBusyError: CauseKind.BUSY,
    LeaseHeldError: CauseKind.BUSY,
    LeaseLostError: CauseKind.BUSY,
    NotAskedForError: CauseKind.NOT_ASKED,
    PolicyError: CauseKind.POLICY,
    WrongClusterError: CauseKind.WRONG_CLUSTER,
    MisledError: CauseKind.WRONG_CLUSTER,
    MissingRightError: CauseKind.RIGHTS,
    ClusterUnreachableError: CauseKind.CLUSTER_AWAY,
    ClusterError: CauseKind.CLUSTER,
    ThrottleError: CauseKind.CLUSTER,
    DirectThrottleError: CauseKind.CLUSTER,
    LedgerNotOpenError: CauseKind.LEDGER,
    LedgerUnavailableError: CauseKind.LEDGER,
    UnsharedLedgerError: CauseKind.LEDGER,
    DriftError: CauseKind.STALE,
    SetMeanwhileError: CauseKind.STALE,
    PlanChangedError: CauseKind.CHANGED_FILES,
    ApprovalLapsedError: CauseKind.NOT_APPROVED,
    NotHealedError: CauseKind.NOT_HEALED,
    UnsharedWarehouseError: CauseKind.WAREHOUSE,
    PathPartError: CauseKind.WAREHOUSE,
    StoreDriverError: CauseKind.WAREHOUSE,
    UriNotAllowedError: CauseKind.WAREHOUSE,
    PlanExistsError: CauseKind.WAREHOUSE,
    AirflowTaskTimeout: CauseKind.TIMEOUT,
    TaskDeferralTimeout: CauseKind.TIMEOUT,
    TaskDeferralError: CauseKind.TRIGGER,
}
"""A class → what it and its subclasses mean, unless they are named themselves."""

REFUSALS: Mapping[str, TaskReason] = {
    "invalid_request": TaskReason.NOT_PLANNED,
    "gate_refused": TaskReason.GATE_REFUSED,
    "expectation_crashed": TaskReason.GATE_CRASHED,
    "crashed": TaskReason.JOB_CRASHED,
}
"""The ``kind`` of the plan job's ``failure.json`` → why its task ends."""

# Errors that another attempt would meet again.
_FINAL = (
    InvalidRequestError,
    NotAskedForError,
    PlanConflictError,
    PolicyError,
    WrongClusterError,
    MissingRightError,
    UnsharedLedgerError,
    UnsharedWarehouseError,
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


def kind_of(error: BaseException) -> CauseKind:
    """The kind of what an error says; of one that Rehome does not know, a fault."""
    if isinstance(error, TypedError):
        return error.end.reason.cause
    if _is_misconfigured(error):
        return CauseKind.CONNECTION
    return next((KINDS[each] for each in type(error).__mro__ if each in KINDS), CauseKind.FAULT)


def is_final(error: RehomeError) -> bool:
    """Whether another attempt would meet it again."""
    if isinstance(error, TypedError):
        return not error.end.reason.passing
    return isinstance(error, _FINAL) or _is_misconfigured(error)


def _is_misconfigured(error: BaseException) -> bool:
    return isinstance(error, ClusterUnreachableError) and error.cause in _MISCONFIGURED
