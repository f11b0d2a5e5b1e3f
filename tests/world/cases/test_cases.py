"""Named scripts of faults that are fixed: each shows nothing any more."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from rehome.domain.configs import ConfigResource
from world import cases, cases_of_actors, cases_of_requests
from world.history import OTHERS, ConfigWrite
from world.others import RATES
from world.outcome import Outcome, run
from world.script import Script, What
from world.stage import Stage

FIXED = (
    "TWO_REHOMES",
    "LEDGER_RESTORED",
    "LEDGER_FROM_BEFORE",
    "TWO_CORDONS",
    "RATE_DELETED",
    "LIST_DELETED",
    "LIST_DELETED_LATE",
    "TOPIC_CREATED_AGAIN",
    "DAG_PAUSED",
    "TOPIC_DELETED",
    "PAUSED_AT_WINDOW_END",
    "PAUSED_BEFORE_WINDOW_END",
    "NEVER_CANCELLED",
    "SOURCE_LOST",
    "OUTPACED",
    "RECORDS_DELETED",
    "EMPTY_LIST_DELETED_LATE",
    "LIST_FOUND_EMPTY",
    "RATE_SET_UNSEEN",
    "ITEMS_OF_A_LOST_LEDGER",
    "BEFORE_KEPT",
    "GONE_AFTER_IT_FAILED",
    "CANCELLED_THEN_DELETED",
    "SENT_BACK_AND_CANCELLED",
    "LOG_DIR_FAILED",
    "LATE_FOR_ITS_WINDOW",
    "CORDON_OF_A_LOST_LEDGER",
    "WIPED_BEFORE_IT_MOVES",
    "LOG_DIRS_OF_A_LOST_BROKER",
    "RATE_LEFT_FOR_ANOTHER",
    "SAME_MOVE_BY_OTHERS",
    "RATES_BY_BROKER",
    "RATES_BY_BROKER_CHANGED",
    "RATES_BY_BROKER_LOWERED",
    "RATES_BY_BROKER_KILLED",
    "RATES_BY_BROKER_OTHERS",
    "NEW_LEDGER_IN_MID_POLL",
    "LISTS_OF_A_LOST_LEDGER",
    "EMPTIED_BY_A_LOST_LEDGER",
    "DRAINED_BESIDE_A_CORDON",
    "TAKEN_OVER_AND_LEFT_BETWEEN",
    "CLOCK_PUT_BACK_IN_MID_RUN",
    "REPLACED_WITH_ALL_OF_ITS_REPLICAS",
    "BALANCED_WHILE_A_DISK_IS_FULL",
    "MOVED_BETWEEN_LOG_DIRS_BY_OTHERS",
    "CHANNEL_LATE",
    "CHANNEL_NEVER",
    "CHANNEL_REFUSES",
    "CHANNEL_TWICE",
    "CHANNEL_HANGS",
    "TWO_CONNECTIONS",
    "TWO_ENTRIES",
    "TWO_ENTRIES_IN_MID_RUN",
    "TWO_ENTRIES_WATCHED",
    "NO_ANSWERS",
    "ANSWERED_IN_THE_SECOND_WINDOW",
    "LEFT_PAUSED",
    "ONE_RUN_AT_A_TIME",
    "QUEUED_BEHIND_A_QUESTION",
    "STEPS",
    "STEPS_FORETOLD",
    "STEPS_CANCELLED",
    "STEPS_PAUSED",
    "STEPS_PAST_WINDOW",
    "STEPS_CANCELLED_BY_OTHERS",
    "STEPS_WHILE_BROKERS_DIE",
    "FOREIGN_CANCELLED",
    "FOREIGN_CANCELLED_IN_ORDER",
    "FOREIGN_CLEANED",
    "FOREIGN_BESIDE_ANOTHER",
    "FOREIGN_NOT_CLEANED",
    "FOREIGN_LISTED_AND_FOLLOWED",
    "FOREIGN_FOLLOWED_AND_CANCELLED",
    "FOREIGN_TARGET_DEAD",
    "FOREIGN_WITHOUT_ORIGINALS",
    "FOREIGN_KEPT_AWAY",
    "FOREIGN_REJECTED",
    "FOREIGN_SET_MEANWHILE",
    "FOREIGN_ADOPTED",
    "FOREIGN_ADOPTED_AND_CANCELLED",
    "FOREIGN_ADOPTED_BESIDE_A_PLAN",
    "FOREIGN_ADOPTED_AND_KILLED",
    "FOREIGN_ADOPTED_AND_PAUSED",
    "FOREIGN_ADOPTED_PAST_WINDOW",
    "FOREIGN_ADOPTED_RUN_DELETED",
    "CRUISE_CONTROL_BESIDE",
    "FOLLOWED_UP",
)

pytestmark = pytest.mark.slow


DEFAULT = ConfigResource.cluster_default()
NAMED = {**vars(cases), **vars(cases_of_requests), **vars(cases_of_actors)}


def script(name: str) -> Script:
    found: Script = NAMED[name]
    return found


@cache
def outcome_of(name: str) -> Outcome:
    return run(script(name), traced=False)


def test_every_case_is_tried() -> None:
    assert {name for name, value in NAMED.items() if isinstance(value, Script)} == set(FIXED)


@pytest.mark.parametrize("name", FIXED)
def test_what_is_fixed_shows_nothing(name: str) -> None:
    outcome = outcome_of(name)
    assert outcome.violations == ()
    followed_up = sum(bool(plan.drains) for plan in outcome.script.plans)
    watches = outcome.script.watches
    by_themselves = sum(1 + len(watch.later) for watch in watches)
    adopted = sum(does.what is What.ADOPT_FOREIGN for does in outcome.script.does)
    started = len(outcome.script.plans) + followed_up + by_themselves + adopted
    assert sum(outcome.states.values()) <= started


def test_an_adopted_plan_is_taken_back_at_its_windows_end_and_ends_as_wanted() -> None:
    """Its first run is gone by then: who has adopted it has let each later run act on it."""
    outcome = outcome_of("FOREIGN_ADOPTED_PAST_WINDOW")
    assert outcome.reached["alert", "paused_at_window_end"] == 1
    assert outcome.states == {"done": 1}


@pytest.mark.parametrize("noticed", [True, False])
def test_cruise_control_ends_where_its_topics_are_noticed_and_hangs_on_a_default_else(
    noticed: bool,
) -> None:
    case = script("CRUISE_CONTROL_BESIDE")
    stage = Stage(case if noticed else replace(case, topics=case.topics[:2]))
    try:
        stage.run()
        rated = {each.resource for each in writes_of(stage, "A") if each.key in RATES}
        assert (DEFAULT in rated) is not noticed
        topic = ConfigResource.topic("u")
        last = max(each.at for each in writes_of(stage, OTHERS) if each.resource == topic)
        plan_ended = max(each.at for each in writes_of(stage, "A") if each.key in RATES)
        assert (last < plan_ended) is noticed, "its lists are taken back at its end"
    finally:
        stage.end()


def writes_of(stage: Stage, owner: str) -> list[ConfigWrite]:
    writes = (each for each in stage.history.writes if isinstance(each, ConfigWrite))
    return [each for each in writes if each.owner == owner]
