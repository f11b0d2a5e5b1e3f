"""What hurts a plan now: by its newest poll, and open alerts about something else."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rehome.account.evidence import PlanEvidence, read_evidence
from rehome.account.hurts import covered_by, hurts_of
from rehome.account.words.hurt_words import held_back_text, hurt_text
from rehome.alerts.kinds import AlertKind
from rehome.domain.plan.plan import Plan
from rehome.domain.run.causes.hurts import Hurt, HurtKind
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.progress import ProgressSample
from rehome.domain.run.states import PlanState
from rehome.ledger.base.alert_records import AlertRecord
from rehome.ledger.store import Ledger
from tests.ledger.set_clock import SetClock
from tests.reporting.reported_plans import moves, plan_of, record

T0 = datetime(2030, 1, 1, tzinfo=UTC)
RUNNING = record(plan_of(*moves()), PlanState.RUNNING, started_at=T0)
DEAD = Hurt(HurtKind.DEAD_BROKERS, (4,), 8, since=T0)


def alert(kind: AlertKind, closed_at: datetime | None = None) -> AlertRecord:
    return AlertRecord(kind, "p", "", "p", "c", T0, T0, closed_at, None, T0, T0, 1, {})


def test_alerts_that_say_no_more_than_the_poll_are_left_out_and_closed_ones_are_over() -> None:
    silent = Hurt(HurtKind.SILENT_BROKERS, (3,), since=T0)
    raised = (
        alert(AlertKind.SILENT_BROKERS),
        alert(AlertKind.THROTTLE_LOWERED),
        alert(AlertKind.STALLED),
        alert(AlertKind.OUTPACED, closed_at=T0),
    )
    found = hurts_of(PlanEvidence(RUNNING, hurts=(silent,), alerts=raised), T0)
    assert [each.alert or each.kind for each in found] == [
        "silent_brokers",
        "stalled",
        "throttle_lowered",
    ]
    assert covered_by(found) == {AlertKind.SILENT_BROKERS}
    paused = replace(RUNNING, state=PlanState.PAUSED)
    only_alerts = hurts_of(PlanEvidence(paused, hurts=(silent,), alerts=raised[2:3]), T0)
    assert [each.kind for each in only_alerts] == [HurtKind.ALERT]


def test_what_no_poll_has_confirmed_of_late_says_when_it_was_so() -> None:
    sample = ProgressSample(T0, 1, 9, 0, 2, 2)
    evidence = PlanEvidence(RUNNING, recent=(sample,), hurts=(DEAD,))
    (fresh,) = hurts_of(evidence, T0 + timedelta(seconds=60))
    assert fresh.known_at is None
    unread, dead = hurts_of(evidence, T0 + timedelta(seconds=61))
    assert (unread.kind, unread.since) == (HurtKind.NOT_POLLED, T0)
    assert dead.known_at == T0
    assert "since 2030-01-01 00:00:00 UTC" in hurt_text(unread)[0]
    assert hurt_text(dead)[0].endswith("That was so at 2030-01-01 00:00:00 UTC.")
    went_on = replace(evidence, turns=((EventKind.CONTINUED, T0 + timedelta(seconds=50)),))
    assert [each.kind for each in hurts_of(went_on, T0 + timedelta(seconds=100))] == [DEAD.kind]


def test_what_was_found_before_a_pause_is_over_when_the_plan_goes_on(
    ledger: Ledger, plan: Plan, clock: SetClock
) -> None:
    ledger.record_hurts("p1", clock(), [DEAD])
    assert [each.kind for each in read_evidence(ledger, "p1").hurts] == [HurtKind.DEAD_BROKERS]
    ledger.transition("p1", PlanState.PAUSED, "a person")
    assert read_evidence(ledger, "p1").hurts == ()
    clock.pass_s(5)
    ledger.claim("p1")
    assert read_evidence(ledger, "p1").hurts == ()
    ledger.record_hurts("p1", clock(), [DEAD])
    assert read_evidence(ledger, "p1").hurts


@pytest.mark.parametrize("kind", HurtKind)
def test_every_kind_has_words(kind: HurtKind) -> None:
    text, _ = hurt_text(Hurt(kind, (3,), 1, ("t-0",), 2, "a reason", alert="stalled"))
    assert text.endswith(".")


def test_the_words_name_brokers_moves_and_what_holds() -> None:
    assert hurt_text(DEAD)[0] == "Broker 4 is not alive. 8 moves of the plan need it."
    foreign = Hurt(HurtKind.FOREIGN, (), 0, ("x-0",), 0, holds=True)
    assert hurt_text(foreign)[0] == (
        "Another client reassigns x-0. The plan starts nothing until that has ended."
    )
    assert held_back_text((DEAD, foreign)) == (
        "broker 4 is not alive; another client's reassignment runs"
    )
    assert held_back_text((replace(foreign, holds=False),)) == ""
