"""The task graph of a reassignment: for DAGs of people's own, and for Rehome's."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from airflow.providers.common.compat.sdk import AirflowException
from airflow.sdk import TaskGroup
from airflow.sdk.definitions.param import ParamsDict

from rehome.domain.run.foreign.foreign_request import ForeignAction
from rehome.operators.approval.approve import ApprovePlanOperator
from rehome.operators.approval.without_plan import APPROVE_TASK
from rehome.operators.completion.drained import CheckDrainedOperator
from rehome.operators.completion.plan_done import PlanDoneOperator
from rehome.operators.completion.preferred_leaders import RestorePreferredLeadersOperator
from rehome.operators.completion.report import WriteReportOperator
from rehome.operators.completion.verdict import VerdictOperator
from rehome.operators.completion.verify import VerifyReassignmentOperator
from rehome.operators.dry_run import DryRunOperator
from rehome.operators.execute import StartReassignmentOperator
from rehome.operators.foreign.adopt import AdoptionVerdictOperator, AdoptReassignmentsOperator
from rehome.operators.foreign.approve import ApproveForeignOperator
from rehome.operators.foreign.cancel import CancelForeignOperator
from rehome.operators.foreign.look import (
    FOREIGN_TASKS,
    FollowReassignmentsSensor,
    LookAtReassignmentsOperator,
)
from rehome.operators.plan import PlanReassignmentOperator
from rehome.operators.snapshot import SnapshotClusterOperator
from rehome.operators.throttle import ClearThrottleOperator, SetThrottleOperator
from rehome.params import (
    FORM_DEFAULTS,
    fixed_foreign_params,
    fixed_params,
    foreign_params,
    keep_params_once,
)
from rehome.run.context import FOLLOW_UP
from rehome.sensors.reassignment import ReassignmentSensor
from rehome.task_texts import task
from rehome.trigger_check import OWN_DAGS, OWN_FOREIGN_DAGS, POOL

CLEANING_POOL = "default_pool"
"""Of teardowns: what takes throttles back, and reports it, waits for no other run."""
TASKS = (
    *("snapshot", "plan", "dry_run", "approve", "throttle", "execute", "progress"),
    *("clear_throttle", "verify", "restore_leaders", "drained", "report", "verdict", "done"),
)
"""Ids of the tasks of a reassignment within a DAG of people's own."""


def task_defaults() -> dict[str, Any]:
    """``default_args`` of a DAG with this graph."""
    return {"retries": 2, "retry_delay": timedelta(seconds=10), "pool": POOL}


@dataclass(frozen=True, slots=True)
class _Chain:
    """The ends of a chain of tasks that makes a plan and carries it out."""

    snapshot: SnapshotClusterOperator
    clear_throttle: ClearThrottleOperator
    drained: CheckDrainedOperator
    report: WriteReportOperator


def reassign(form: Collection[str] = (), **values: Any) -> TaskGroup:
    """A reassignment within a DAG of your own: the tasks of `reassign_partitions`, in their order.

    From snapshot, plan and dry run over the approval to the throttle, the moves, the clean-up, the
    proof and the report: gates, ledger, page and policy are the same. Other tasks may come before
    the group and after it; those after it run when the plan is done, and are skipped when it has
    paused, was rejected, or was only tried out.

    The DAG's id has to begin with ``reassign_partitions__``, and a DAG holds one such group, in no
    other group. The parameters of the run are fixed by this call: none of them is taken from who
    triggers it, but for those of ``form``. Who has triggered the run has asked for the plan; a run
    of a schedule is asked for by nobody, and takes no replicas away without a person's approval.

    :param form: names of parameters that stay on the form of the run; see
        :func:`~rehome.params.fixed_params`.
    :param values: parameters by name, such as ``action="drain", brokers=[4], throttle="50 MB/s"``
        (docs/reference/parameters.md); what is left out has its default.
    :return: the group, to be linked with ``>>``.
    :raises InvalidRequestError: the values cannot be carried out; lists every problem.
    :raises ValueError: the DAG cannot hold the group; says why.
    """
    group = _group("reassign", OWN_DAGS, TASKS, FORM_DEFAULTS.keys(), task_defaults())
    dag = group.dag
    dag.params = ParamsDict({**dag.params, **fixed_params(form, **values)})
    with group:
        tasks = reassignment_tasks()
        done = PlanDoneOperator(**task("done"), pool=CLEANING_POOL)
        list(tasks.proofs) >> done
    keep_params_once(dag)
    return group


def foreign_reassignments(*, action: str, form: Collection[str] = (), **values: Any) -> TaskGroup:
    """What other clients have in flight, within a DAG of your own: the tasks of the DAG
    `foreign_reassignments` that one action needs, in their order.

    ``describe``: `look`. ``follow``: `look`, `follow`. ``cancel``: `look`, `approve`, `cancel`.
    ``adopt``: `look`, `approve`, `adopt`, `progress`, `clear_throttle`, `verify`, `report`,
    `verdict`, `done`. Cancel and adopt ask a person about each reassignment by name, always, and
    refuse where something else was set meanwhile. What is adopted is a plan of Rehome, whose id the
    task `done` returns. Tasks after the group run when what was asked for is done; of ``describe``
    and ``follow`` also when nothing was in flight. After ``cancel`` and ``adopt`` they are skipped
    when nothing was in flight, when a person has rejected it, and when an adopted plan has paused.

    The DAG's id has to begin with ``foreign_reassignments__``, and a DAG holds one such group, in
    no other group.

    :param action: ``describe``, ``follow``, ``cancel`` or ``adopt``.
    :param form: names of parameters that stay on the form of the run; see
        :func:`~rehome.params.fixed_foreign_params`.
    :param values: parameters by name, such as ``topics=["orders"], throttle=50_000_000``
        (docs/reference/parameters.md; rates in bytes per second); what is left out has its default.
    :return: the group, to be linked with ``>>``.
    :raises InvalidRequestError: the values cannot be carried out; lists every problem.
    :raises ValueError: the DAG cannot hold the group; says why.
    """
    group = _group(
        "foreign_reassignments",
        OWN_FOREIGN_DAGS,
        (*FOREIGN_TASKS, "done"),
        foreign_params().keys(),
        foreign_defaults(),
    )
    dag = group.dag
    dag.params = ParamsDict({**dag.params, **fixed_foreign_params(action, form, **values)})
    with group:
        verify = foreign_tasks(ForeignAction(action))
        if verify is not None:
            verify >> PlanDoneOperator(**task("done"), pool=CLEANING_POOL)
    keep_params_once(dag)
    return group


def _group(
    name: str,
    prefix: str,
    tasks: Collection[str],
    params: Collection[str],
    defaults: Mapping[str, Any],
) -> TaskGroup:
    """A task group in the DAG that is being written, if that may hold it.

    :param tasks, params: ids of its tasks, and names of its parameters.
    :raises ValueError: it may not.
    """
    call = f"{name}()"
    try:
        group = TaskGroup(name, prefix_group_id=False, default_args=dict(defaults))
    except AirflowException as error:
        raise ValueError(
            f"The DAG has a group or task named {name} already; call {call} once in a DAG, and "
            "give groups and tasks of your own other names"
        ) from error
    dag, within = group.dag, group.parent_group
    if not dag.dag_id.startswith(prefix) or dag.dag_id == prefix:
        raise ValueError(
            f"The id of a DAG with {call} begins with {prefix}, and this one is "
            f"{dag.dag_id}: by it Airflow's API server knows what Rehome guards and records"
        )
    if within is not None and not within.is_root:
        raise ValueError(
            f"{call} is called within the task group {within.group_id}: call it in no task group"
        )
    if taken := sorted({*tasks} & {*dag.task_ids}):
        raise ValueError(
            f"The DAG {dag.dag_id} has tasks of these ids already: {', '.join(taken)}. "
            f"Give tasks of your own other ids than those of {call}"
        )
    if taken := sorted({*params} & {*dag.params}):
        raise ValueError(
            f"The DAG {dag.dag_id} has parameters of these names: {', '.join(taken)}. Give their "
            f"values to {call}, or their names as form"
        )
    return group


@dataclass(frozen=True, slots=True)
class Reassigning:
    """Tasks of a whole reassignment that others are linked with.

    :param proofs: after them all of it is proved; ``verdict``: the last one.
    """

    proofs: tuple[CheckDrainedOperator, CheckDrainedOperator]
    verdict: VerdictOperator


def reassignment_tasks() -> Reassigning:
    """Add the tasks to the DAG that is being written.

    The group ``follow_up`` is the same chain once more, with a plan of its own: for what has
    appeared on the brokers of a drain since the first one was made. Else it is skipped.
    """
    first = _chain()
    with TaskGroup(
        FOLLOW_UP,
        group_display_name="Follow up a drain",
        tooltip="What has appeared on drained brokers meanwhile",
    ):
        second = _chain()
    verdict = VerdictOperator(**task("verdict"), retries=0, pool=CLEANING_POOL)

    first.drained >> second.snapshot
    # Whatever happened, the reports come when everything has been cleared, and the verdict last.
    second.clear_throttle >> first.report
    second.drained >> first.report
    [first.report, second.report] >> verdict
    verdict.as_teardown(on_failure_fail_dagrun=True)
    keep_params_once(verdict.dag)
    return Reassigning((first.drained, second.drained), verdict)


def _chain() -> _Chain:
    snapshot = SnapshotClusterOperator(**task("snapshot"), for_request=True)
    plan = PlanReassignmentOperator(**task("plan"))
    dry_run = DryRunOperator(**task("dry_run"))
    approve = ApprovePlanOperator(**task("approve"))
    throttle = SetThrottleOperator(**task("throttle"))
    execute = StartReassignmentOperator(**task("execute"))
    progress = ReassignmentSensor(**task("progress"))
    clear_throttle = ClearThrottleOperator(**task("clear_throttle"), retries=5, pool=CLEANING_POOL)
    verify = VerifyReassignmentOperator(**task("verify"))
    restore_leaders = RestorePreferredLeadersOperator(**task("restore_leaders"))
    drained = CheckDrainedOperator(**task("drained"))
    report = WriteReportOperator(**task("report"), pool=CLEANING_POOL)

    snapshot >> plan >> dry_run >> approve >> throttle >> execute >> progress >> clear_throttle
    # Teardowns succeed also after a failure: without its edge from progress, verify would run.
    progress >> verify
    # After a failure too, the report comes when everything has been cleared.
    clear_throttle >> report
    clear_throttle >> verify >> restore_leaders >> drained >> report

    # Teardowns, so that they run after a failure without hiding it. `snapshot` counts as a setup
    # too, for a throttle that dies halfway must be cleared; `verdict` runs whatever happened.
    clear_throttle.as_teardown(setups=[snapshot, throttle])
    report.as_teardown()
    return _Chain(snapshot, clear_throttle, drained, report)


def foreign_defaults() -> dict[str, Any]:
    """``default_args`` of a DAG about what other clients have in flight."""
    return {"retries": 1, "retry_delay": timedelta(seconds=10)}


def foreign_tasks(*actions: ForeignAction) -> VerifyReassignmentOperator | None:
    """Add the tasks that these actions need to the DAG that is being written.

    :return: what proves that an adopted plan is done; None = nothing is adopted.
    """
    look = LookAtReassignmentsOperator(**task("look"))
    if ForeignAction.FOLLOW in actions:
        look >> FollowReassignmentsSensor(**task("follow"))
    if not any(action.changes_cluster for action in actions):
        return None
    approve = ApproveForeignOperator(**task(APPROVE_TASK))
    look >> approve
    if ForeignAction.CANCEL in actions:
        approve >> CancelForeignOperator(**task("cancel"))
    return _adoption(approve) if ForeignAction.ADOPT in actions else None


def _adoption(approve: ApproveForeignOperator) -> VerifyReassignmentOperator:
    adopt = AdoptReassignmentsOperator(**task("adopt"))
    progress = ReassignmentSensor(**task("progress"))
    clear_throttle = ClearThrottleOperator(**task("clear_throttle"), retries=5, pool=CLEANING_POOL)
    verify = VerifyReassignmentOperator(**task("verify"))
    report = WriteReportOperator(**task("report"), pool=CLEANING_POOL)
    verdict = AdoptionVerdictOperator(**task("verdict"), retries=0, pool=CLEANING_POOL)
    approve >> adopt >> progress >> clear_throttle
    # Teardowns succeed also after a failure: without its edge from progress, verify would run.
    progress >> verify
    clear_throttle >> report
    clear_throttle >> verify >> report >> verdict
    clear_throttle.as_teardown(setups=adopt)
    report.as_teardown()
    verdict.as_teardown(on_failure_fail_dagrun=True)
    return verify
