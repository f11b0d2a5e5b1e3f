"""What the account of a plan goes by, read from the ledger: nothing else reads it for that."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rehome.domain.kafka import BrokerId, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.plan.summary import PlanSummary
from rehome.domain.run.causes.hurts import Hurt
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.flows import RateChange
from rehome.domain.run.ledger_view import DataSeen, MoveSums
from rehome.domain.run.paused.paused_plan import Outlook
from rehome.domain.run.progress import PACE_POLLS, PollGains, ProgressSample
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.access.lease import is_orphaned
from rehome.ledger.base.alert_records import AlertRecord
from rehome.ledger.base.paging import PlanLine
from rehome.ledger.base.records import PlanRecord, ThrottleState
from rehome.ledger.store import Ledger
from rehome.ledger.stores.approvals.written_files import DryRun
from rehome.ledger.stores.by_run.causes import EndedRun

GATES = "gates.json"
"""The file of a plan with what its gates have found."""
PROOFS = ("verification", "drained", "demoted", "leaders")
"""Files that are written at the end of a plan."""
Found = Mapping[str, Any] | None
"""What a file of a plan holds; None = it is not there yet, or was not read."""


@dataclass(frozen=True, slots=True)
class FilesRead:
    """What the files of a plan hold: each ends in ``.json``.

    :param tried: ``dry_run``.
    """

    tried: Found = None
    gates: Sequence[Mapping[str, Any]] = ()
    summary: PlanSummary | None = None
    verification: Found = None
    drained: Found = None
    demoted: Found = None
    leaders: Found = None


def files_read(
    json: Callable[[str], Any], summary: PlanSummary | None, *, ended: bool
) -> FilesRead:
    """What the files hold.

    :param json: reads one, by name; None = it is not there.
    :param ended: whether the plan has; until then it has no proofs, and none is looked for.
    """
    proofs = {name: json(f"{name}.json") for name in PROOFS} if ended else {}
    return FilesRead(json("dry_run.json"), tuple(json(GATES) or ()), summary, **proofs)


@dataclass(frozen=True, slots=True)
class PlanEvidence:
    """Rows of the ledger, of one moment.

    :param sums: of the plan's moves, by state.
    :param recent: samples of the newest polls, oldest first; of one that does not run, the last.
    :param turns: when it has started, paused and gone on, oldest first.
    :param dry_runs: oldest first.
    :param ended_runs: runs about it that something has ended or refused, the last one first.
    :param continued_at: when a run last took it up; None = none has.
    :param orphaned: whether it runs, and its run sends no heartbeat.
    :param overtaken_by: of a plan that waits: another one that has moved its partitions since.
    :param hurts: what the newest poll has found since it last went on, while it runs.
    :param alerts: raised about it, open or not.
    :param gains: what copies have received at these, while it runs.
    :param rates: that were set for it, oldest first.
    :param throttles: how many settings of it are in each state; ``owed``: names of those that may
        still be set, while it does not run.
    :param driven: whether it has ended, and its run holds the cluster; ``run_over``: whether that
        run does nothing more, by who reads this as its last step.
    :param cancelled_by: the person who cancelled or rejected it; "" = none did, or it is not known.
    :param files: by who reads the plan's files.
    :param outlook: what it waits for, by who can ask for it; None = for nothing, or not known.
    :param dag_paused: whether its DAG is known to be paused in Airflow, by who can ask for it.
    :param lost: partitions of it of which messages are lost.
    :param window_end: when the window of its run closes, by that run; None = as it was asked for.
    :param outpaced: where copies cannot catch up with producers, by who polls it; None = it is not
        known, but for what was raised.
    """

    record: PlanRecord
    sums: Mapping[MoveState, MoveSums] = field(default_factory=dict)
    recent: tuple[ProgressSample, ...] = ()
    gains: tuple[PollGains, ...] = ()
    dry_runs: tuple[DryRun, ...] = ()
    ended_runs: tuple[EndedRun, ...] = ()
    continued_at: datetime | None = None
    overtaken_by: str | None = None
    orphaned: bool = False
    turns: tuple[tuple[EventKind, datetime], ...] = ()
    hurts: tuple[Hurt, ...] = ()
    alerts: tuple[AlertRecord, ...] = ()
    rates: tuple[RateChange, ...] = ()
    throttles: Mapping[ThrottleState, int] = field(default_factory=dict)
    owed: tuple[str, ...] = ()
    driven: bool = False
    run_over: bool = False
    cancelled_by: str = ""
    files: FilesRead = FilesRead()
    outlook: Outlook | None = None
    dag_paused: bool = False
    lost: Mapping[TopicPartition, DataSeen] = field(default_factory=dict)
    outpaced: tuple[str, ...] | None = None
    window_end: datetime | None = None

    @property
    def sample(self) -> ProgressSample | None:
        """Of the newest poll; None = there was none."""
        return self.recent[-1] if self.recent else None


def read_line(ledger: Ledger, line: PlanLine) -> PlanEvidence:
    """As a list of plans has it: what hurts is read of those that run."""
    plan_id, hurts = line.record.plan_id, tuple[Hurt, ...]()
    if line.record.state is PlanState.RUNNING:
        hurts = ledger.hurts(plan_id)
    recent = (line.sample,) if line.sample else ()
    return PlanEvidence(line.record, line.sums, recent, hurts=hurts)


def read_hurting(ledger: Ledger, record: PlanRecord) -> PlanEvidence:
    """What hurts a plan goes by: no move of it is read."""
    plan_id = record.plan_id
    turns = ledger.turns(plan_id) if record.started_at is not None else []
    running = record.state is PlanState.RUNNING
    return PlanEvidence(
        record,
        recent=tuple(ledger.samples(plan_id, newest=1)),
        turns=tuple(turns),
        hurts=ledger.hurts(plan_id) if running else (),
        alerts=tuple(ledger.alerts(plan_id)),
    )


def read_evidence(ledger: Ledger, plan_id: str) -> PlanEvidence:
    """All of a plan, read once; who reads it again and again takes an ``EvidenceFollower``.

    :raises PlanConflictError: there is no such plan.
    """
    return EvidenceFollower(ledger, plan_id).read()


def still_set_by(ledger: Ledger, plan_id: str) -> tuple[str, ...]:
    """Names of a plan's settings that may be set, in whatever state it is: while it runs, these may
    be many, and only the message about a run's end reads them then.
    """
    entries = ledger.throttles(plan_id, open_only=True)
    return tuple(f"{entry.resource} {entry.key}" for entry in entries)


class PaceFollower:
    """Reads what the copies of a plan that runs receive, again and again: only what is new.

    :ivar gains: of the newest polls, oldest first.
    """

    def __init__(self, ledger: Ledger, plan_id: str) -> None:
        self._ledger = ledger
        self._plan_id = plan_id
        self._gains: deque[PollGains] = deque(maxlen=PACE_POLLS)

    @property
    def gains(self) -> tuple[PollGains, ...]:
        """As last read."""
        return tuple(self._gains)

    def read(self) -> tuple[ProgressSample, ...]:
        """Samples of the newest polls, oldest first; ``gains`` are of the same polls then."""
        with self._ledger.reading():
            recent = self._ledger.samples(self._plan_id, newest=PACE_POLLS)
            if recent:
                after = self._gains[-1].at if self._gains else recent[0].sampled_at
                self._gains.extend(self._ledger.gains(self._plan_id, after))
        return tuple(recent)


class EvidenceFollower:
    """Reads a plan again and again, of its moves only what has changed.

    :ivar newly_done: moves that were done since the reading before.
    :ivar flying: moves at the controller, each with the leader that it copies from, where that is
        known.
    """

    def __init__(self, ledger: Ledger, plan_id: str) -> None:
        self._ledger = ledger
        self._plan_id = plan_id
        self._version = -1
        self._pace = PaceFollower(ledger, plan_id)
        self._sums: Mapping[MoveState, MoveSums] = {}
        self.newly_done: Sequence[Move] = ()
        self.flying: Sequence[tuple[Move, BrokerId | None]] = ()

    def read(self) -> PlanEvidence:
        """What the ledger has now.

        :raises PlanConflictError: there is no such plan.
        """
        ledger, plan_id = self._ledger, self._plan_id
        with ledger.reading():
            record = ledger.plan(plan_id)
            self._follow_moves()
            running = record.state is PlanState.RUNNING
            recent = self._pace.read() if running else tuple(ledger.samples(plan_id, newest=1))
            turns = ledger.turns(plan_id) if record.started_at is not None else []
            dry_runs = ledger.dry_runs(plan_id)
            ended_runs = ledger.ended_runs_of(plan_id)
            continued_at = (
                ledger.last_event_at(plan_id, EventKind.CONTINUED) if ended_runs else None
            )
            hurts = ledger.hurts(plan_id) if running else ()
            alerts = ledger.alerts(plan_id)
            waits = record.state in (PlanState.PLANNED, PlanState.APPROVED)
            silent = is_orphaned(record, ledger)
            overtaken_by = ledger.overtaken_by(plan_id) if waits else None
            throttles = ledger.throttle_counts(plan_id)
            still_set = any(state.open for state in throttles)
            owed = still_set_by(ledger, plan_id) if still_set and not running else ()
            holder = ledger.holder(record.cluster_id) if record.ended_at is not None else None
            lost = ledger.lost_data(plan_id)
            cancelled = record.state is PlanState.CANCELLED
            cancelled_by = ledger.cancelled_by(plan_id) if cancelled else None
            rates = ledger.rate_changes(plan_id) if record.started_at is not None else []
        return PlanEvidence(
            record,
            self._sums,
            recent,
            self._pace.gains,
            tuple(dry_runs),
            tuple(ended_runs),
            continued_at,
            overtaken_by,
            silent,
            tuple(turns),
            hurts,
            tuple(alerts),
            rates=tuple(rates),
            throttles=throttles,
            owed=owed,
            driven=holder is not None and holder.owner == record.driver,
            cancelled_by=cancelled_by or "",
            lost=lost,
        )

    def _follow_moves(self) -> None:
        ledger, plan_id = self._ledger, self._plan_id
        self.newly_done, version = ledger.moves_changed(plan_id, self._version, MoveState.DONE)
        if version != self._version:
            self._sums = ledger.move_sums(plan_id)
            self.flying = ledger.flying(plan_id)
            self._version = version


def read_samples(ledger: Ledger, plan_id: str) -> tuple[ProgressSample, ...]:
    """Of every poll, oldest first: for pictures of the plan over time."""
    return tuple(ledger.samples(plan_id))
