"""Of which kind an error is, and whether another attempt may fix it."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import rehome
from rehome.cluster.interface.errors import ClusterUnreachableError, MissingRightError, Unreachable
from rehome.domain.run.causes.cause import CauseKind
from rehome.errors import InvalidRequestError, PlanConflictError, RehomeError
from rehome.run.causes.errors import EndedError
from rehome.run.causes.kinds import KINDS, REFUSALS, is_final, kind_of
from rehome.run.causes.task_end import TaskEnd, TaskReason
from spark_jobs.gated_plan import EXIT_CODES

ROOT = Path(__file__).parents[4]
LIKE_THEIR_BASE = {
    "ClustersFileError": "a file that parameters go by is part of them",
    "WindowSettingsError": "so are the settings that stand for it",
    "BrokersDisagreeError": "a call to the cluster has failed",
    "LimitsBrokenError": "what the plan was made on has changed",
    "PartitionsChangedError": "so it has where partitions are other ones",
    "StateRefusedError": "a plan's state does not allow what is asked",
    "NotContinuedError": "nor that another run resumes it",
    "PaceRefusedError": "the parameters of a request name the pace",
    **dict.fromkeys(
        (
            "TypedError",
            "EndedError",
            "TaskConflictError",
            "ClusterHeldError",
            "FileChangedError",
            "LowersReplicationError",
            "NoOwnPlanError",
            "NotDoneError",
            "SnapshotChangedError",
            "StepMissingError",
            "UnknownPlanError",
        ),
        "its reason names the kind",
    ),
    **dict.fromkeys(
        ("HealOverError", "BrokerAwayError", "DomainAwayError"), "each is a NotHealedError"
    ),
    "NotOwnReassignmentError": "only tasks of people's own have it, by the hook",
    "LedgerFileError": "no task raises it: the command line alone reads such a file",
}
OTHER_EXCEPTIONS = {"AirflowSkipException"}


def _subclasses(of: type[RehomeError]) -> Iterator[type[RehomeError]]:
    for each in of.__subclasses__():
        yield each
        yield from _subclasses(each)


def test_every_error_of_rehomes_has_a_kind() -> None:
    for found in pkgutil.walk_packages(rehome.__path__, "rehome."):
        if "migrations" not in found.name:
            importlib.import_module(found.name)
    ours = {each for each in _subclasses(RehomeError) if each.__module__.split(".")[0] != "tests"}
    unnamed = {each.__name__ for each in ours if each not in KINDS}
    assert unnamed == set(LIKE_THEIR_BASE)


@pytest.mark.parametrize(
    "error",
    [
        InvalidRequestError(["brokers: none."]),
        PlanConflictError("another plan is active"),
        MissingRightError("Alter", "Cluster Alter"),
        ClusterUnreachableError("wrong password", cause=Unreachable.WRONG_PASSWORD),
        EndedError(TaskEnd(TaskReason.GATE_REFUSED)),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_that_a_retry_cannot_mend_are_not_retried(error: RehomeError) -> None:
    assert is_final(error)


def test_a_cluster_that_does_not_answer_is_tried_again() -> None:
    error = ClusterUnreachableError("no answer", cause=Unreachable.NO_ANSWER)
    assert not is_final(error)
    assert kind_of(error) is CauseKind.CLUSTER_AWAY
    wrong = ClusterUnreachableError("wrong password", cause=Unreachable.WRONG_PASSWORD)
    assert kind_of(wrong) is CauseKind.CONNECTION


def test_whatever_the_plan_job_refuses_has_a_kind() -> None:
    assert set(REFUSALS) == set(EXIT_CODES)


@pytest.mark.slow
def test_no_operator_fails_by_an_exception_of_airflows() -> None:
    """It would have no kind, and no remedy."""
    folders = (ROOT / "plugins/rehome" / name for name in ("operators", "sensors", "run", "fleet"))
    found = {
        (path.name, node.exc.func.id)
        for folder in folders
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and isinstance(node.exc.func, ast.Name)
        and node.exc.func.id.startswith("Airflow")
    }
    assert {name for _, name in found} <= OTHER_EXCEPTIONS
