"""Has whatever ends or refuses a run be known: the one way out of every task of Rehome's.

A cause goes to three places, so that one of them is there when another is away: to the task's log;
to an XCom of the task, from which the scheduler makes the run's note; and to the ledger, where the
alert, the report and the page read it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
    AirflowTaskTimeout,
    DagRunTriggerException,
    DownstreamTasksSkipped,
)

from rehome.domain.clock import utc_now
from rehome.domain.run.causes.cause import Cause, CauseKind, most_specific
from rehome.errors import RehomeError, sentence
from rehome.fleet.clusters import base_of
from rehome.run.causes.errors import AskedAgainError
from rehome.run.causes.task_end import TaskEnd, TaskReason
from rehome.run.words.job_words import LOG_HAS_ALL
from rehome.run.words.worded import ended_text

if TYPE_CHECKING:
    from rehome.run.context import RunContext

CAUSE_XCOM = "rehome_cause"
"""Key of the XCom of a task that holds its cause."""
_LONGEST = 4000

log = logging.getLogger(__name__)


@contextmanager
def record_cause(context: RunContext) -> Iterator[None]:
    """Record what ends the task, and turn Rehome's errors into Airflow's: one sentence in the log,
    before any traceback. An error that another attempt would meet again fails the task at once.
    """
    from rehome.run.causes.kinds import is_final

    try:
        yield
    except (AirflowSkipException, AskedAgainError):
        raise
    except (DagRunTriggerException, DownstreamTasksSkipped):
        _over(context)
        raise
    except RehomeError as error:
        log.error("%s", error)
        tell(context, cause_of(error, context))
        raise (AirflowFailException if is_final(error) else AirflowException)(str(error)) from None
    except (Exception, AirflowTaskTimeout) as error:
        tell(context, cause_of(error, context))
        raise
    else:
        _over(context)


def cause_of(error: BaseException, context: RunContext) -> Cause:
    """What an error says, as a cause."""
    from rehome.run.causes.kinds import kind_of

    kind = kind_of(error)
    if isinstance(error, RehomeError):
        return _cause(context, kind, error.what, error.state_left, error.next_step)
    first = next(iter(str(error).strip().splitlines()), "")
    error_name = type(error).__name__
    task = context.task_id
    text = f"{error_name}: {first}" if first else error_name
    return _cause(context, kind, text, "", LOG_HAS_ALL.format(task=task))


def tell_end(context: RunContext, end: TaskEnd) -> None:
    """Record what ends a run without an error of the task's: a person's answer."""
    tell(context, _cause(context, end.reason.cause, *ended_text(end)))


def tell(context: RunContext, cause: Cause) -> None:
    """Record a cause wherever that is possible. What is not, is in the log, with the cause."""
    try:
        context.ti.xcom_push(CAUSE_XCOM, cause.to_json())
    except Exception as error:  # noqa: BLE001 - whatever it is, the task's own error counts more
        log.warning("The run's note cannot have what ended it (%r): %s", error, cause)
    try:
        record(context, cause)
    except Exception as error:  # noqa: BLE001 - as above
        log.warning("The ledger cannot have what ended the run (%s): %s", error, cause)


def of_run(context: RunContext, *, away: bool = False) -> Cause | None:
    """The most specific cause of the context's run; None = no task has said one.

    :param away: whether the ledger is: then what tasks have left in Airflow counts.
    """
    run = context.dag_run
    cause = None if away else context.ledger.cause_of(run.dag_id, run.run_id)
    return cause or most_specific(_of_xcoms(context))


def silent(context: RunContext) -> Cause | None:
    """The task of the context's run that has failed and left no reason; None = Airflow knows of
    none, or cannot be asked.
    """
    ti, run = context.ti, context.dag_run
    dag: Any = context.dag
    try:
        of_runs: Mapping[str, Mapping[str, Any]] = ti.get_task_states(
            dag_id=run.dag_id, run_ids=[run.run_id]
        )
    except Exception as error:  # noqa: BLE001 - Airflow cannot be asked
        log.warning("Which task has failed is not known: %r", error)
        return None
    states = of_runs.get(run.run_id, {})
    order = dag.topological_sort() if dag is not None else ()
    names = [str(task.task_id) for task in order if states.get(task.task_id) == "failed"]
    return silent_cause(names[0], utc_now(), context.cleared) if names else None


def silent_cause(task_id: str, at: datetime, cleared: int) -> Cause:
    """What is known of a task that has failed and left no reason."""
    text, left, remedy = ended_text(TaskEnd(TaskReason.SILENT, task=task_id))
    return Cause(CauseKind.SILENT, text, left, remedy, at, task_id, cleared=cleared)


def _of_xcoms(context: RunContext) -> Iterator[Cause]:
    """What tasks have left in Airflow; of a task whose later attempt has succeeded, nothing."""
    ti: Any = context.ti
    for task_id in getattr(context.dag, "task_ids", ()) if ti is not None else ():
        try:
            yield Cause.from_json(ti.xcom_pull(task_ids=task_id, key=CAUSE_XCOM))
        except (KeyError, ValueError, TypeError):
            continue  # it has left none
        except Exception as error:  # noqa: BLE001 - Airflow cannot be asked
            log.warning("What the task %s has said is not known: %r", task_id, error)
            return


def record(context: RunContext, cause: Cause) -> None:
    """Write a cause of the context's run to the ledger."""
    from rehome.ledger.stores.by_run.causes import EndedRun

    run = context.dag_run
    connection = context.given.get("kafka_config_id")
    context.ledger.record_cause(
        EndedRun(run.dag_id, run.run_id, cause, _plan_id(context), connection or None)
    )


def _plan_id(context: RunContext) -> str | None:
    """Of the plan that the run is about; None = of none."""
    makes = base_of(context.dag_run.dag_id) in ("reassign_partitions", "rebalance_in_window")
    try:
        return context.plan_id if makes else context.named_plan_id
    except RehomeError:
        return None  # its parameters name none that there can be


def _over(context: RunContext) -> None:
    """The task has succeeded: what its earlier attempts have said is over."""
    attempt = _attempt(context)
    if attempt <= 1:
        return
    run = context.dag_run
    try:
        context.ledger.causes_over(run.dag_id, run.run_id, context.task_id, attempt)
    except RehomeError as error:
        log.warning("That what failed before is over could not be recorded: %s", error)


def _cause(context: RunContext, kind: CauseKind, text: str, left: str, remedy: str) -> Cause:
    return Cause(
        kind,
        sentence(text[:_LONGEST]),
        sentence(left[:_LONGEST]) if left else "",
        sentence(remedy[:_LONGEST]) if remedy else "",
        utc_now(),
        context.task_id,
        _attempt(context),
        context.cleared,
    )


def _attempt(context: RunContext) -> int:
    return int(getattr(context.ti, "try_number", 1) or 1)
