"""Findings over several snapshots, in the ledger: they open late, close late and do not flap."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rehome.clusters.watch_rules import WatchRules
from rehome.domain.run.watched.finding import Seen
from rehome.domain.run.watched.finding_kinds import FindingKind
from rehome.ledger.store import Ledger
from rehome.watching.open_and_close import after_snapshot

START = datetime(2030, 1, 1, tzinfo=UTC)
DEAD = Seen(FindingKind.DEAD_BROKER, "broker 3", {"replicas": 7})
RULES = WatchRules(grace_s=1200, snapshots_to_close=3)
GAP = timedelta(minutes=30)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as opened:
        yield opened


def followed(ledger: Ledger, away: str, rules: WatchRules = RULES) -> str:
    """Snapshots each ten minutes, ``x`` with a dead broker; "o", "c": opened and closed by it.

    :param away: ``-``: there is none; ``?``: it does not say.
    """
    found = ""
    for number, each in enumerate(away):
        at = START + timedelta(minutes=10 * number)
        if each == "-":
            continue
        unknown = [DEAD.kind] if each == "?" else []
        seen = [DEAD] if each == "x" else []
        after = ledger.follow_findings(
            "c1", at, after_snapshot(seen, rules, unknown, longest_gap=GAP)
        )
        found += "o" if after.opened else "c" if after.closed else "."
    return found


def test_a_dead_broker_opens_a_finding_when_the_grace_time_is_over(ledger: Ledger) -> None:
    assert followed(ledger, "xxxx") == "..o."
    [finding] = ledger.open_findings("c1")
    assert (finding.subject, finding.facts) == ("broker 3", {"replicas": 7})
    assert finding.opened_at == START + timedelta(minutes=20)


def test_a_restart_within_the_grace_time_is_no_finding(ledger: Ledger) -> None:
    assert followed(ledger, "xx.xx.xx.") == "........."


def test_a_flapping_broker_has_one_finding_that_stays(ledger: Ledger) -> None:
    assert followed(ledger, "xxx.x..x.x...") == "..o.........c"


@pytest.mark.parametrize(
    ("away", "times"), [("xxx.xxx.xxx.", None), ("xxx.xxx.xxx.x", 4), ("x.x.x.x.x", 5)]
)
def test_a_broker_that_comes_and_goes_is_found_though_no_absence_is_long_enough(
    ledger: Ledger, away: str, times: int | None
) -> None:
    followed(ledger, away, WatchRules(grace_s=1800))
    flaps = {each.subject: each.facts for each in ledger.open_findings("c1")}
    since = f"{START:%Y-%m-%d %H:%M} UTC"
    assert flaps == ({"broker 3": {"times": times, "since": since}} if times else {})


def test_flapping_is_over_when_the_absences_are_a_day_old(ledger: Ledger) -> None:
    rules = WatchRules(grace_s=1800)
    followed(ledger, "x.x.x.x.", rules)
    assert [each.kind for each in ledger.open_findings("c1")] == [FindingKind.FLAPPING_BROKER]
    for hours in (23.5, 23.6, 23.7, 24.1, 24.2, 24.3):
        at = START + timedelta(hours=hours)
        after = ledger.follow_findings("c1", at, after_snapshot([], rules, longest_gap=GAP))
        assert bool(after.closed) is (hours == 24.3)


def test_what_a_long_gap_hides_is_no_second_absence(ledger: Ledger) -> None:
    followed(ledger, "x----x----x----x----x")
    assert ledger.open_findings("c1") == []


def test_a_time_from_the_future_blinds_nothing_when_the_clock_is_right_again(
    tmp_path: Path,
) -> None:
    """A clock was a day ahead. What was judged by it is followed by the time of now."""
    now = [START + timedelta(days=1)]
    with Ledger.open(f"sqlite:///{tmp_path}/ahead.db", clock=lambda: now[0]) as ledger:
        rules = WatchRules(grace_s=0, snapshots_to_close=2)
        for minutes in (0, 10):
            at = now[0] + timedelta(minutes=minutes - 10)
            ledger.follow_findings("c1", at, after_snapshot([DEAD], rules, longest_gap=GAP))
        assert len(ledger.open_findings("c1")) == 1
        now[0] = START
        assert not ledger.follow_findings(
            "c1", START, after_snapshot([], rules, longest_gap=GAP)
        ).closed
        assert ledger.watched_clusters() == {"c1": START}
        at = now[0] = START + timedelta(minutes=10)
        [closed] = ledger.follow_findings(
            "c1", at, after_snapshot([], rules, longest_gap=GAP)
        ).closed
        assert (closed.kind, closed.closed_at) == (FindingKind.DEAD_BROKER, at)


def test_a_finding_opens_again_as_a_new_one(ledger: Ledger) -> None:
    assert followed(ledger, "xxx...xxx") == "..o..c..o"
    [finding] = ledger.open_findings("c1")
    assert finding.opened_at == START + timedelta(minutes=80)


def test_a_snapshot_counts_once(ledger: Ledger) -> None:
    rules = WatchRules(grace_s=0)
    for _ in range(3):
        assert not ledger.follow_findings(
            "c1", START, after_snapshot([DEAD], rules, longest_gap=GAP)
        ).open


def test_a_finding_that_a_snapshot_does_not_judge_stays_open(ledger: Ledger) -> None:
    assert followed(ledger, "xxx??????") == "..o......"


@pytest.mark.parametrize("nothing", ["-", "?"])
def test_what_a_long_gap_hides_does_not_count_as_lasting(ledger: Ledger, nothing: str) -> None:
    """A broker that is away before the gap and after it may have been back in between."""
    assert followed(ledger, f"x{nothing * 2}x").endswith("o"), "as long as a gap may be"
    ledger.follow_findings("c2", START, after_snapshot([DEAD], RULES, longest_gap=GAP))
    for minutes, opens in ((40, False), (50, False), (60, True)):
        at = START + timedelta(minutes=minutes)
        after = ledger.follow_findings("c2", at, after_snapshot([DEAD], RULES, longest_gap=GAP))
        assert bool(after.opened) is opens


def test_a_long_gap_closes_nothing(ledger: Ledger) -> None:
    assert followed(ledger, "xxx-----x..-----.") == "..o...c"


def test_what_a_snapshot_shows_counts_though_its_absence_would_prove_nothing(
    ledger: Ledger,
) -> None:
    for number in range(3):
        at = START + timedelta(minutes=10 * number)
        unknown = [FindingKind.DEAD_BROKER]
        ledger.follow_findings("c1", at, after_snapshot([DEAD], RULES, unknown, longest_gap=GAP))
    assert len(ledger.open_findings("c1")) == 1
