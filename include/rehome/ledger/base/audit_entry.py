"""What the audit holds: decisions of people, and of programs in a person's name, as values."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


class Door(enum.StrEnum):
    """How a decision came in. The values are in the ledger's rows: they never change."""

    PAGE = "page"
    """Rehome's own routes of Airflow's API server: the page, and what it calls."""
    AIRFLOW_API = "airflow api"
    """Airflow's own API or pages, seen as the request came in."""
    TASK = "task"
    """A task of a run: what Airflow keeps of who has triggered it, or has answered its question."""
    CLI = "cli"
    """A command on a machine of the installation."""
    SCHEDULE = "schedule"
    """No person: a schedule, or watching, by what people have set."""


class Decided(enum.StrEnum):
    """What was decided. The values are in the ledger's rows: they never change."""

    TRIGGERED = "triggered"
    """A run was asked for."""
    PLANNED = "planned"
    """A plan was made for who asked for its run."""
    APPROVED = "approved"
    """A person has approved what was shown."""
    REJECTED = "rejected"
    """A person has rejected it."""
    SENT_BACK = "sent back"
    """The answer to the request for approval changed something: it is asked for again."""
    ANSWERED = "answered"
    """A question of Airflow's was answered; the task that has asked says what followed."""

    PAUSE = "pause requested"
    """A plan is to pause."""
    PAUSE_WITHDRAWN = "pause withdrawn"
    """It is not to pause, or not to stay paused."""
    CANCEL = "cancel requested"
    """A plan is to be cancelled."""
    THROTTLE = "throttle requested"
    """A plan is to have another throttle."""
    MOVES_AT_ONCE = "moves at once requested"
    """A plan is to have another number of moves at once."""
    HAND_OVER = "handed over to the next window"
    """The next maintenance window is to carry a plan out."""
    RUN = "run of a plan requested"
    """A run is to carry out what a dry run has planned."""
    RESUME = "resume requested"
    """A run is to resume a plan that has paused, or whose run is dead."""
    ROLL_BACK = "roll back requested"
    """What a plan has moved is to be taken back."""
    CONTINUED = "continued"
    """A run has taken an existing plan up for the person who has asked for it."""

    BOUND = "bound"
    """A connection or an entry of the clusters file was bound to a cluster for the first time."""
    REBOUND = "rebound"
    """A person has bound it to another cluster."""
    NO_LONGER_COUNTS = "no longer counts"
    """A connection is gone, or leads elsewhere: its policy counts no more for the cluster."""

    CHANGED_DIRECTLY = "changed directly"
    """A task of people's own has changed a cluster by the hook; the detail says what."""

    CLEARED = "cleared"
    """A task or a run was cleared."""
    TASK_STATE_SET = "task state set"
    """The state of a task was set by hand."""
    RUN_STATE_SET = "run state set"
    """The state of a run was set by hand."""
    XCOM_WRITTEN = "xcom written"
    """An XCom of one of Rehome's DAGs was written, changed or deleted by a request."""
    TASK_STORE_WRITTEN = "task store written"
    """What a task keeps between its tries was written or deleted by a request."""
    DAG_CHANGED = "dag changed"
    """A DAG was paused, or let run again."""
    DELETED = "deleted"
    """A run, or another object of Airflow's that Rehome uses, was deleted."""
    REFUSED = "refused"
    """A request or a run was refused; the detail says why, by a code."""
    EXPORTED = "exported"
    """The audit was exported; the detail says what, and whether it was removed."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One decision. None = not known, or that there is none.

    :param user_id: as the auth manager knows the person; None also where nobody was asked.
    :param user_name: as people read it.
    :param address: of the client, as the API server saw it. Not known to tasks: what came through
        Airflow's own API is known to them by what Airflow keeps, which is no address.
    :param detail: small, and without secrets: what is longer than the ledger keeps is cut.
    """

    decision: Decided
    door: Door
    user_id: str | None = None
    user_name: str | None = None
    address: str | None = None
    plan_id: str | None = None
    dag_id: str | None = None
    run_id: str | None = None
    task_id: str | None = None
    cluster_id: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AuditExport:
    """An export of the audit and of events, as the ledger keeps it for good.

    :param by: who has made it.
    :param since, until: rows from then on, and before then; None = from the first one.
    :param audit_rows, events_rows: how many.
    :param audit_last, events_last: the newest number that was there.
    :param removes: whether what it covers may be removed, and was.
    :param digest: SHA-256 (hex) of the file.
    """

    at: datetime
    by: str
    since: datetime | None
    until: datetime
    audit_rows: int
    audit_last: int
    events_rows: int
    events_last: int
    removes: bool
    digest: str
