"""What ended or refused a run, as the task has recorded it that met it first. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any


class CauseKind(enum.StrEnum):
    """Kinds of causes, by what has to change before a run can go through."""

    REQUEST = "request"
    """The parameters cannot be carried out as they are, or a file or setting that they go by."""
    NOT_ASKED = "not_asked"
    """Nobody who may ask stands behind the run, or not any more."""
    POLICY = "policy"
    """The policy of the connection does not allow it."""
    CONNECTION = "connection"
    """The connection is not right: password, protocol, certificate, host name."""
    WRONG_CLUSTER = "wrong_cluster"
    """The connection leads to another cluster than the plan's, or than it is bound to."""
    RIGHTS = "rights"
    """The principal lacks a right on the cluster."""
    CLUSTER_AWAY = "cluster_away"
    """No broker could be reached."""
    CLUSTER = "cluster"
    """A broker has refused a call, or brokers disagree."""
    LEDGER = "ledger"
    """The ledger cannot be used, or is another one than the run began with."""
    BUSY = "busy"
    """Another plan or another run holds the cluster."""
    STALE = "stale"
    """The cluster has changed since the plan was made."""
    CHANGED_FILES = "changed_files"
    """What the plan's files say is not what was recorded."""
    NOT_APPROVED = "not_approved"
    """There is no approval of what would run now: it has lapsed, or was of something else."""
    NOT_DONE = "not_done"
    """A task before this one is not done, whatever its state says."""
    PLAN_STATE = "plan_state"
    """The plan is in no state that allows the step."""
    SNAPSHOT = "snapshot"
    """The run's snapshot is gone, or is another one than was recorded."""
    GATE = "gate"
    """Great Expectations: the snapshot or the plan does not keep the rules."""
    GATE_CRASHED = "gate_crashed"
    """Great Expectations could not judge."""
    PLANNER = "planner"
    """The planner finds no plan for this request on this snapshot."""
    SPARK = "spark"
    """The Spark application has failed, and left no reason."""
    NO_JAVA = "no_java"
    """There is no Java on the worker, which Spark needs."""
    DRY_RUN = "dry_run"
    """The dry run has found what the controller or a broker would refuse."""
    NOT_HEALED = "not_healed"
    """Watching starts nothing for it now: a broker or a rack is away, or its rules have changed."""
    NO_ANSWER = "no_answer"
    """Nobody has answered a proposal before its deadline."""
    REJECTED = "rejected"
    """The person who was asked has rejected the plan."""
    CANCELLED = "cancelled"
    """A person has cancelled the plan."""
    PLAN_FAILED = "plan_failed"
    """The plan has failed on the cluster, or was given up: its own cause says why."""
    NOT_VERIFIED = "not_verified"
    """The proof shows partitions that are not where the plan says, or there is no proof."""
    NOT_EMPTY = "not_empty"
    """What was to be empty is not, or nobody has seen that it is."""
    NOT_LED = "not_led"
    """Leaders are not where they were to be."""
    OWED = "owed"
    """Throttles could not be taken back yet."""
    NOT_JUDGED = "not_judged"
    """Watching could not judge a cluster."""
    NO_FLEET_PLAN = "no_fleet_plan"
    """A cluster of a fleet has no plan."""
    ENDED_OTHERWISE = "ended_otherwise"
    """Reassignments that were only watched have ended otherwise."""
    WAREHOUSE = "warehouse"
    """The warehouse cannot be used as it is."""
    TIMEOUT = "timeout"
    """Airflow has ended the task after its time."""
    TRIGGER = "trigger"
    """The trigger of a task has failed."""
    SILENT = "silent"
    """A task has failed and left no reason: its process is gone, or a person has marked it."""
    REHOME = "rehome"
    """Something that Rehome refuses for a reason without a kind of its own."""
    FAULT = "fault"
    """An error that Rehome does not know."""
    VERDICT = "verdict"
    """What a run is judged by at its end: something else was the cause."""

    @property
    def derived(self) -> bool:
        """Whether it only follows from something else."""
        return self is CauseKind.VERDICT

    @property
    def by_person(self) -> bool:
        """Whether a person has wanted it so."""
        return self in (CauseKind.REJECTED, CauseKind.CANCELLED)


CAUSE_LINES_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a task of a run has ended it, or would not begin. Aware UTC times.

    :param text: what failed or was refused, with a broker's words where one spoke.
    :param left: the state that it has left; "" = that is not known.
    :param remedy: what to do now; "" = that is not known.
    :param task_id, attempt: of Airflow; ``cleared``: how often the run had been cleared.
    """

    kind: CauseKind
    text: str
    left: str
    remedy: str
    at: datetime
    task_id: str
    attempt: int = 1
    cleared: int = 0

    def __str__(self) -> str:
        return " ".join(part for part in (self.said, self.remedy) if part)

    @property
    def said(self) -> str:
        """What happened, without what to do."""
        return " ".join(part for part in (self.text, self.left) if part)

    @property
    def short(self) -> str:
        """What happened, in one line: the first lines of it, and how many more there are."""
        lines = self.text.strip().splitlines()
        more = len(lines) - CAUSE_LINES_SHOWN
        return " ".join([*lines[:CAUSE_LINES_SHOWN], *([f"And {more} more."] if more > 0 else [])])

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types."""
        return {**asdict(self), "kind": self.kind.value, "at": self.at.isoformat()}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Cause:
        """The inverse of :meth:`to_json`.

        :raises KeyError, ValueError, TypeError: it is none.
        """
        at = datetime.fromisoformat(content["at"])
        return cls(**{**content, "kind": kind_named(content["kind"]), "at": at})


def kind_named(name: str) -> CauseKind:
    """A kind by its name; of a newer Rehome, whatever it is, a fault."""
    return CauseKind(name) if name in set(CauseKind) else CauseKind.FAULT


def most_specific(causes: Iterable[Cause]) -> Cause | None:
    """The cause of a run that has led to the others: the first since it was last cleared that does
    not only follow from something else. None = there is none.

    Of a task, its last attempt counts, unless a person has answered before.
    """
    last: dict[str, Cause] = {}
    for each in sorted(causes, key=lambda each: each.attempt):
        before = last.get(each.task_id)
        if before is None or not before.kind.by_person:
            last[each.task_id] = each
    ranked = sorted(last.values(), key=lambda each: (each.kind.derived, -each.cleared, each.at))
    return next(iter(ranked), None)
