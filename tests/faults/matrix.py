"""The fault matrix: which fault happens at which moment of a run; what is left out, and why."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass


class Moment(enum.StrEnum):
    """Where a run is struck. Ledger write and RPC are those of an admission."""

    BEFORE_LEDGER = "before the ledger write"
    BEFORE_RPC = "between ledger write and RPC"
    AFTER_RPC = "after the RPC"
    DEFERRED = "while deferred"
    CLEARING = "during clearing"


class Fault(enum.StrEnum):
    """What happens there."""

    KILLED = "SIGKILL of the process"
    EXCEPTION = "exception"
    NO_REPLY = "time-out: the request or its reply is lost"
    NOT_CONTROLLER = "NOT_CONTROLLER"
    CONTROLLER_RESTARTED = "controller killed and restarted"
    DESTINATION_LOST = "destination killed for good"
    DESTINATION_RESTARTED = "destination killed and restarted"
    LEADER_KILLED = "source leader killed"
    DESTINATION_STOPPED = "destination stopped for 30 s"
    LEADER_STOPPED = "source leader stopped for 30 s"
    BYSTANDER_KILLED = "broker killed whose replicas stay"
    TOPIC_DELETED = "topic deleted"
    TOPIC_CREATED = "topic created on the broker that is emptied"
    FOREIGN_REASSIGNMENT = "foreign reassignment of another partition"
    SUPERSEDED = "foreign reassignment of a partition of the plan"
    FOREIGN_THROTTLE = "foreign throttles added"
    THROTTLES_DELETED = "throttles deleted by kafka-reassign-partitions"
    LEDGER_LOCKED = "ledger locked"
    LEDGER_AWAY = "ledger unavailable"
    WAREHOUSE_AWAY = "run ended early, and the warehouse is away"
    CLEARED_SNAPSHOT = "Clear of snapshot"
    CLEARED_PLAN = "Clear of plan"
    CLEARED_DRY_RUN = "Clear of dry_run"
    CLEARED_APPROVE = "Clear of approve"
    CLEARED_THROTTLE = "Clear of throttle"
    CLEARED_EXECUTE = "Clear of execute"
    CLEARED_PROGRESS = "Clear of progress"
    CLEARED_CLEAR_THROTTLE = "Clear of clear_throttle"
    CONNECTION_EDITED = "connection edited: it leads to another cluster"
    RIGHTS_REVOKED = "Describe right of a topic revoked, and every other one of it"

    @property
    def cleared(self) -> str:
        """The task that is cleared, with what comes after it; "" = none is."""
        return self.value.partition("Clear of ")[2]

    @property
    def by_operators(self) -> bool:
        """Whether the operators themselves are called: it is about what they do when cleared."""
        return bool(self.cleared) or self in (Fault.WAREHOUSE_AWAY, Fault.CONNECTION_EDITED)


@dataclass(frozen=True, slots=True)
class Case:
    """One cell of the matrix.

    :param log_dirs: the plan copies between log dirs of brokers, and not between brokers.
    """

    fault: Fault
    moment: Moment
    log_dirs: bool = False

    @property
    def id(self) -> str:
        """As pytest names it."""
        within = "-log_dirs" if self.log_dirs else ""
        return f"{self.fault.name}-{self.moment.name}{within}".lower()


@dataclass(frozen=True, slots=True)
class Row:
    """A fault at every moment of a plan that copies between brokers, or between log dirs."""

    fault: Fault
    log_dirs: bool = False

    @property
    def title(self) -> str:
        """As the table has it."""
        return f"{self.fault}{' (between log dirs)' if self.log_dirs else ''}"

    @property
    def cases(self) -> tuple[Case, ...]:
        """A cell per moment, those that are left out, too."""
        return tuple(Case(self.fault, moment, self.log_dirs) for moment in Moment)


_RACE = (
    "Kafka has no conditional reassignment: the request replaces a reassignment that another "
    "client starts between the poll and the request, and Rehome cannot detect it"
)
_NOT_BEGUN = "the task has not begun by then"
_IN_EXECUTE = (Moment.BEFORE_LEDGER, Moment.BEFORE_RPC, Moment.AFTER_RPC)
LEFT_OUT: Mapping[Case, str] = {
    Case(Fault.NO_REPLY, Moment.BEFORE_LEDGER): "no request that changes anything is under way",
    Case(Fault.NO_REPLY, Moment.DEFERRED): "the trigger only reads, unless it stops the plan",
    Case(
        Fault.NOT_CONTROLLER, Moment.AFTER_RPC
    ): "a controller that answers so has applied nothing",
    Case(Fault.SUPERSEDED, Moment.BEFORE_LEDGER): _RACE,
    Case(Fault.SUPERSEDED, Moment.BEFORE_RPC): _RACE,
    **{
        Case(Fault.WAREHOUSE_AWAY, moment): "tasks that act read the plan's files as they begin"
        for moment in Moment
        if moment is not Moment.CLEARING
    },
    **{Case(Fault.CLEARED_PROGRESS, moment): _NOT_BEGUN for moment in _IN_EXECUTE},
    **{
        Case(Fault.CLEARED_CLEAR_THROTTLE, moment): _NOT_BEGUN
        for moment in Moment
        if moment is not Moment.CLEARING
    },
}
ROWS = (
    *map(Row, Fault),
    Row(Fault.KILLED, log_dirs=True),
    Row(Fault.EXCEPTION, log_dirs=True),
)
CASES = tuple(case for row in ROWS for case in row.cases if case not in LEFT_OUT)
QUICK = frozenset(
    {
        Case(Fault.KILLED, Moment.AFTER_RPC),
        Case(Fault.NO_REPLY, Moment.CLEARING),
        Case(Fault.SUPERSEDED, Moment.DEFERRED),
        Case(Fault.LEDGER_LOCKED, Moment.BEFORE_LEDGER),
    }
)
# Each at another moment: the process fails, then the cluster, other clients act, the ledger fails.
"""In ``make test``; all of them are in ``make test-faults``."""
