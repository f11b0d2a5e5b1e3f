"""What is known of a plan at one moment: made by one function, and shown by everybody. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from rehome.account.attempts import (
    Barred,
    attempt_of,
    barred_by,
    controls_of,
    resume_refused_by,
)
from rehome.account.evidence import PlanEvidence
from rehome.account.findings import findings_of
from rehome.account.hurts import hurts_of
from rehome.account.known import Fact
from rehome.account.pace import PlanPace, pace_of
from rehome.account.plan_bytes import PlanBytes, bytes_of
from rehome.account.times import Elapsed, EndRange, Predicted, elapsed_of, ends_of, predicted_of
from rehome.domain.run.causes.cause import Cause
from rehome.domain.run.causes.hurts import Hurt
from rehome.domain.run.findings import FindingGroup
from rehome.domain.run.states import Control, PlanState
from rehome.ledger.stores.by_run.causes import EndedRun
from rehome.watching.paused_plan import RefusedResume


@dataclass(frozen=True, slots=True)
class PlanAccount:
    """A plan at one moment: views of it show these fields, and work out none of their own.

    :param seen_at: when its newest poll was; None = there was none.
    :param ends: when its last copy is complete.
    :param elapsed: None before its start.
    :param attempt: the last run about it, where something has ended or refused it; None = none.
    :param barred: why it is not to be run as it is; ``overtaken_by``: the plan that has moved its
        partitions.
    :param controls: what a person may ask of it now, the usual first.
    :param resume_refused: why the last run that was to go on with it did not, while it is paused;
        None = none was refused, or its dry run was not read.
    :param hurts: what keeps it from going on as it should, by what to do about it.
    :param findings: of its gates and its newest dry run, by kind, the worst first.
    """

    state: PlanState
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

    @property
    def cause(self) -> Cause | None:
        """What has ended or refused the last run about it."""
        return self.attempt.cause if self.attempt is not None else None


def account_of(evidence: PlanEvidence, now: datetime) -> PlanAccount:
    """What follows from the evidence."""
    sample = evidence.sample
    return PlanAccount(
        evidence.record.state,
        sample.sampled_at if sample is not None else None,
        bytes_of(evidence),
        pace_of(evidence, now),
        ends_of(evidence, now),
        elapsed_of(evidence, now),
        predicted_of(evidence),
        attempt_of(evidence),
        barred_by(evidence),
        evidence.overtaken_by,
        controls_of(evidence),
        resume_refused_by(evidence),
        hurts_of(evidence, now),
        findings_of(evidence.tried, evidence.gates),
    )
