"""What is started for findings, and when nothing is."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rehome.clusters.watch_rules import WatchRules
from rehome.domain.actions import Action
from rehome.domain.request.parse_request import parse_request
from rehome.domain.run.findings import Severity
from rehome.domain.run.watched.finding import FindingRecord
from rehome.domain.run.watched.finding_kinds import REMEDIED, FindingKind, WatchPolicy
from rehome.watching.last_attempt import Attempted, LastAttempt
from rehome.watching.remedy import action_of
from rehome.watching.respond import Facts, NotNow, Response, respond
from tests.planning.clusters import cluster
from tests.planning.planned import T, plan

NOW = datetime(2030, 1, 2, tzinfo=UTC)
HEALING = WatchRules(policy=WatchPolicy.HEAL, budget_bytes=10)


SUBJECTS = {FindingKind.REPLICATION_FACTOR: "orders"}


def finding(kind: FindingKind, subject: str = "broker 3", **facts: Any) -> FindingRecord:
    return FindingRecord("c1", kind, subject, NOW, NOW, NOW, 3, 0, NOW, None, facts)


DEAD = finding(FindingKind.DEAD_BROKER)
REFUSED = LastAttempt("run-1", NOW, NOW, Attempted.REFUSED)


def answer(facts: Facts, rules: WatchRules = HEALING) -> Response:
    return respond([DEAD], facts, rules, NOW)


def test_a_lower_replication_factor_is_proposed_at_most() -> None:
    for lowers, policy in ((True, WatchPolicy.PROPOSE), (False, WatchPolicy.HEAL)):
        kind, facts = FindingKind.REPLICATION_FACTOR, {"replication_factor": 2, "lowers": lowers}
        start = respond([finding(kind, "orders", **facts)], Facts(), HEALING, NOW).start
        assert start is not None
        assert (start.policy, start.params["approval"]) == (policy, lowers)


def test_by_default_nothing_is_started() -> None:
    assert answer(Facts(), WatchRules()) == Response()


@pytest.mark.parametrize("kind", sorted(REMEDIED))
def test_what_is_started_is_a_valid_request(kind: FindingKind) -> None:
    start = respond(
        [finding(kind, SUBJECTS.get(kind, "broker 3"), replication_factor=3)], Facts(), HEALING, NOW
    ).start
    assert start is not None
    request = parse_request(start.params)
    assert request.throttle_max == HEALING.largest_throttle
    copies = request.action is not Action.ELECT_PREFERRED
    assert request.budget_bytes == (HEALING.budget_bytes if copies else None)
    assert not request.approval


def test_leader_skew_is_remedied_by_elections_which_leave_a_demoted_broker_alone() -> None:
    of = replace(cluster([""] * 3, [(1, 2, 0), (2, 1, 0)]), leaders={T[0]: 2})
    made = plan(of, action=action_of(FindingKind.LEADER_SKEW).value)
    assert [(move.partition, move.target) for move in made.moves] == [(T[0], (1, 2, 0))]
    assert made.summary.elections == 1


def test_a_replication_factor_leaves_topics_of_an_earlier_pattern_alone() -> None:
    declared = {"orders-critical": 3, "orders-*": 2, "*": 1}
    rules = WatchRules.parse({"policy": "heal", "replication_factors": declared})
    off = finding(FindingKind.REPLICATION_FACTOR, "orders-*", replication_factor=2)
    start = respond([off], Facts(), rules, NOW).start
    assert start is not None
    request = parse_request(start.params)
    assert (request.topics, request.exclude_topics) == (("orders-*",), ("orders-critical",))


def test_a_proposal_waits_for_approval_until_its_deadline() -> None:
    start = answer(
        Facts(), WatchRules.parse({"policies": {"dead_broker": "propose"}, "approval_s": 60})
    ).start
    assert start is not None
    assert start.params["approval"]
    assert start.deadline == NOW + timedelta(seconds=60)


def test_a_heal_that_a_person_has_to_approve_is_a_proposal() -> None:
    """It would wait for its answer without a deadline, and another one would join it each day."""
    start = answer(Facts(approval=True)).start
    assert start is not None
    assert (start.policy, start.params["approval"]) == (WatchPolicy.PROPOSE, True)
    assert start.deadline == NOW + timedelta(seconds=HEALING.approval_s)


def test_one_run_is_started_for_the_worst_finding_first() -> None:
    found = [finding(FindingKind.EMPTY_BROKER), DEAD]
    response = respond(found, Facts(), HEALING, NOW)
    assert response.start is not None
    assert response.start.finding is DEAD
    assert list(response.waits.values()) == [NotNow.PLAN_ACTIVE]


@pytest.mark.parametrize(
    ("facts", "wait"),
    [
        (Facts(active_plan="p"), NotNow.PLAN_ACTIVE),
        (Facts(pending=True), NotNow.PLAN_ACTIVE),
        (Facts(gate_refuses=True), NotNow.GATE_REFUSES),
        (Facts(refused_actions={"fix_offline_replicas"}), NotNow.NOT_ALLOWED),
        (Facts(window_dag_paused=True), NotNow.WINDOW_DAG_PAUSED),
        (Facts(domains_away=["rack /r1"]), NotNow.DOMAIN_AWAY),
        (Facts(attempts={DEAD.key: REFUSED}), NotNow.ATTEMPTED),
        (Facts(heals=[NOW] * 3), NotNow.HEALING_STOPPED),
    ],
)
def test_nothing_is_started(facts: Facts, wait: NotNow) -> None:
    response = answer(facts)
    assert response.start is None
    assert list(response.waits.values()) == [wait]


@pytest.mark.parametrize(
    ("kind", "policy", "proposed", "starts"),
    [
        (FindingKind.DEAD_BROKER, WatchPolicy.HEAL, Severity.ERROR, True),
        (FindingKind.DEAD_BROKER, WatchPolicy.PROPOSE, Severity.ERROR, False),
        (FindingKind.DEAD_BROKER, WatchPolicy.PROPOSE, Severity.INFO, True),
        (FindingKind.RACK_VIOLATION, WatchPolicy.HEAL, Severity.ERROR, False),
        (FindingKind.RACK_VIOLATION, WatchPolicy.HEAL, Severity.WARNING, False),
        (FindingKind.RACK_VIOLATION, WatchPolicy.HEAL, Severity.INFO, True),
        (FindingKind.EMPTY_BROKER, WatchPolicy.HEAL, Severity.INFO, False),
    ],
)
def test_a_proposal_holds_up_what_is_no_worse_than_its_own_finding(
    kind: FindingKind, policy: WatchPolicy, proposed: Severity, *, starts: bool
) -> None:
    """And no heal of an error at all."""
    rules = WatchRules(policy=policy)
    response = respond([finding(kind)], Facts(proposed={proposed}), rules, NOW)
    assert (response.start is not None) is starts
    assert list(response.waits.values()) == [NotNow.PROPOSED] * (not starts)


def test_a_plan_that_gets_nowhere_makes_way_for_a_heal_of_what_is_worst_alone() -> None:
    stuck = Facts(active_plan="p", stuck=True)
    assert answer(stuck).start is not None
    outside = answer(replace(stuck, in_window=False))
    assert list(outside.waits.values()) == [NotNow.PLAN_ACTIVE], "its dry run would be refused"
    assert list(answer(replace(stuck, pending=True)).waits.values()) == [NotNow.PLAN_ACTIVE]
    assert answer(stuck, WatchRules(policy=WatchPolicy.PROPOSE)).start is None
    uneven = finding(FindingKind.IMBALANCE, "bytes")
    assert respond([uneven], stuck, HEALING, NOW).start is None


def test_while_a_broker_may_be_restarting_only_what_another_one_held_is_repaired() -> None:
    off = finding(FindingKind.IMBALANCE, "bytes")
    response = respond([off, DEAD], Facts(away=True), HEALING, NOW)
    assert response.start is not None
    assert response.start.finding is DEAD
    assert response.waits == {(off.kind, off.subject): NotNow.BROKER_AWAY}


def test_while_many_brokers_are_dead_nothing_is_healed_and_all_is_proposed() -> None:
    away = Facts(domains_away=["5 of 9 brokers"])
    assert answer(away).start is None
    assert answer(away, WatchRules(policy=WatchPolicy.PROPOSE)).start is not None


@pytest.mark.parametrize("kind", sorted(REMEDIED))
def test_nothing_that_is_started_fills_a_broker_that_a_person_has_emptied(
    kind: FindingKind,
) -> None:
    off = finding(kind, SUBJECTS.get(kind, "broker 3"), replication_factor=3)
    facts = Facts(drained={5}, targets={"exclude_brokers": [7]})
    start = respond([off], facts, HEALING, NOW).start
    assert start is not None
    copies = parse_request(start.params).action is not Action.ELECT_PREFERRED
    assert parse_request(start.params).exclude_brokers == ((5, 7) if copies else ())


def test_healing_goes_on_a_day_later_and_proposals_never_stop() -> None:
    heals = [NOW - timedelta(days=1)] * 3
    assert answer(Facts(heals=heals)).start is not None
    proposing = WatchRules(policy=WatchPolicy.PROPOSE)
    assert answer(Facts(heals=[NOW] * 3), proposing).start is not None


def test_nothing_is_started_for_a_broker_that_is_back_or_twice_for_one_finding() -> None:
    back = replace(DEAD, seen=0, clean=1)
    assert respond([back], Facts(), HEALING, NOW).start is None
    done = Facts(attempts={DEAD.key: replace(REFUSED, outcome=Attempted.NOT_ENOUGH)})
    assert answer(done) == Response(waits={DEAD.key: NotNow.ATTEMPTED})
    assert answer(Facts(attempts={DEAD.key: REFUSED}, by_person=True)).start is not None


def test_a_heal_is_carried_out_in_a_window_and_planned_for_it_before() -> None:
    """A cluster without windows is always open."""
    for facts in (Facts(), Facts(window_began=False)):
        start = answer(facts).start
        assert start is not None
        assert start.in_window
        assert not parse_request(start.params).dry_run
    start = answer(Facts(in_window=False)).start
    assert start is not None
    assert (start.in_window, start.deadline) == (False, None)
    assert parse_request(start.params).dry_run


def test_what_is_worst_does_not_wait_behind_a_run_of_the_window_that_waits_for_a_person() -> None:
    """Another DAG heals it, until the window closes; all else waits its turn."""
    closes = NOW + timedelta(hours=2)
    asked = Facts(has_question=True, window_closes=closes)
    start = answer(asked).start
    assert start is not None
    assert (start.in_window, start.policy) == (False, WatchPolicy.HEAL)
    request = parse_request(start.params, now=NOW)
    assert (request.dry_run, request.approval, request.window_end) == (False, False, closes)
    always_open = answer(replace(asked, window_closes=None)).start
    assert always_open is not None
    assert parse_request(always_open.params).window_end is None
    later = respond([finding(FindingKind.EMPTY_BROKER)], asked, HEALING, NOW).start
    assert later is not None
    assert later.in_window
    assert answer(replace(asked, in_window=False)).start == answer(Facts(in_window=False)).start


def test_a_proposal_waits_for_no_window_nor_for_its_dag() -> None:
    proposing = WatchRules(policy=WatchPolicy.PROPOSE)
    start = answer(Facts(in_window=False, window_dag_paused=True), proposing).start
    assert start is not None
    assert (start.in_window, start.params["approval"]) == (False, True)
    assert not parse_request(start.params).dry_run


def test_what_was_handed_over_is_carried_out_where_the_windows_own_run_has_left_it() -> None:
    handed_over = {DEAD.key: replace(REFUSED, outcome=Attempted.HANDED_OVER)}
    for waits in (Facts(in_window=False), Facts(window_began=False)):
        assert answer(replace(waits, attempts=handed_over)).start is None
    later = answer(Facts(attempts=handed_over)).start
    assert later is not None
    assert later.in_window
