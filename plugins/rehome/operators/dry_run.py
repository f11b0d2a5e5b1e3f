"""Dry run: checks everything that could refuse the plan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.utils.skipmixin import SkipMixin

from rehome.domain.clock import utc_now
from rehome.domain.request.request import request_to_params
from rehome.domain.run.findings import SETTINGS_CHECK
from rehome.domain.run.paused.paused_plan import refused_by
from rehome.domain.run.paused.paused_text import paused_text
from rehome.domain.run.states import PlanState
from rehome.execution.access.own_cluster import OwnCluster
from rehome.fleet import paused_plan, plan_settings
from rehome.links import DataDocsLink, PlanPageLink, ReportLink
from rehome.operators.base import ClusterOperator
from rehome.reporting.plan_files import EXPORT
from rehome.run import (
    evidence,
    plan_of_run,
    run_authority,
    run_request,
)
from rehome.run.authority import own_snapshot
from rehome.run.causes.errors import EndedError
from rehome.run.causes.task_end import TaskEnd, TaskReason
from rehome.run.ports import extras
from rehome.run.run_note import NOTES, write_note
from rehome.run.words.plan_words import REFUSED_BY_DRY_RUN

if TYPE_CHECKING:
    from rehome.cluster.gateway import ClusterGateway
    from rehome.execution.dry_run.result import DryRunResult
    from rehome.execution.dry_run.typed_finding import TypedFinding
    from rehome.ledger.base.records import PlanRecord
    from rehome.ledger.store import Ledger
    from rehome.run.context import RunContext
    from rehome.run.run_request import TaskPlan


class DryRunOperator(ClusterOperator, SkipMixin):
    """Predicts every verdict and checks every precondition; changes nothing.

    With the parameter ``dry_run`` the run ends here, and the report is the product. Of a plan
    that is continued, what is left is checked; it stays paused when it is refused.
    """

    operator_extra_links = (PlanPageLink(), DataDocsLink(), ReportLink())
    inherits_from_skipmixin = True

    def __init__(self, **kwargs: Any):
        super().__init__(outlets=[NOTES], **kwargs)

    def step(self, context: RunContext) -> str:
        """Check, report, and either go on or stop here."""
        from rehome.execution.dry_run.dry_run import describe
        from rehome.reporting.collect import write_plan_report
        from rehome.reporting.plan_text import planned_note

        run_authority.refuse_unasked(context)
        looks_only = bool(context.params.get("dry_run"))
        find = plan_of_run.recorded_plan if looks_only else plan_of_run.require_plan
        record = find(context)
        if record is None:
            raise plan_of_run.no_plan_yet(context)
        if record.state is PlanState.DONE:
            self.log.info("Plan %s is done: there is nothing to try out.", record.plan_id)
            return f"{record.plan_dir}/report.html"
        if looks_only and _is_taken_up(context, record):
            self.log.info("Run %s carries plan %s out: see there.", record.driver, record.plan_id)
            return f"{record.plan_dir}/report.html"
        snapshot = own_snapshot.uri_of(context)
        ledger = context.ledger
        with context.gateway() as cluster:
            task = run_request.task_plan(context, record)
            plan, request, directory = task.plan, task.request, task.directory
            result = tried_out(task, snapshot, cluster)
            view = ledger.view(plan.plan_id)
            continued = view.state.active
            self.log.info("%s", describe(result))
            if not result.ok and not continued:
                ledger.transition(plan.plan_id, PlanState.FAILED, REFUSED_BY_DRY_RUN)
            now = ledger.plan(plan.plan_id)
            waits_for = paused_plan.outlook(ledger, now, utc_now(), context.dag_paused)
            uri = write_plan_report(directory, ledger, waits_for)
        self.log.info("Report: %s", uri)
        if not result.ok:
            problems = "\n".join(str(finding) for finding in result.errors)
            remedy = ""
            if waits_for is not None:
                remedy = paused_text(waits_for, refused_by(result.to_json())).next_step
            state = view.state if continued else None
            raise EndedError(
                TaskEnd(
                    TaskReason.DRY_RUN_REFUSES, plan.plan_id, state, said=problems, remedy=remedy
                )
            )
        if request.export:
            self._export(task, result)
        write_note(
            context, planned_note(request_to_params(request), plan.summary, result.to_json())
        )
        if request.dry_run:
            extras().heals.hand_over(context.dag_run, ledger, plan.plan_id, context.actor)
            self.skip(ti=context.ti, tasks=context.task.get_flat_relatives(upstream=False))
        return uri

    def _export(self, task: TaskPlan, result: DryRunResult) -> None:
        """Write the files for Kafka's own tools."""
        context, plan, directory = task.context, task.plan, task.directory
        with context.gateway() as cluster:
            most = context.settings.max_partitions_in_flight
            of = plan, task.request, result.rate_bytes_per_s, most, cluster
            made = extras().export.of(*of)
        if made is None:
            self.log.warning("This installation has nothing that writes files for Kafka's tools.")
            return
        uri = directory.replace_folder(EXPORT, made.texts)
        digests = {
            f"{EXPORT}/{name}": evidence.digest_of(text) for name, text in made.texts.items()
        }
        context.ledger.record_files(plan.plan_id, digests)
        evidence.keep(context.ledger, directory, plan.plan_id, f"{EXPORT}.json", made.to_json())
        self.log.info("%d batches for Kafka's tools: %s", len(made.batches), uri)


def _is_taken_up(context: RunContext, record: PlanRecord) -> bool:
    """Whether another run carries out the plan that this dry run has made; a dry run that names a
    plan only reads it.
    """
    own = context.named_plan_id is None
    return own and not context.drives(record)


def tried_out(task: TaskPlan, snapshot: str, cluster: ClusterGateway) -> DryRunResult:
    """The dry run of what is left of a plan, written to its directory and recorded in the ledger.

    At the throttle that a person has asked for since the plan was made, where there is one.

    :param snapshot: URI of the snapshot the plan was made on.
    :raises ClustersFileError: the clusters file cannot be used, and the plan has not begun.
    """
    from rehome.execution.control.resume import moving_or_done, not_started
    from rehome.execution.dry_run.active_plan import ActivePlan
    from rehome.execution.dry_run.dry_run import dry_run
    from rehome.execution.dry_run.typed_finding import CHANNELS_CHECK, POLICIES_CHECK
    from rehome.execution.progress.progress import admitted_moves
    from rehome.execution.throttle.foreign import set_by_plans
    from rehome.warehouse import read_snapshot

    context, plan, directory = task.context, task.plan, task.directory
    ledger, taken = context.ledger, read_snapshot(snapshot)
    record, view = ledger.plan(plan.plan_id), ledger.view(plan.plan_id)
    active, left = ledger.active_plan(plan.cluster_id), not_started(plan, view)
    compared = plan_settings.ComparedSettings.of(
        directory, plan.action, context.connection, begun=view.state.active
    )
    result = dry_run(
        left,
        task.request,
        taken,
        OwnCluster.of_plan(cluster, record),
        context.settings,
        active=ActivePlan.of(ledger, active.plan_id) if active else None,
        in_flight={move.partition for move in admitted_moves(plan, view)},
        rate_bytes_per_s=record.requested_rate_bytes_per_s,
        rates_asked=record.requested_rates_by_broker,
        rates_are_targets=compared.was is not None and compared.was.is_target("throttle_by_broker"),
        timings=ledger.run_timings(),
        caps_now=compared.caps,
        ours=set_by_plans(ledger, plan.cluster_id),
    )
    begun = moving_or_done(plan, view) if view.state.active else ()
    result = result.and_of(SETTINGS_CHECK, compared.findings(taken, begun, left.moves))
    result = replace(result, settings=compared.counting)
    result = result.and_of(POLICIES_CHECK, policy_findings(ledger, plan.cluster_id))
    result = result.and_of(CHANNELS_CHECK, channel_findings())
    evidence.record_dry_run(context, directory, result)
    return result


def policy_findings(ledger: Ledger, cluster_id: str) -> list[TypedFinding]:
    """Where connections to the cluster do not say the same: the strictest holds, and a person
    should know.
    """
    from rehome.account.clusters.cluster_evidence import policy_differences
    from rehome.execution.dry_run.typed_finding import FoundKind, TypedFinding

    subject = f"cluster {cluster_id}"
    differences = policy_differences(ledger, cluster_id)
    return [TypedFinding(FoundKind.POLICIES_DIFFER, subject, differs=each) for each in differences]


def channel_findings() -> list[TypedFinding]:
    """Channels of alerts that cannot be used: the run goes on without them, and a person should
    know.
    """
    from rehome.execution.dry_run.typed_finding import FoundKind, TypedFinding

    kind, channels = FoundKind.CHANNEL_UNUSABLE, extras().channels
    problems = (each.rstrip(".") for each in channels.problems())
    return [TypedFinding(kind, channels.setting, value=each) for each in problems]
