"""What is known of a plan at one moment: made by one function, and shown by everybody. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from rehome.account.attempts import (
    Barred,
    attempt_of,
    barred_by,
    controls_of,
    resume_refused_by,
)
from rehome.account.counts import PlanMoves, PlanThrottles, moves_of, throttles_of
from rehome.account.evidence import FilesRead, PlanEvidence
from rehome.account.findings import findings_of
from rehome.account.hurts import hurts_of
from rehome.account.known import Fact, Known
from rehome.account.pace import PlanPace, pace_of
from rehome.account.plan_bytes import PlanBytes, bytes_of
from rehome.account.standing import Standing, standing_of
from rehome.account.times import (
    Elapsed,
    EndRange,
    Incomparable,
    Predicted,
    elapsed_of,
    ends_of,
    incomparable_of,
    predicted_of,
)
from rehome.domain.broker_rates import RateKey
from rehome.domain.kafka import TopicPartition
from rehome.domain.run.causes.cause import Cause
from rehome.domain.run.causes.hurts import Hurt
from rehome.domain.run.findings import FindingGroup
from rehome.domain.run.flows import OwnRate, RateChange
from rehome.domain.run.ledger_view import DataSeen
from rehome.domain.run.paused.paused_plan import Outlook, RefusedResume
from rehome.domain.run.states import Control, PlanState
from rehome.domain.time_range import TimeRange
from rehome.ledger.base.alert_records import AlertRecord
from rehome.ledger.base.records import PlanRecord
from rehome.ledger.stores.by_run.causes import EndedRun


@dataclass(frozen=True, slots=True)
class PlanAccount:
    """A plan at one moment: views of it show these fields, and work out none of their own.

    :param now: the moment.
    :param seen_at: when its newest poll was; None = there was none.
    :param ends: when its last copy is complete.
    :param elapsed: None before its start.
    :param attempt: the last run about it, where something has ended or refused it; None = none.
    :param barred: why it is not to be run as it is; ``overtaken_by``: the plan that has moved its
        partitions.
    :param controls: what a person may ask of it now, the usual first.
    :param resume_refused: why the last run that was to resume it did not, while it is paused;
        None = none was refused, or its dry run was not read.
    :param hurts: what keeps it from going on as it should, by what to do about it.
    :param findings: of its gates and its newest dry run, by kind, the worst first.
    :param standing: where it stands, and what is to be done next.
    :param incomparable: why the time taken says nothing about the prediction; None = it does.
    :param rates: that were set for it, oldest first.
    :param cancelled_by: the person who cancelled or rejected it; "" = none did, or it is not known.
    :param files: what its files hold, where they were read.
    :param outlook: what it waits for; None = for nothing, or that is not known.
    :param polled: hurts that the newest poll has found, without open alerts.
    :param raised: alerts about it, open or not.
    :param at_this_pace: when its last copy ends if all goes on as at the newest poll, while it
        runs; None = not known.
    :param window_end: when its window closes; None = it has none.
    :param orphaned: whether it runs, and its run sends no heartbeat.
    :param dag_paused: whether it runs, and its DAG is known to be paused in Airflow.
    :param lost: partitions of it of which messages are lost.
    :param outpaced: where copies cannot catch up with producers, by a poll; None = it is not
        known, but for what was raised.
    """

    record: PlanRecord
    now: datetime
    seen_at: datetime | None
    bytes: PlanBytes
    pace: Fact[PlanPace]
    ends: Fact[EndRange]
    elapsed: Elapsed | None
    predicted: Fact[Predicted]
    attempt: EndedRun | None
    barred: Barred | None
    overtaken_by: str | None
    controls: tuple[Control, ...]
    resume_refused: RefusedResume | None
    hurts: tuple[Hurt, ...]
    findings: tuple[FindingGroup, ...]
    standing: Standing
    moves: PlanMoves
    throttles: PlanThrottles
    incomparable: Incomparable | None
    rates: tuple[RateChange, ...]
    cancelled_by: str
    files: FilesRead
    outlook: Outlook | None
    polled: tuple[Hurt, ...]
    raised: tuple[AlertRecord, ...]
    at_this_pace: datetime | None
    window_end: datetime | None
    orphaned: bool
    dag_paused: bool
    lost: Mapping[TopicPartition, DataSeen]
    outpaced: tuple[str, ...] | None

    @property
    def is_held(self) -> bool:
        """Whether it has waited for others since it last moved."""
        held_at, moved_at = self.record.held_at, self.record.last_progress_at
        return held_at is not None and (moved_at is None or held_at > moved_at)

    @property
    def only_waits(self) -> bool:
        """Whether it is held, and has nothing in flight."""
        return self.is_held and not self.moves.in_flight

    @property
    def state(self) -> PlanState:
        """As the ledger has it."""
        return self.record.state

    @property
    def waits_to_start(self) -> bool:
        """Whether nothing of it has started, and it can still start."""
        return self.state in (PlanState.PLANNED, PlanState.APPROVED)

    @property
    def predicted_of_all(self) -> TimeRange | None:
        """What was predicted of the whole plan; None = not known."""
        prediction = self.predicted
        return (
            prediction.value.time
            if isinstance(prediction, Known) and not prediction.value.a_part
            else None
        )

    @property
    def throttle_bytes_per_s(self) -> int | None:
        """What was asked for: at the start, or in mid-run; None = no throttle was set."""
        rate = self.rates[-1].limit_bytes_per_s if self.rates else self.record.rate_bytes_per_s
        return self.record.requested_rate_bytes_per_s or rate

    @property
    def own_rates(self) -> Mapping[RateKey, OwnRate]:
        """Rates of brokers that have one of their own now, by direction and broker."""
        return {each.key: each for each in (self.rates[-1].own if self.rates else ())}

    @property
    def cause(self) -> Cause | None:
        """What has ended or refused the last run about it."""
        return self.attempt.cause if self.attempt is not None else None


def account_of(evidence: PlanEvidence, now: datetime) -> PlanAccount:
    """What follows from the evidence."""
    sample, hurts, elapsed = evidence.sample, hurts_of(evidence, now), elapsed_of(evidence, now)
    moves, throttles = moves_of(evidence), throttles_of(evidence, now)
    running = evidence.record.state is PlanState.RUNNING
    return PlanAccount(
        evidence.record,
        now,
        sample.sampled_at if sample is not None else None,
        bytes_of(evidence),
        pace_of(evidence, now),
        ends_of(evidence, now),
        elapsed,
        predicted_of(evidence),
        attempt_of(evidence),
        barred_by(evidence),
        evidence.overtaken_by,
        controls_of(evidence),
        resume_refused_by(evidence),
        hurts,
        findings_of(evidence.files.tried, evidence.files.gates),
        standing_of(evidence, moves, throttles, hurts),
        moves,
        throttles,
        incomparable_of(evidence, elapsed),
        evidence.rates,
        evidence.cancelled_by,
        evidence.files,
        evidence.outlook,
        evidence.hurts,
        evidence.alerts,
        sample.at_this_pace if running and sample is not None else None,
        evidence.window_end or evidence.record.window_end,
        evidence.orphaned,
        running and evidence.dag_paused,
        evidence.lost,
        evidence.outpaced,
    )
