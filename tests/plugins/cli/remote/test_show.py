"""What commands show is what the page's own data say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rehome.account.known import NotKnown
from rehome.account.words.figure_words import WHY_UNKNOWN
from rehome.cli.output import ExitCode
from tests.plugins.cli.remote.conftest import Shell
from tests.ui.site import EVIL, MB, Site, snapshot_of

Opened = Callable[[str], Shell]


def test_a_plan_that_runs_says_bytes_times_pace_and_what_may_be_asked(
    shell: Opened, site: Site
) -> None:
    plan = site.plan("p1")
    site.run(plan, 3, 2)
    site.poll(plan, 1_600 * MB)
    ann = shell("admin")
    assert ann("status", "p1") == ExitCode.DONE
    lines = ann.out.splitlines()
    assert lines[0] == "Drain broker 4: running"
    assert "on kafka_prod, asked for by ann, approved by bob, started " in lines[2]
    assert lines[3] == "33 %: 1.6 GB of 4.8 GB are in place"
    assert lines[4] == f"end not known: {WHY_UNKNOWN[NotKnown.PAST]}, so far 1 h"
    assert "throttle 50 MB/s per broker (set on brokers: 50 MB/s)" in ann.out
    assert "2 in flight, 7 wait, 3 of 12 moves done, seen " in ann.out
    assert ann("status", "p1", "--json") == ExitCode.DONE
    found = ann.json()
    assert {"pause", "change_throttle", "change_moves", "cancel"} <= set(found["controls"])
    assert (found["bytes"]["in_place"], found["bytes"]["planned"]) == (
        1_600 * MB,
        plan.bytes_to_copy,
    )


def test_plans_are_listed_with_requests_that_have_none(shell: Opened, site: Site) -> None:
    done = site.plan("20261121T010000Z-drain-done")
    site.run(done, 12)
    site.end(done)
    site.plan("20261121T020000Z-drain-planned", actor=EVIL, dry_run=True)
    viewer = shell("viewer")
    assert viewer("status") == ExitCode.DONE
    for text in ("drain-done", "100 %", "drain-planned", "planned"):
        assert text in viewer.out
    assert viewer("status", "--search", "done", "--json") == ExitCode.DONE
    assert [each["plan_id"] for each in viewer.json()["plans"]] == [done.plan_id]


def test_there_may_be_no_plan(shell: Opened, site: Site) -> None:
    viewer = shell("viewer")
    assert viewer("status") == ExitCode.DONE
    assert "No plans yet" in viewer.out
    assert viewer("clusters") == ExitCode.DONE
    assert "No snapshots yet" in viewer.out


def test_clusters_are_listed_with_what_is_not_well(shell: Opened, site: Site) -> None:
    snapshot_of(site)
    viewer = shell("viewer")
    assert viewer("clusters") == ExitCode.DONE
    assert "3 of 4" in viewer.out
    assert "1 broker not alive" in viewer.out
    assert viewer("clusters", "--json") == ExitCode.DONE
    (cluster,) = viewer.json()["clusters"]
    assert (cluster["brokers_away"], cluster["partitions"]) == ([2], 40)
    assert "40 partitions under-replicated" in cluster["not_well"]


def test_a_report_is_fetched(shell: Opened, site: Site, tmp_path: Path) -> None:
    site.plan("p1")
    viewer, out = shell("viewer"), tmp_path / "report.html"
    assert viewer("report", "p1") == ExitCode.DONE
    assert "<title>the report</title>" in viewer.out
    assert viewer("report", "p1", "--out", str(out)) == ExitCode.DONE
    assert "<title>the report</title>" in out.read_text()
    assert viewer("report", "p1", "--out", str(tmp_path)) == ExitCode.FAILED
    assert "cannot be written" in viewer.err


def test_what_cannot_be_shown_is_named_without_a_traceback(shell: Opened, site: Site) -> None:
    viewer = shell("viewer")
    assert viewer("status", "none") == ExitCode.NOT_THERE
    assert "404" in viewer.err
    assert "none" in viewer.err
    site.plan("p1")
    assert viewer("explain", "p1") == ExitCode.USAGE
    assert viewer("explain", "p1", "--partition", "orders") == ExitCode.REFUSED
    assert "'orders' is no partition" in viewer.err
    assert shell("")("status") == ExitCode.NOT_ALLOWED
