"""What has to hold of the day, as it was run last: a person on call finds it right."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from rehome.domain.run.findings import Severity
from rehome.domain.run.states import PlanState
from rehome.domain.run.watched.finding_kinds import FindingKind, WatchPolicy
from rehome.watching.respond import NotNow
from tests.dags.day.happened import Act, Happened, loaded
from tests.dags.day.table import BEGIN, DOCUMENT, END, lines

DEAD, EMPTY, LOG_DIR = (
    FindingKind.DEAD_BROKER,
    FindingKind.EMPTY_BROKER,
    FindingKind.OFFLINE_LOG_DIR,
)
HEAL, PROPOSE, DONE = WatchPolicy.HEAL, WatchPolicy.PROPOSE, PlanState.DONE


def has_gone_right(rows: Sequence[Happened]) -> None:
    """Of each row, what was found, told, started and left, by types and numbers."""
    assert [row.act for row in rows] == list(Act)
    by_act = {row.act: row for row in rows}
    restart, flapping = by_act[Act.RESTART], by_act[Act.FLAPPING]
    worse = [each for each in restart.opened if each.kind.severity is not Severity.INFO]
    assert (worse, restart.started) == ([], []), "nothing that takes a person, or a run"
    assert flapping.kinds_opened() == {(FindingKind.FLAPPING_BROKER, "broker 6")}
    assert flapping.alerts() == ["finding"]
    assert not flapping.started, "nothing is copied off a broker that comes back"
    _healed(by_act[Act.BROKER_DIES], DEAD, "broker 2")
    _approved(by_act[Act.NEW_BROKER])
    _full(by_act[Act.DISK_FULL])
    edited, broken = by_act[Act.EDITED_CONNECTION], by_act[Act.BROKEN_FILE]
    assert not edited.started
    assert edited.facts == {"plans_made": 0}
    wrong, *rest = edited.told
    assert wrong.kind == "wrong_cluster"
    watched = by_act[Act.BROKER_DIES].told[0].subject.split()[0]
    assert {each.subject.split()[0] for each in rest} <= {watched}, "nothing of the other cluster"
    assert {each.severity for each in rest} <= {Severity.INFO}, "nothing that takes a person"
    assert "failed" in broken.alerts()
    assert not broken.started
    assert broken.facts == {"run_state": "failed"}
    _away(by_act[Act.RACK_DIES])
    _slow(by_act[Act.SLOW_WEBHOOK])
    _lapsed(by_act[Act.NO_ANSWER])
    ids = [each.message_id for row in rows for each in row.told]
    assert len(ids) == len(set(ids)), "nothing is sent twice"


def _healed(row: Happened, kind: FindingKind, subject: str) -> None:
    opened = [each for each in row.opened if (each.kind, each.subject) == (kind, subject)]
    (found,) = opened
    assert found.snapshots in (4, 5), "when the grace time of 30 min is over"
    (heal,) = row.started
    assert (heal.kind, heal.policy, heal.outcome) == (kind, HEAL, DONE)
    assert (heal.dag, heal.action) == ("rebalance_in_window", "fix_offline_replicas")
    assert heal.moves > 0
    assert heal.at == found.at, "by the snapshot that has opened it"
    assert (kind, subject) in {(each.kind, each.subject) for each in row.closed}
    assert {"finding", "done"} <= set(row.alerts())


def _approved(row: Happened) -> None:
    assert (EMPTY, "broker 7") in row.kinds_opened()
    proposal = next(each for each in row.started if each.subject == "broker 7")
    assert (proposal.policy, proposal.outcome) == (PROPOSE, DONE)
    assert proposal.moves > 0
    assert {"finding", "approval_waiting", "done"} <= set(row.alerts())


def _full(row: Happened) -> None:
    (opened,) = (each for each in row.opened if each.kind is LOG_DIR)
    (heal,) = (each for each in row.started if each.kind is LOG_DIR)
    assert (heal.policy, heal.outcome) == (HEAL, DONE)
    assert heal.moves > 0
    assert (LOG_DIR, opened.subject, NotNow.ATTEMPTED) in row.why_not(), "once is enough"
    assert LOG_DIR in {each.kind for each in row.closed}, "after the restart"
    assert all("reasons name" not in each.text for each in row.not_started)


def _away(row: Happened) -> None:
    dead = {(DEAD, "broker 5"), (DEAD, "broker 6")}
    assert dead <= row.kinds_opened()
    assert {(*each, NotNow.DOMAIN_AWAY) for each in dead} <= row.why_not()
    assert not row.started
    assert dead <= {(each.kind, each.subject) for each in row.closed}
    told = [each for each in row.told if "Dead broker" in each.text]
    assert len(told) == 2
    for each in told:
        assert "heals it" not in each.next_step


def _slow(row: Happened) -> None:
    _healed(row, DEAD, "broker 1")
    assert row.facts["longest_sending_s"] >= 9, "it was slow"
    assert row.facts["longest_judging_s"] < 9, "what is decided does not wait for it"


def _lapsed(row: Happened) -> None:
    proposal, heal = row.started
    assert (proposal.policy, proposal.subject) == (PROPOSE, "broker 2")
    assert (proposal.outcome, proposal.moves > 0) == (PlanState.CANCELLED, True)
    assert (EMPTY, "broker 2", NotNow.ATTEMPTED) in row.why_not()
    assert (heal.policy, heal.kind, heal.subject) == (HEAL, DEAD, "broker 3")
    assert heal.outcome is DONE, "the question keeps nothing waiting"


def test_the_day_that_was_run_last_has_gone_right() -> None:
    has_gone_right(loaded()[0])


def test_the_handbook_has_the_day_that_was_run_last() -> None:
    text = DOCUMENT.read_text().partition(BEGIN)[2].partition(END)[0]
    assert text.strip().splitlines() == list(itertools.chain(lines(*loaded())))[:-1]
