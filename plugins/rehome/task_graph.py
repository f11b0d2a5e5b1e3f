"""The task graph of a reassignment: for DAGs of people's own, and for Rehome's."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from airflow.providers.common.compat.sdk import AirflowException
from airflow.sdk import DAG, TaskGroup
from airflow.sdk.definitions.param import ParamsDict

from rehome.operators.approval.approve import ApprovePlanOperator
from rehome.operators.completion.drained import CheckDrainedOperator
from rehome.operators.completion.plan_done import PlanDoneOperator
from rehome.operators.completion.preferred_leaders import RestorePreferredLeadersOperator
from rehome.operators.completion.report import WriteReportOperator
from rehome.operators.completion.verdict import VerdictOperator
from rehome.operators.completion.verify import VerifyReassignmentOperator
from rehome.operators.dry_run import DryRunOperator
from rehome.operators.execute import StartReassignmentOperator
from rehome.operators.plan import PlanReassignmentOperator
from rehome.operators.snapshot import SnapshotClusterOperator
from rehome.operators.throttle import ClearThrottleOperator, SetThrottleOperator
from rehome.params import FORM_DEFAULTS, fixed_params, keep_params_once
from rehome.run.steps import FOLLOW_UP
from rehome.sensors.reassignment import ReassignmentSensor
from rehome.task_texts import task
from rehome.trigger_check import OWN_DAGS

POOL = "rehome_cluster"
"""Pool that limits the runs on clusters; a run that waits for its copies keeps its slot."""

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
    try:
        group = TaskGroup("reassign", prefix_group_id=False, default_args=task_defaults())
    except AirflowException as error:
        raise ValueError(f"A DAG has reassign() once: {error}") from error
    dag = _dag_for(group)
    dag.params = ParamsDict({**dag.params, **fixed_params(form, **values)})
    with group:
        tasks = reassignment_tasks()
        done = PlanDoneOperator(**task("done"), pool=CLEANING_POOL)
        list(tasks.proofs) >> done
    keep_params_once(dag)
    return group


def _dag_for(group: TaskGroup) -> DAG:
    """The DAG that is being written, if it may hold the group.

    :raises ValueError: it may not.
    """
    dag, within = group.dag, group.parent_group
    if not dag.dag_id.startswith(OWN_DAGS) or dag.dag_id == OWN_DAGS:
        raise ValueError(
            f"The id of a DAG with reassign() begins with {OWN_DAGS}, and this one is "
            f"{dag.dag_id}: by it Airflow's API server knows what Rehome guards and records"
        )
    if within is not None and not within.is_root:
        raise ValueError(
            f"reassign() is called within the task group {within.group_id}: call it in no task "
            "group"
        )
    if taken := sorted({*TASKS} & {*dag.task_ids}):
        raise ValueError(
            f"The DAG {dag.dag_id} has tasks of these ids already: {', '.join(taken)}. "
            "Give tasks of your own other ids than those of reassign()"
        )
    if taken := sorted(FORM_DEFAULTS.keys() & {*dag.params}):
        raise ValueError(
            f"The DAG {dag.dag_id} has parameters of these names: {', '.join(taken)}. Give their "
            "values to reassign(), or their names as form"
        )
    return dag


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
