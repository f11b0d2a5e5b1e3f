"""What people decide by, and what proves that a task is done: files that count only as the ledger
knows them. Others may write to the warehouse, and set a task to success.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rehome.run import steps
from rehome.run.causes.errors import TaskConflictError
from rehome.run.causes.task_end import TaskEnd, TaskReason, WrittenWhen

if TYPE_CHECKING:
    from rehome.execution.dry_run.result import DryRunResult
    from rehome.ledger.store import Ledger
    from rehome.ledger.stores.approvals.written_files import DryRun
    from rehome.run.context import RunContext
    from rehome.warehouse import PlanDirectory

OF_A_PLAN = ("summary.json", "gates.json", "settings.json")
"""Files that are written once, with the plan, and that an approver reads of."""
DRY_RUN_FILE, REPORT_FILE, REQUEST_FILE = "dry_run.json", "report.html", "request.json"


class FileChangedError(TaskConflictError):
    """A file that counts is not what a task has written."""


class NotDoneError(TaskConflictError):
    """A task that comes before has left no row in the ledger, whatever its state says."""


def digest_of(text: str) -> str:
    """SHA-256 of a file that holds this."""
    return hashlib.sha256(text.encode()).hexdigest()


def digests_of(directory: PlanDirectory) -> dict[str, str]:
    """Name of each file that is written with a plan → SHA-256 of what is there."""
    return {name: directory.digest(name) for name in OF_A_PLAN if directory.exists(name)}


def of_plan(ledger: Ledger, plan_id: str, directory: PlanDirectory) -> dict[str, str]:
    """The same of a plan, as they were recorded with it; {} = an earlier Rehome recorded none.

    :raises FileChangedError: they are others by now.
    """
    recorded = ledger.recorded_files(plan_id)
    plan_files = {name: recorded[name] for name in OF_A_PLAN if name in recorded}
    if not plan_files:
        return {}
    digests = digests_of(directory)
    for name in (*plan_files, *(name for name in digests if name not in plan_files)):
        if digests.get(name) != plan_files.get(name):
            raise _changed_error(directory, name, WrittenWhen.RECORDED)
    return plan_files


def _changed_error(directory: PlanDirectory, name: str, when: WrittenWhen) -> FileChangedError:
    place = f"{directory.uri}/{name}"
    return FileChangedError(TaskEnd(TaskReason.FILE_CHANGED, place=place, why=when))


def refuse_other_request(directory: PlanDirectory, asked_for: Mapping[str, Any]) -> None:
    """See that the job that has made a plan has read the request that it was given: it says so in
    the plan's directory. What is recorded is what was asked for, never what a file says.

    :param asked_for: the parameters of the request, in full.
    :raises FileChangedError: it says something else.
    """
    if directory.read_json(REQUEST_FILE) != json.loads(json.dumps(asked_for)):
        raise _changed_error(directory, REQUEST_FILE, WrittenWhen.FOR_JOB)


def keep(ledger: Ledger, directory: PlanDirectory, plan_id: str, name: str, content: Any) -> None:
    """Write a JSON file of a plan, and record in the ledger what it holds."""
    directory.write_json(name, content)
    ledger.record_files(plan_id, {name: directory.digest(name)})


def read_kept(ledger: Ledger, directory: PlanDirectory, plan_id: str, name: str) -> Any | None:
    """The content of a file that :func:`keep` has written; None = no task has.

    :raises FileChangedError: it holds something else by now.
    """
    recorded = ledger.recorded_files(plan_id).get(name)
    return None if recorded is None else _verify(directory, name, recorded)


def _verify(directory: PlanDirectory, name: str, digest: str) -> Any:
    text = directory.read_text(name) if directory.exists(name) else ""
    if digest_of(text) != digest:
        raise _changed_error(directory, name, WrittenWhen.BY_TASK)
    return json.loads(text)


@dataclass(frozen=True, slots=True)
class Tried:
    """A dry run as the ledger knows it, with its file.

    :param content: ``dry_run.json``, which is what the dry run has written.
    """

    row: DryRun
    content: Mapping[str, Any]


def record_dry_run(
    context: RunContext,
    directory: PlanDirectory,
    result: DryRunResult,
) -> None:
    """Write ``dry_run.json``, and record that the run has tried the plan out."""
    directory.write_json(DRY_RUN_FILE, result.to_json())
    predicted = result.predicted
    _record(
        context,
        directory,
        result.plan_id,
        (result.ok, result.rate_bytes_per_s, result.rate_cause),
        moves=result.partitions,
        least_s=predicted.least_s if predicted else None,
        most_s=predicted.most_s if predicted else None,
    )


def record_tried(
    context: RunContext,
    directory: PlanDirectory,
    plan_id: str,
    content: Mapping[str, Any],
) -> None:
    """The same of new partitions, which have no throttle."""
    directory.write_json(DRY_RUN_FILE, content)
    _record(context, directory, plan_id, (content["ok"], 0, ""))


def _record(
    context: RunContext,
    directory: PlanDirectory,
    plan_id: str,
    outcome: tuple[bool, int, str],
    **tried: Any,
) -> None:
    from rehome.ledger.stores.approvals.written_files import DryRun

    run, digest = context.dag_run, directory.digest(DRY_RUN_FILE)
    context.ledger.record_dry_run(
        DryRun(plan_id, run.dag_id, run.run_id, *outcome, digest, **tried)
    )


def dry_run_of(context: RunContext, plan_id: str) -> DryRun | None:
    """How the run has tried the plan out last; None = it has not."""
    run = context.dag_run
    return context.ledger.last_dry_run(plan_id, run.dag_id, run.run_id)


def read_dry_run(context: RunContext, plan_id: str, directory: PlanDirectory) -> Tried:
    """The run's dry run of the plan.

    :raises NotDoneError: there is none.
    :raises FileChangedError: its file was changed since.
    """
    row = dry_run_of(context, plan_id)
    if row is None:
        raise not_tried_out(context, plan_id)
    return Tried(row, _verify(directory, DRY_RUN_FILE, row.digest))


def not_tried_out(context: RunContext, plan_id: str) -> TaskConflictError:
    """The error for a step that needs a dry run, where the run has made none."""
    not_tried = TaskEnd(TaskReason.NOT_TRIED_OUT, plan_id)
    return steps.not_before(context, steps.ChainStep.DRY_RUN) or NotDoneError(not_tried)


def require_dry_run(context: RunContext, plan_id: str) -> None:
    """See that the run has tried the plan out, and that nothing stops it.

    :raises NotDoneError: it has not, or something does.
    """
    row = dry_run_of(context, plan_id)
    if row is None:
        raise not_tried_out(context, plan_id)
    if not row.ok:
        raise NotDoneError(TaskEnd(TaskReason.TRY_REFUSED, plan_id))
