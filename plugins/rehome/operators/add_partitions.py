"""More partitions for topics: placed, tried out, approved, created, reported."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.utils.skipmixin import SkipMixin

from rehome import installation
from rehome.domain.clock import utc_now
from rehome.domain.run.causes.cause import CauseKind
from rehome.errors import STEP_UNCHANGED
from rehome.executors import refuse_unshared
from rehome.fleet import bound
from rehome.operators.approval.asking import ASKED_AGAIN, AskingOperator
from rehome.operators.base import ClusterOperator
from rehome.operators.dry_run import REMEDIES_NAMED
from rehome.run import (
    approval_terms,
    evidence,
    plan_ids,
    recorded_plans,
    run_authority,
    run_params,
    run_request,
)
from rehome.run.asking import hitl
from rehome.run.authority import own_snapshot
from rehome.run.causes.errors import EndedError
from rehome.run.causes.recorded import tell_kind
from rehome.run.evidence import REPORT_FILE

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from rehome.cluster.snapshot.model import Snapshot
    from rehome.domain.kafka import TopicPartition
    from rehome.domain.request.partition_counts import AddedPartitions, PartitionCountsRequest
    from rehome.execution.access.connection_policy import ConnectionPolicy

NEW_PARTITIONS_FILE = "new_partitions.json"
APPROVE_TASK = "approve"


def _request(context: Context) -> PartitionCountsRequest:
    from rehome.domain.request.limits import with_limits
    from rehome.domain.request.partition_counts import parse_partition_counts

    settings = installation.settings()
    return with_limits(
        parse_partition_counts(context["params"]), settings.caps, settings.broker_sets
    )


def _placed(context: Context) -> AddedPartitions:
    """What the task `place` has placed.

    :raises NotDoneError: it has not. :raises FileChangedError: something else has written the file.
    """
    from rehome.domain.request.partition_counts import AddedPartitions

    plan_id = plan_ids.plan_id_of(context)
    with installation.open_ledger() as ledger:
        directory = recorded_plans.plan_directory(context)
        content = evidence.kept(ledger, directory, plan_id, NEW_PARTITIONS_FILE)
    if content is None:
        raise evidence.NotDoneError(
            f"The ledger has no placement {plan_id}, so the task place is not done, whatever its "
            "state says",
            state_left=STEP_UNCHANGED,
            next_step="Clear the task place, with what comes after it.",
        )
    return AddedPartitions.from_json(content)


def _terms(plan: AddedPartitions) -> dict[str, Any]:
    """What is approved: all of the placement, by its hash, and what people read of it."""
    return {
        "plan_hash": plan.plan_hash,
        "totals": plan.totals,
        "new_topics": plan.to_json()["new_topics"],
    }


def _begun(context: Context) -> bool:
    """Whether the run has sent its partitions to the controller: then tasks that come before that,
    and are cleared, leave the placement as it is.
    """
    from rehome.domain.run.event_kind import EventKind

    with installation.open_ledger() as ledger:
        events = ledger.events(plan_ids.plan_id_of(context))
    return any(event.kind is EventKind.ADDING_PARTITIONS for event in events)


def _refuse_rejected(plan_id: str) -> None:
    """See that no person has rejected the placement, or another one of the same run: a run that is
    cleared asks nobody else.

    :raises PlanConflictError: a person has.
    """
    from rehome.domain.run.approval.questions import AnswerKind
    from rehome.errors import PlanConflictError

    with installation.open_ledger() as ledger:
        for each in ledger.questions(plan_id):
            if each.answered is not None and each.answered.answer is AnswerKind.REJECTED:
                raise PlanConflictError(
                    f"{each.answered.by} has rejected the new partitions {plan_id}, and no other "
                    "person is asked in this run",
                    state_left="No partition was created.",
                    next_step="If they are still wanted, trigger a new run: it places them anew, "
                    "and asks "
                    "anew.",
                )


def _newest_snapshot(plan: AddedPartitions) -> Snapshot:
    """The newest of the cluster: days may lie between the placement and this.

    :raises PlanConflictError: there is no snapshot by which to judge it.
    """
    from rehome.errors import PlanConflictError
    from rehome.warehouse import read_snapshot

    with installation.open_ledger() as ledger:
        newest = ledger.newest_snapshot(plan.cluster_id)
    if newest is None:
        raise PlanConflictError(
            f"The ledger has no snapshot of cluster {plan.cluster_id} any more, so it is not known "
            "whether the placement keeps the caps and broker sets that hold now",
            state_left="No partition was created.",
            next_step="Trigger a new run: it takes a snapshot and places the partitions anew.",
        )
    return read_snapshot(own_snapshot.unchanged(newest))


def _broken_limits(context: Context, plan: AddedPartitions) -> list[str]:
    """Caps and broker sets of now that the placement breaks, by the newest snapshot."""
    from rehome.planning.placement.add_partitions import broken_by_placed

    return broken_by_placed(_newest_snapshot(plan), plan, _request(context))


def _off_racks(context: Context, plan: AddedPartitions) -> list[TopicPartition]:
    """New partitions whose replicas a person has chosen against the racks of now."""
    from rehome.planning.placement.add_partitions import unevenly_placed

    return unevenly_placed(_newest_snapshot(plan), plan, _request(context))


class PlacePartitionsOperator(ClusterOperator):
    """Decides where new partitions go, by the planner's own placement. Returns the file's URI."""

    def step(self, context: Context) -> str:
        """Read the snapshot, place, keep the result."""
        from rehome.planning.placement.add_partitions import place
        from rehome.warehouse import read_snapshot

        refuse_unshared(context, installation.settings())
        plan_id = plan_ids.plan_id_of(context)
        if _begun(context):
            self.log.info("Creating the partitions has begun: their placement stays.")
            return f"{recorded_plans.plan_directory(context).uri}/{NEW_PARTITIONS_FILE}"
        run_authority.refuse_unasked(context)
        plan = place(read_snapshot(own_snapshot.uri_of(context)), _request(context), plan_id)
        for partition, replicas in sorted(plan.assignments.items()):
            self.log.info("%s: %s", partition, list(replicas))
        self.log.info("%d new partitions, hash %s", len(plan.assignments), plan.plan_hash)
        directory = recorded_plans.plan_directory(context)
        with installation.open_ledger() as ledger:
            evidence.keep(ledger, directory, plan_id, NEW_PARTITIONS_FILE, plan.to_json())
        return f"{directory.uri}/{NEW_PARTITIONS_FILE}"


class TryPartitionsOperator(ClusterOperator, SkipMixin):
    """Validate-only: rights, live brokers, drift, and the controller's own verdict.

    Writes the report. With the parameter ``dry_run`` the run ends here.
    """

    inherits_from_skipmixin = True

    def step(self, context: Context) -> str:
        """Ask, report, and either go on or stop here."""
        from rehome.domain.run.findings import Severity
        from rehome.execution.access.connection_policy import ADD_PARTITIONS
        from rehome.execution.access.own_cluster import OwnCluster
        from rehome.execution.create_partitions import broken_findings, check, rack_findings
        from rehome.reporting.added_partitions import partitions_report

        plan, directory = _placed(context), recorded_plans.plan_directory(context)
        if _begun(context):
            self.log.info("Creating the partitions has begun: there is nothing to try out.")
            return f"{directory.uri}/{REPORT_FILE}"
        if not _request(context).dry_run:
            policy = self.policy_on(plan.cluster_id)
            policy.require(ADD_PARTITIONS, None, utc_now())
        with installation.open_ledger() as ledger, self.gateway() as cluster:
            active = ledger.active_plan(plan.cluster_id)
            own = OwnCluster.of(cluster, plan.cluster_id, plan.plan_id)
            found_id = own.describe_cluster().cluster_id
            bound.require(ledger, self.kafka_config_id, found_id, context)
            found = check(plan, own, active_plan=active.plan_id if active else None)
        found += [*broken_findings(_broken_limits(context, plan))]
        found += rack_findings(_off_racks(context, plan))
        for finding in found:
            self.log.info("%s", finding)
        errors = [str(item) for item in found if item.severity is Severity.ERROR]
        content = {"ok": not errors, "findings": [str(item) for item in found]}
        with installation.open_ledger() as ledger:
            evidence.record_tried(context, ledger, directory, plan.plan_id, content)
        uri = directory.write_text(REPORT_FILE, partitions_report(plan, found))
        self.log.info("Report: %s", uri)
        if errors:
            problems = "\n".join(errors)
            raise EndedError(
                CauseKind.DRY_RUN,
                f"The dry run refuses the new partitions:\n{problems}",
                state_left="No partition and no topic was created.",
                next_step=REMEDIES_NAMED,
            )
        if _request(context).dry_run:
            self.log.info("Dry run: nothing was changed.")
            self.skip(ti=context["ti"], tasks=context["task"].get_flat_relatives(upstream=False))
        return uri


class ApprovePartitionsOperator(AskingOperator):
    """Waits for a person's approval where the parameter ``approval`` asks for it.

    The approval is bound to the hash of what was placed, and is a row of the ledger.
    """

    ui_color = "#f3e2e9"

    def __init__(self, **kwargs: Any):
        asking = {"retries": ASKED_AGAIN, "retry_delay": timedelta(seconds=2)}
        super().__init__(subject="Approve the new partitions?", **{**kwargs, **asking})

    def step(self, context: Context) -> Any:
        """Wait, or record that no person has to be asked."""
        from rehome.domain.run.approval.questions import NoQuestion
        from rehome.domain.run.askers import Askers

        plan = _placed(context)
        if _begun(context):
            return None
        _refuse_rejected(plan.plan_id)
        evidence.require_dry_run(context, plan.plan_id)
        asked = _request(context).approval or run_request.policy_of(context).approval
        askers, terms = Askers(run_params.actor_of(context)), _terms(plan)
        about = (context, terms, plan.plan_hash, askers, plan.cluster_id)
        if not asked:
            self.not_asked(*about, NoQuestion.NOT_REQUIRED)
            return None
        directory = recorded_plans.plan_directory(context)
        report = f"{directory.uri}/{REPORT_FILE}"
        body = _approval_text(plan, report, self.asked_before(context))
        files = {REPORT_FILE: directory.digest(REPORT_FILE)}
        return self.ask(*about, body=body, other=[self.REJECT], files=files)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Record who decided what. Of the event, only what Airflow itself has recorded counts."""
        from rehome.domain.run.approval.questions import AnswerKind
        from rehome.domain.run.askers import Askers
        from rehome.execution.access.connection_policy import PolicyError

        answer = hitl.answer_in(event)
        asked = self.open_question(context, answer)
        if answer.option == self.REJECT:
            self.record(asked, answer, AnswerKind.REJECTED)
            text = f"The new partitions were rejected by {answer.by}"
            tell_kind(context, CauseKind.REJECTED, text, "No partition was created.")
            self.options = [self.APPROVE, self.REJECT]
            return super().execute_complete(context, event)
        if not self.approves(context, asked, answer) or answer.by is None:
            self.ask_again(context, asked, answer, "it names no option that there was.")
        try:
            now_asked = Askers(run_params.actor_of(context))
            approval_terms.refuse_own_approval(context, answer.by, asked.question.askers, now_asked)
        except PolicyError as error:
            self.record(asked, answer, AnswerKind.NOT_COUNTED, error.what)
            raise
        plan, directory = _placed(context), recorded_plans.plan_directory(context)
        if _terms(plan) != asked.question.terms:
            self.ask_again(context, asked, answer, "the placement is another one by now.")
        if self.changed_files(directory, asked):
            self.ask_again(context, asked, answer, f"{REPORT_FILE} is not what was linked.")
        self.record(asked, answer, AnswerKind.APPROVED)
        self.log.info("%s approved by %s", plan.plan_id, answer.by)
        return None


def _approval_text(plan: AddedPartitions, report: str, again: str) -> str:
    """The text of the request for approval, as Markdown."""
    from rehome.domain.text import count_text

    lines = [again, ""] if again else []
    for topic, total in plan.totals.items():
        new = topic in plan.new_topics
        has = count_text(total, "partition")
        lines.append(f"- {topic}: {has}{' (a new topic)' if new else ''}")
        configs = plan.new_topics.get(topic, {})
        lines += [f"    - {name} = {value}" for name, value in sorted(configs.items())]
    lines += [f"- report, with the brokers of each: {report}", f"- hash `{plan.plan_hash}`"]
    return "\n".join(lines)


class CreatePartitionsOperator(ClusterOperator):
    """Creates the partitions where they were placed, and proves it by reading.

    A retry creates nothing twice. What was approved, and by whom, is read from the ledger alone.
    """

    def step(self, context: Context) -> None:
        """Create, prove, write the event, complete the report."""
        from rehome.domain.run.event_kind import EventKind
        from rehome.execution.access.connection_policy import ADD_PARTITIONS
        from rehome.execution.access.own_cluster import OwnCluster
        from rehome.execution.create_partitions import create, refuse_broken
        from rehome.reporting.added_partitions import partitions_report

        plan, directory = _placed(context), recorded_plans.plan_directory(context)
        text = ", ".join(f"{topic}: {total}" for topic, total in plan.totals.items())
        who = {"actor": run_params.actor_of(context), "cluster_id": plan.cluster_id}
        policy = self.policy_on(plan.cluster_id)
        policy.require(ADD_PARTITIONS, None, utc_now())
        # Also where creating them has begun: a run that was deleted and triggered again by another
        # person has the same id.
        self._require_approval(context, plan, policy)
        if not _begun(context):
            run_authority.refuse_unasked(context)
            evidence.require_dry_run(context, plan.plan_id)
            refuse_broken(_broken_limits(context, plan))
        with installation.open_ledger() as ledger, self.gateway() as cluster:
            own = OwnCluster.of(cluster, plan.cluster_id, plan.plan_id)
            found_id = own.describe_cluster().cluster_id
            bound.require(ledger, self.kafka_config_id, found_id, context)
            ledger.add_event(EventKind.ADDING_PARTITIONS, text, plan_id=plan.plan_id, **who)
            created = create(plan, own)
            ledger.add_event(EventKind.PARTITIONS_ADDED, text, plan_id=plan.plan_id, **who)
        directory.write_text(REPORT_FILE, partitions_report(plan, (), created=True))
        self.log.info("%d partitions created and led: %s", len(created), text)

    def _require_approval(
        self, context: Context, plan: AddedPartitions, policy: ConnectionPolicy
    ) -> None:
        """See that the run's task `approve` is done by the ledger, for this placement.

        :raises NotDoneError: it is not.
        :raises PlanConflictError: a person has rejected it.
        :raises PolicyError: the policy wants a person, or another one.
        """
        from rehome.domain.run.approval.questions import AnswerKind
        from rehome.domain.run.askers import Askers

        _refuse_rejected(plan.plan_id)
        run = context["dag_run"]
        with installation.open_ledger() as ledger:
            asked = ledger.last_question(plan.plan_id)
        answered = None if asked is None else asked.answered
        what = None if answered is None else answered.answer
        own = asked is not None and (asked.question.dag_id, asked.question.run_id) == (
            run.dag_id,
            run.run_id,
        )
        needed = _request(context).approval or policy.approval
        if asked is None or not own or what not in (AnswerKind.APPROVED, AnswerKind.NOT_ASKED):
            raise _not_approved(plan.plan_id, "nobody has answered the question of the run")
        if asked.question.askers.plan != run_params.actor_of(context):
            raise _not_approved(plan.plan_id, "another person has asked for what was approved")
        lasting = timedelta(seconds=installation.settings().approval_lasts_s)
        if utc_now() >= (asked.recorded_at or asked.shown_at) + lasting:
            raise _not_approved(plan.plan_id, "what the ledger has was approved too long ago")
        if asked.question.terms != _terms(plan):
            raise _not_approved(plan.plan_id, "the ledger has an approval of another placement")
        person = None if answered is None else answered.by
        askers = Askers(run_params.actor_of(context))
        for each in (askers, asked.question.askers):
            names = frozenset[str]() if person is None else person.names
            name = None if person is None else person.name or person.id
            policy.require_approver(name, each, *names)
        if needed and person is None:
            raise _not_approved(plan.plan_id, "no person was asked, and one has to be")


def _not_approved(plan_id: str, why: str) -> evidence.NotDoneError:
    return evidence.NotDoneError(
        f"New partitions {plan_id} are not approved: {why}. The task {APPROVE_TASK} is not done, "
        "whatever its state says",
        state_left="No partition was created.",
        next_step=f"Clear the task {APPROVE_TASK}, with what comes after it: it asks.",
    )
