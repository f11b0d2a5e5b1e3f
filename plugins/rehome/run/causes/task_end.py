"""Why a task ends its run, or would not begin: kinds and values, before they are put into words."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from rehome.domain.run.causes.cause import CauseKind as C
from rehome.domain.run.states import PlanState


@enum.unique
class TaskReason(enum.StrEnum):
    """Each with the kind of its cause, and whether another attempt may go through."""

    cause: C
    passing: bool

    def __new__(cls, value: str, cause: C, passing: bool = False) -> Self:
        """A reason by its name."""
        reason = str.__new__(cls, value)
        reason._value_, reason.cause, reason.passing = value, cause, passing
        return reason

    NO_PLAN_AT_END = "no_plan_at_end", C.VERDICT
    NOT_DONE_AT_END = "not_done_at_end", C.VERDICT
    PLAN_FAILED = "plan_failed", C.PLAN_FAILED
    PLAN_CANCELLED = "plan_cancelled", C.CANCELLED
    PROOF_NOT_READ = "proof_not_read", C.NOT_VERIFIED
    NO_PROOF = "no_proof", C.NOT_VERIFIED
    DISPROVED = "disproved", C.NOT_VERIFIED
    NOT_VERIFIED = "not_verified", C.NOT_VERIFIED
    OWED_AT_END = "owed_at_end", C.OWED
    OWED = "owed", C.OWED, True
    EMPTINESS_NOT_SEEN = "emptiness_not_seen", C.NOT_EMPTY
    NOT_EMPTY_AT_END = "not_empty_at_end", C.NOT_EMPTY
    DRAIN_NOT_ENDED = "drain_not_ended", C.NOT_EMPTY
    NOT_ELECTED = "not_elected", C.NOT_LED
    NOT_PREFERRED = "not_preferred", C.NOT_LED
    STILL_LEADS = "still_leads", C.NOT_LED
    NOT_CHECKED = "not_checked", C.PLAN_STATE
    DRY_RUN_REFUSES = "dry_run_refuses", C.DRY_RUN
    PARTITIONS_REFUSED = "partitions_refused", C.DRY_RUN
    FOREIGN_LEFT = "foreign_left", C.CLUSTER
    WATCHED_OTHERWISE = "watched_otherwise", C.ENDED_OTHERWISE
    NOT_JUDGED = "not_judged", C.NOT_JUDGED, True
    SOME_NOT_JUDGED = "some_not_judged", C.VERDICT
    FLEET_WITHOUT_PLANS = "fleet_without_plans", C.NO_FLEET_PLAN
    OLD_DATA_LEFT = "old_data_left", C.REHOME, True
    NOT_PLANNED = "not_planned", C.PLANNER
    GATE_REFUSED = "gate_refused", C.GATE
    GATE_CRASHED = "gate_crashed", C.GATE_CRASHED
    JOB_CRASHED = "job_crashed", C.SPARK, True
    JOB_FAILED = "job_failed", C.SPARK, True
    NO_JAVA = "no_java", C.NO_JAVA, True
    NO_SPARK_SERVER = "no_spark_server", C.SPARK, True
    MIXED_PYSPARK = "mixed_pyspark", C.SPARK, True
    TRIGGER_FAILED = "trigger_failed", C.TRIGGER, True
    SILENT = "silent", C.SILENT
    NO_ANSWER = "no_answer", C.NO_ANSWER
    REJECTED = "rejected", C.REJECTED
    PROPOSAL_REJECTED = "proposal_rejected", C.REJECTED
    REJECTED_BEFORE = "rejected_before", C.PLAN_STATE
    NOT_APPROVED = "not_approved", C.NOT_DONE
    NOT_TRIED_OUT = "not_tried_out", C.NOT_DONE
    TRY_REFUSED = "try_refused", C.NOT_DONE
    NOT_PLACED = "not_placed", C.NOT_DONE
    NOT_LOOKED = "not_looked", C.NOT_DONE
    STEP_MISSING = "step_missing", C.NOT_DONE
    FILE_CHANGED = "file_changed", C.CHANGED_FILES
    SNAPSHOT_CHANGED = "snapshot_changed", C.SNAPSHOT
    NO_SNAPSHOT = "no_snapshot", C.SNAPSHOT
    NO_NEWEST_SNAPSHOT = "no_newest_snapshot", C.PLAN_STATE
    OTHER_LEDGER = "other_ledger", C.PLAN_STATE
    RECORDED_ELSEWHERE = "recorded_elsewhere", C.LEDGER, True
    FILES_UNREADABLE = "files_unreadable", C.LEDGER, True
    MADE_FOR_ANOTHER = "made_for_another", C.LEDGER, True
    NOT_FOLLOWED_UP = "not_followed_up", C.PLAN_STATE
    NO_FOLLOW_UP_PLAN = "no_follow_up_plan", C.PLAN_STATE
    NO_PLAN_YET = "no_plan_yet", C.PLAN_STATE
    NOT_THROTTLED = "not_throttled", C.PLAN_STATE
    DRIVEN_BY_OTHER = "driven_by_other", C.PLAN_STATE
    PLAN_OVER = "plan_over", C.PLAN_STATE
    CLUSTER_HELD = "cluster_held", C.BUSY
    CLUSTER_HELD_SILENT = "cluster_held_silent", C.BUSY
    LOWERS_REPLICATION = "lowers_replication", C.NOT_ASKED
    NO_OWN_PLAN = "no_own_plan", C.NOT_ASKED
    CARRIED_OUT = "carried_out", C.NOT_ASKED
    CONTROL_CARRIED_OUT = "control_carried_out", C.NOT_ASKED
    OF_BACKFILL = "of_backfill", C.NOT_ASKED
    CLEARED_TOO_LATE = "cleared_too_late", C.NOT_ASKED
    ASKED_TOO_LONG_AGO = "asked_too_long_ago", C.NOT_ASKED
    STARTED_BY_TASK = "started_by_task", C.NOT_ASKED
    CONTROL_BY_TASK = "control_by_task", C.NOT_ASKED
    START_NOT_ASKED = "start_not_asked", C.NOT_ASKED
    ID_OF_ANOTHER = "id_of_another", C.NOT_ASKED
    OTHER_PARAMETERS = "other_parameters", C.NOT_ASKED


class ProposalKind(enum.StrEnum):
    """What a run without a plan proposes to a person."""

    PARTITIONS = "partitions"
    """New ones."""
    FOREIGN = "foreign"
    """What becomes of reassignments of other clients."""


class NotApproved(enum.StrEnum):
    """Why what a run proposes is not approved."""

    NO_ANSWER = "no_answer"
    OTHER_ASKER = "other_asker"
    """Another person had asked for it then."""
    TOO_OLD = "too_old"
    OTHER_TERMS = "other_terms"
    NO_PERSON = "no_person"
    """No person was asked, and one has to be."""


class WrittenWhen(enum.StrEnum):
    """When a file was written that is another one by now."""

    RECORDED = "recorded"
    """With the plan, when that was recorded."""
    FOR_JOB = "for_job"
    BY_TASK = "by_task"


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """Why a task ends its run; which values it has follows from its reason.

    :param plan_id: of a plan, or of what a run proposes; ``state``: of the plan.
    :param said: what others say: the plan's cause, a check, a job, an error; or what is missing.
    :param why: what keeps it from going on, as an enum of the topic.
    :param names: of clusters, throttles, files, steps; ``content``: of a plan's file, or by name.
    :param task: id of a task; ``run_id``: of a run; ``who``: has asked; ``connection``: of Airflow.
    :param place: where something is: the URI of a file or folder, a path, a DAG with its run, an
        application of Spark.
    :param ledger_id: of this ledger; ``other_id``: of another, or of the DAG.
    :param remedy: what another says is to be done; ``proposal``: what the run proposes.
    :param at: aware UTC; ``hours``: for which a request counts.
    :param count: of what was done; of facts that hold or not, whether it is 0.
    """

    reason: TaskReason
    plan_id: str = ""
    state: PlanState | None = None
    said: str = ""
    why: enum.Enum | None = None
    names: tuple[str, ...] = ()
    content: Mapping[str, Any] = field(default_factory=dict)
    task: str = ""
    run_id: str = ""
    who: str = ""
    connection: str = ""
    place: str = ""
    ledger_id: str = ""
    other_id: str = ""
    remedy: str = ""
    proposal: ProposalKind | None = None
    at: datetime | None = None
    hours: float = 0.0
    count: int = 0


EndTexts = Mapping[TaskReason, str | Callable[[TaskEnd], str]]
"""Words of reasons: the same for each, or made of the values of one."""
