"""What people's own tasks change by the hook, in the audit and among the events of the cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context

from rehome import installation
from rehome.domain.kafka import BrokerError
from rehome.domain.run.event_kind import EventKind
from rehome.domain.text import count_text
from rehome.execution.foreign.in_flight import in_flight_of_plans
from rehome.ledger.base.audit_entry import AuditEntry, Decided, Door
from rehome.ledger.base.database import LedgerNotOpenError, LedgerUnavailableError
from rehome.run.context import RunContext

if TYPE_CHECKING:
    from rehome.cluster.gateway import ClusterGateway
    from rehome.domain.kafka import OngoingReassignment, TopicPartition

_NAMED = 10
"""Items that a row names; it counts all."""


class DirectCall:
    """A call that changes a cluster.

    :param call: the hook's verb; ``of``: what it is about.
    :param more: what else the audit's row holds.
    """

    def __init__(self, call: str, of: Collection[Any], more: Mapping[str, Any]) -> None:
        self.call, self._of = call, sorted(map(str, of))
        self.detail = {
            "call": call,
            "of": self._of[:_NAMED],
            "count": len(of),
            **{name: value for name, value in more.items() if value},
        }
        self.outcome = "its answer is not known"

    @property
    def text(self) -> str:
        """``elect_leaders of orders-0``."""
        more = len(self._of) - _NAMED
        names = ", ".join(self._of[:_NAMED]) + (f" and {more} more" if more > 0 else "")
        return f"{self.call} of {names}"

    def note_answer(self, verdicts: Mapping[Any, BrokerError | None]) -> None:
        """Note what became of it, by the answer."""
        refusals = {str(item): error for item, error in verdicts.items() if error is not None}
        self.outcome = f"{len(verdicts) - len(refusals)} of {len(verdicts)} accepted"
        for item, error in sorted(refusals.items())[:_NAMED]:
            self.outcome += f"; {item}: {error}"

    def note_done(self, configs: int, what: str) -> None:
        """Note what became of configurations."""
        self.outcome = f"{count_text(configs, 'configuration')} {what}"


@contextmanager
def changing(
    cluster: ClusterGateway, call: str, of: Collection[Any], *, stops: bool = False, **more: Any
) -> Iterator[DirectCall]:
    """Record a call in the ledger: before it is sent, and what became of it.

    :param stops: it takes something back: then it is recorded when it is done, so that a ledger
        that is away does not keep it from being done.
    :raises LedgerError: the ledger is away. What does not stop anything has not been sent then.
    """
    change = DirectCall(call, of, more)
    about = {"cluster_id": cluster.describe_cluster().cluster_id}
    entry = _entry(change, about["cluster_id"])
    if not stops:
        with installation.open_ledger() as ledger:
            ledger.add_audit(entry)
            ledger.add_event(EventKind.DIRECT_CHANGE, f"{change.text}: it is asked for", **about)
    try:
        yield change
    finally:
        with installation.open_ledger() as ledger:
            if stops:
                ledger.add_audit(entry)
            ledger.add_event(EventKind.DIRECT_CHANGE, f"{change.text}: {change.outcome}", **about)


def plans_in_flight(
    cluster_id: str, ongoing: Mapping[TopicPartition, OngoingReassignment]
) -> dict[TopicPartition, str] | None:
    """Which plans have started what is in flight; None = the ledger is away, which keeps no caller
    from cancelling its own.
    """
    try:
        with installation.open_ledger() as ledger:
            starts = ledger.open_starts(cluster_id)
    except (LedgerNotOpenError, LedgerUnavailableError):
        return None
    return {part: start.plan_id for part, start in in_flight_of_plans(starts, ongoing).items()}


def _entry(change: DirectCall, cluster_id: str) -> AuditEntry:
    """Of the task that runs; outside of one, it is not known who calls."""
    try:
        context = RunContext(get_current_context())
    except RuntimeError:  # Airflow's own word for: no task runs here
        return AuditEntry(
            Decided.CHANGED_DIRECTLY, Door.TASK, cluster_id=cluster_id, detail=change.detail
        )
    run = context.dag_run
    with context:
        who = context.asker
    return AuditEntry(
        Decided.CHANGED_DIRECTLY,
        Door.TASK if who.person else Door.SCHEDULE,
        user_name=who.person,
        dag_id=run.dag_id,
        run_id=run.run_id,
        task_id=context.task_id,
        cluster_id=cluster_id,
        detail=change.detail,
    )
