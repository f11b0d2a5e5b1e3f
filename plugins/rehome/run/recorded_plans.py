"""The run's plan as it was recorded, and its files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rehome import installation
from rehome.domain.request.parse_request import parse_request
from rehome.errors import PlanConflictError, RehomeError
from rehome.execution.observation.drift import LimitsBrokenError
from rehome.fleet import plan_settings
from rehome.run.authority import own_snapshot
from rehome.run.causes.errors import TaskConflictError
from rehome.run.causes.task_end import TaskEnd, TaskReason

if TYPE_CHECKING:
    from rehome.domain.plan.move import Move
    from rehome.domain.plan.plan import Plan
    from rehome.domain.request.request import ReassignmentRequest
    from rehome.ledger.base.records import PlanRecord
    from rehome.ledger.store import Ledger
    from rehome.run.context import RunContext
    from rehome.warehouse import PlanDirectory


def recorded_plan(ledger: Ledger, plan_id: str) -> PlanRecord | None:
    """What the ledger knows of a plan; None where the run ended before there was one."""
    try:
        return ledger.plan(plan_id)
    except PlanConflictError:
        return None


def recorded_moves(ledger: Ledger, record: PlanRecord) -> Plan:
    """The plan that was recorded, to act on: what was approved is what runs.

    :raises PlanChangedError: its files hold another one by now.
    :raises PlanConflictError: they were made to be recorded in another ledger.
    :raises RehomeError: they are not there.
    """
    from rehome.domain.plan.plan_hash import refuse_changed

    plan = installation.warehouse().plan_at(record.plan_dir).load()
    refuse_changed(plan, record.plan_id, record.plan_hash)
    made_for = plan.summary.ledger_id
    if made_for not in ("", ledger.ledger_id):  # "": an earlier version of Rehome made it
        raise TaskConflictError(
            TaskEnd(
                TaskReason.OTHER_LEDGER,
                plan.plan_id,
                place=record.plan_dir,
                ledger_id=ledger.ledger_id,
                other_id=made_for,
            )
        )
    return plan


def moves_by_files(ledger: Ledger, plan_id: str, digest: str) -> Sequence[Move] | None:
    """Moves of a plan that was made for a ledger which does not know it any more, for it was
    restored from an earlier backup.

    :param digest: the beginning of its hash, as the cluster has it.
    :return: None = its files are not there, hold another plan, or are another ledger's.
    """
    from rehome.domain.plan.plan_hash import hash_of

    try:
        plan = installation.warehouse().plan(plan_id).load()
    except RehomeError:
        return None
    if plan.summary.ledger_id != ledger.ledger_id or not digest:
        return None
    return plan.moves if hash_of(plan).startswith(digest) else None


def recorded_request(record: PlanRecord) -> ReassignmentRequest:
    """What a plan was asked for; its window may be over by now."""
    return parse_request(record.request, recorded=True)


def refuse_changed_files(plan: Plan, directory: PlanDirectory) -> None:
    """See that Kafka's files, which people read and may use, say what is about to run.

    :raises PlanChangedError: they were changed since the gate checked them.
    """
    from rehome.domain.plan.kafka_json import KafkaFiles, refuse_other_files

    expected = KafkaFiles.of(plan.moves).digests()
    refuse_other_files(plan.plan_id, directory.file_digests(), expected)


def refuse_broken_limits(context: RunContext, plan_id: str) -> None:
    """See that what waits for the window keeps the caps and broker sets of now. The dry run
    looks again, by the snapshot that is about to be taken.

    :raises LimitsBrokenError: it does not.
    """
    from rehome.execution.control.resume import moving_or_done, not_started
    from rehome.warehouse import read_snapshot

    ledger = context.ledger
    record, view = ledger.plan(plan_id), ledger.view(plan_id)
    compared = plan_settings.ComparedSettings.of(
        context.warehouse.plan_at(record.plan_dir),
        record.action,
        context.connection,
        begun=record.state.active,
    )
    latest = ledger.newest_snapshot(record.cluster_id)
    if compared.limited and latest is not None:
        plan = recorded_moves(ledger, record)
        left, begun = not_started(plan, view).moves, moving_or_done(plan, view)
        snapshot = read_snapshot(own_snapshot.require_unchanged(latest))
        broken = compared.broken_limits(snapshot, begun, left)
        if broken:
            raise LimitsBrokenError(plan_id, broken)
