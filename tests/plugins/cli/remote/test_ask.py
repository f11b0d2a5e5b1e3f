"""What a person asks of a plan from a shell is what the buttons of its page ask."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from rehome.account.requests import RequestState
from rehome.cli.output import ExitCode
from rehome.cli.remote import ask, watch
from rehome.cli.remote.screen import COMMANDS
from rehome.domain.run.causes.cause import Cause, CauseKind
from rehome.domain.run.states import Control, PlanState
from rehome.ledger.stores.by_run.causes import EndedRun
from rehome.ui import dag_runs
from tests.plugins.cli.remote.conftest import RUN_ID, Airflow, Shell
from tests.ui.site import Site

Opened = Callable[[str], Shell]


@pytest.fixture(autouse=True)
def runs(monkeypatch: pytest.MonkeyPatch) -> dict[str, dag_runs.RunProgress]:
    """How far runs are, by their ids: no scheduler is here. A control's run has ended well."""
    found: dict[str, dag_runs.RunProgress] = {}
    well = dag_runs.RunProgress(ended=True, failed=False)
    monkeypatch.setattr(dag_runs, "outcome", lambda _dag, run_id: found.get(run_id, well))
    return found


def test_every_request_has_a_command(shell: Opened) -> None:
    assert {verb.words for verb in ask.verbs()} == {(COMMANDS[each.value],) for each in Control}
    assert set(ask.ASKED_FOR) == set(Control)


def test_a_throttle_is_asked_for_in_the_persons_name_after_what_it_leads_to(
    shell: Opened, site: Site, triggered: list[dict[str, Any]]
) -> None:
    site.run(site.plan("p1"), 3, 2)
    ann = shell("admin")
    assert ann("throttle", "p1", "20MB/s", "--yes") == ExitCode.DONE
    assert "The next poll sets it on every broker of the plan" in ann.out
    assert "The request was passed on." in ann.out
    (run,) = triggered
    assert (run["dag_id"], run["triggering_user_name"]) == ("control_reassignment", "admin")
    assert run["conf"]["action"] == Control.CHANGE_THROTTLE
    assert (run["conf"]["plan_id"], run["conf"]["throttle"]) == ("p1", 20_000_000)


@pytest.mark.parametrize(
    ("words", "conf"),
    [
        (("pause", "p1"), {"action": "pause"}),
        (("cancel", "p1"), {"action": "cancel"}),
        (("moves", "p1", "2"), {"action": "change_moves", "max_moves_per_broker": 2}),
        (
            ("throttle", "p1", "--by-broker", '{"1": 5000000}'),
            {"throttle_by_broker": {"1": {"leader": 5_000_000, "follower": 5_000_000}}},
        ),
    ],
)
def test_each_request_carries_what_it_needs(
    shell: Opened, site: Site, triggered: list[dict[str, Any]], words: tuple[str, ...], conf: Any
) -> None:
    site.run(site.plan("p1"), 3, 2)
    assert shell("admin")(*words, "--yes", "--json") == ExitCode.DONE
    assert {**triggered[0]["conf"], **conf} == triggered[0]["conf"]


def test_nothing_is_asked_for_without_a_yes(
    shell: Opened,
    site: Site,
    triggered: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site.run(site.plan("p1"), 3, 2)
    ann = shell("admin")
    assert ann("cancel", "p1") == ExitCode.USAGE
    assert "Give --yes" in ann.err

    class Terminal:
        said = "no\n"

        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return self.said

    monkeypatch.setattr("sys.stdin", Terminal())
    assert ann("cancel", "p1") == ExitCode.REFUSED
    assert "Cancel the plan p1? [y/N]" in ann.err
    assert triggered == []
    Terminal.said = "y\n"
    assert ann("cancel", "p1") == ExitCode.DONE
    assert len(triggered) == 1


def test_what_is_not_possible_is_refused_before_anything_is_triggered(
    shell: Opened, site: Site, airflow: Airflow, triggered: list[dict[str, Any]]
) -> None:
    site.plan("p1", dry_run=True)
    ann = shell("admin")
    assert ann("pause", "p1", "--yes") == ExitCode.REFUSED
    assert "planned by now" in ann.err
    assert ann("run", "p1", "--throttle", "fast", "--yes") == ExitCode.REFUSED
    assert "fast is no rate" in ann.err
    airflow.paused.add("reassign_partitions")
    assert ann("run", "p1", "--yes") == ExitCode.REFUSED
    assert "reassign_partitions is paused in Airflow" in ann.err
    airflow.gone.add("control_reassignment")
    assert ann("run", "p1", "--yes") == ExitCode.NOT_THERE
    assert "rehome dags install" in ann.err
    viewer = shell("viewer")
    assert viewer("cancel", "p1", "--yes") == ExitCode.NOT_ALLOWED
    assert "no right to edit and trigger" in viewer.err
    assert triggered == []


def test_a_request_that_was_refused_on_its_way_says_why(
    shell: Opened,
    site: Site,
    triggered: list[dict[str, Any]],
    runs: dict[str, dag_runs.RunProgress],
) -> None:
    site.run(site.plan("p1"), 3, 2)
    runs[RUN_ID] = dag_runs.RunProgress(ended=True, failed=True)
    ann = shell("admin")
    assert ann("pause", "p1", "--yes") == ExitCode.FAILED
    assert "See the logs of run manual__1 of control_reassignment" in ann.err
    cause = Cause(
        CauseKind.WRONG_CLUSTER, "It leads elsewhere.", "", "Correct it.", site.clock(), "request"
    )
    site.ledger.record_cause(EndedRun("control_reassignment", RUN_ID, cause))
    assert ann("pause", "p1", "--yes") == ExitCode.FAILED
    assert ann.err == "rehome: It leads elsewhere. Correct it.\n"


def test_watching_ends_with_the_plan_and_says_how(
    shell: Opened,
    site: Site,
    runs: dict[str, dag_runs.RunProgress],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = site.plan("p1")
    site.run(plan, 3, 2)
    site.poll(plan, 1_600_000_000)
    steps = [lambda: None, lambda: site.end(plan)]

    def next_step(_: float) -> None:
        monkeypatch.setattr("rehome.ui.routes.shared.FRESH_S", -1.0)
        steps.pop(0)()

    monkeypatch.setattr(watch, "time", SimpleNamespace(sleep=next_step))
    ann = shell("viewer")
    assert ann("watch", "p1") == ExitCode.DONE
    lines = ann.out.splitlines()
    assert lines[0].startswith("running: 33 %, 1.6 GB of 4.8 GB are in place")
    assert lines[1].startswith("done: 100 %")
    assert ann("watch", "p1", "--json") == ExitCode.DONE
    assert ann.json()["state"] == "done"
    runs["manual__p1"] = dag_runs.RunProgress(ended=True, failed=True)
    assert ann("watch", "p1") == ExitCode.FAILED


def test_a_plan_that_failed_ends_watching_with_one(shell: Opened, site: Site) -> None:
    plan = site.plan("p1")
    site.run(plan, 3, 2)
    site.end(plan, PlanState.FAILED, "nothing moved for 600 s")
    ann = shell("viewer")
    assert ann("watch", "p1") == ExitCode.FAILED
    assert "failed" in ann.out


def test_a_plan_that_a_run_is_about_to_take_up_is_watched_on(
    shell: Opened, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rehome.account.requests import RequestLine

    site.plan("p1", dry_run=True)
    going = [
        RequestLine("reassign_partitions", "r2", RequestState.STARTING, site.clock(), "ann", "p1")
    ]
    monkeypatch.setattr(dag_runs, "unfinished_runs", lambda: going)
    looked: list[float] = []

    def next_step(seconds: float) -> None:
        looked.append(seconds)
        going.clear()

    monkeypatch.setattr(watch, "time", SimpleNamespace(sleep=next_step))
    assert shell("viewer")("watch", "p1") == ExitCode.DONE
    assert looked == [watch.EACH_LOOK_S]
