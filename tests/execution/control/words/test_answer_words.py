"""What becomes of what is asked of a plan: each answer in its words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from rehome.domain.broker_rates import BrokerRates
from rehome.domain.claims import NoThrottleLeft, Owed
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import BrokerError, TopicPartition
from rehome.execution.control.answers import (
    CancelledHere,
    CancelledUnstarted,
    ControlAnswer,
    HandedOver,
    HoldsFrom,
    NotToPause,
    PaceAsked,
    Pausing,
    RunFor,
    RunNeeded,
    ThrottlesLeft,
    ToCancel,
    ToPause,
)
from rehome.execution.control.cancel import Cancelled
from rehome.execution.control.words.answer_words import answer_text
from rehome.ledger.store import Ledger
from tests.ledger.small_plans import make_plan

RUN = "dag/run-1"
A, B = TopicPartition("t", 0), TopicPartition("t", 1)
REFUSED = BrokerError(39, "INVALID_REPLICA_ASSIGNMENT")
ENDS = datetime(2030, 1, 1, 2, 3, 4, tzinfo=UTC)
SILENT = "Run dag/run-1, which drives the plan, sends no heartbeat."
SETTING = ConfigResource.topic("t"), "a.key"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (
            RunNeeded(RunFor.CARRY_OUT, window_closed=True),
            "A run of reassign_partitions carries the plan out. The plan's window has closed: the "
            "run has none.",
        ),
        (
            RunNeeded(RunFor.GO_ON, queued=True),
            "A run of reassign_partitions resumes the plan. That DAG is paused in Airflow: "
            "the run stays queued until it is unpaused.",
        ),
        (RunNeeded(RunFor.TAKE_BACK), "A run of reassign_partitions takes the plan back."),
        (HandedOver(), "The plan is handed over to the windows of its cluster."),
        (
            HandedOver(("p2", "p3")),
            "The plan is handed over to the windows of its cluster. A window carries out one "
            "plan, and these were handed over before it: p2, p3.",
        ),
        (
            ToPause(Pausing.STAYS_PAUSED, RUN),
            "The plan is paused already. From now on no window resumes it: only a person does.",
        ),
        (
            ToPause(Pausing.WHEN_A_RUN_GOES_ON, RUN),
            f"The request to pause is recorded. {SILENT} So nothing pauses until a run resumes "
            "the plan. Resume the plan, or cancel it.",
        ),
        (
            ToPause(Pausing.AT_NEXT_POLL, RUN),
            "From the next poll on nothing more is started; the plan is paused when what is in "
            "flight has ended.",
        ),
        (NotToPause(), "The plan runs, and no pause is asked for any more."),
        (
            NotToPause("nightly", "run-1"),
            "No pause is asked for any more. But the DAG nightly is paused in Airflow: no task of "
            "run run-1 starts before that DAG is unpaused. Then the run goes on by itself; if it "
            "does not, resume the plan again.",
        ),
        (
            ToCancel(RUN, ENDS, unthrottled=False),
            "The next poll cancels what is in flight of the plan; then its throttles are taken "
            "back. Should run dag/run-1 be dead, cancel the plan again after 02:03:04 UTC.",
        ),
        (
            ToCancel(RUN, ENDS, unthrottled=True),
            "The next poll cancels what is in flight of the plan. Should run dag/run-1 be dead, "
            "cancel the plan again after 02:03:04 UTC.",
        ),
        (
            CancelledUnstarted(),
            "The plan is cancelled. By the ledger nothing of it had started.",
        ),
    ],
)
def test_each_answer_has_its_words(answer: ControlAnswer, text: str) -> None:
    assert answer_text(answer) == text


@pytest.mark.parametrize(
    ("holds", "text"),
    [
        (HoldsFrom.NEXT_POLL, ", from the next poll on."),
        (HoldsFrom.PLAN_RUNS, ". This holds when the plan runs."),
        (
            HoldsFrom.RUN_GOES_ON,
            ". This is recorded, and holds as soon as a run resumes the plan. "
            f"{SILENT} Resume the plan, or cancel it.",
        ),
        (
            HoldsFrom.DAG_UNPAUSED,
            ". This is recorded, and holds once the DAG nightly is unpaused: until then no task of "
            "its run starts, and the plan goes on as it was.",
        ),
    ],
)
@pytest.mark.parametrize(
    ("asked", "pace"),
    [
        (
            {"moves_per_broker": 1},
            "The plan is to make at most 1 move at once for each broker and direction",
        ),
        ({"rate_bytes_per_s": 5}, "The throttle is to be 5 B/s per broker and direction"),
        (
            {"rate_bytes_per_s": 5, "by_broker": BrokerRates({3: 2_000_000})},
            "The throttle is to be 5 B/s per broker and direction, and broker 3 sends 2 MB/s at "
            "most",
        ),
        (
            {"by_broker": BrokerRates()},
            "The throttle is to be that of no single broker any more",
        ),
    ],
)
def test_a_pace_is_named_and_when_it_holds(
    asked: Mapping[str, Any], pace: str, holds: HoldsFrom, text: str
) -> None:
    assert answer_text(PaceAsked(holds, RUN, "nightly", **asked)) == pace + text


@pytest.mark.parametrize(
    ("done", "left", "text"),
    [
        (Cancelled(), ThrottlesLeft(), "Nothing was in flight. No throttle is left."),
        (
            Cancelled((A,)),
            ThrottlesLeft((SETTING,)),
            "1 move in flight was taken back. 1 throttle setting is pending cleanup.",
        ),
        (
            Cancelled((A,), errors={B: REFUSED}),
            ThrottlesLeft((SETTING, SETTING)),
            "1 move in flight was taken back. These go on, throttled: t-1: "
            "INVALID_REPLICA_ASSIGNMENT (39). 2 throttle settings are pending cleanup.",
        ),
        (
            Cancelled(owed={A: REFUSED}),
            ThrottlesLeft((), 1),
            "The broker of these is not alive: should copies between its log dirs have begun, they "
            "are taken back when it returns: t-0: INVALID_REPLICA_ASSIGNMENT (39). 1 throttle "
            "setting holds a value that this ledger has not set: it stays. Delete by hand what "
            "no other client needs. Nothing else of the plan's throttles is left.",
        ),
    ],
)
def test_a_plan_that_is_cancelled_here_says_what_flew_and_what_is_left(
    done: Cancelled, left: ThrottlesLeft, text: str, ledger: Ledger
) -> None:
    ledger.create_plan(make_plan("p1"), {}, "file:///p1", "run-1", "test")
    answer = CancelledHere(ledger.plan("p1"), done, left)
    assert answer_text(answer) == f"The plan is cancelled. {text}"


def test_no_throttle_is_claimed_to_be_left_only_where_none_is() -> None:
    assert ThrottlesLeft().claims == (NoThrottleLeft(),)
    assert ThrottlesLeft((SETTING,), 1).claims == (Owed((SETTING,)),)
    assert ThrottlesLeft((), 1).claims == ()
