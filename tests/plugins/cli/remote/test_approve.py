"""A question is answered from a shell by the code of what was shown."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rehome.cli.output import ExitCode
from rehome.ui.routes import shared
from tests.plugins.cli.remote.conftest import Airflow, Shell
from tests.ui.site import Site

Opened = Callable[[str], Shell]


@pytest.fixture(autouse=True)
def asking(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The task `approve` of the plan's run waits for a person."""
    site.plan("p1", approval=True)
    monkeypatch.setattr(shared, "asking_task", lambda _: "approve")


def test_the_question_is_shown_and_answered_by_its_code(shell: Opened, airflow: Airflow) -> None:
    ann = shell("admin")
    assert ann("status", "p1") == ExitCode.DONE
    assert "rehome approve p1" in ann.out
    assert ann("approve", "p1", "--show") == ExitCode.DONE
    assert (
        ann.out == "May reassign_partitions move it?\nIt takes: Approve a1b2c3, Send back, Reject\n"
    )
    assert ann("approve", "p1", "--show", "--json") == ExitCode.DONE
    assert ann.json()["options"] == list(airflow.options)
    assert ann("approve", "p1", "--code", "000000") == ExitCode.REFUSED
    assert "another code than 000000" in ann.err
    assert airflow.asked == {}
    assert ann("approve", "p1", "--code", "a1b2c3") == ExitCode.DONE
    answer = {"chosen_options": ["Approve a1b2c3"], "params_input": {}}
    assert airflow.asked == {"approve": answer}


def test_a_yes_in_advance_approves_nothing(shell: Opened, airflow: Airflow) -> None:
    assert shell("admin")("approve", "p1", "--yes") == ExitCode.USAGE
    assert airflow.asked == {}


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("--reject",), {"chosen_options": ["Reject"], "params_input": {}}),
        (
            ("--send-back", "20 MB/s"),
            {"chosen_options": ["Send back"], "params_input": {"throttle": "20 MB/s"}},
        ),
    ],
)
def test_it_can_be_rejected_and_sent_back(
    shell: Opened, airflow: Airflow, words: tuple[str, ...], answer: object
) -> None:
    assert shell("admin")("approve", "p1", *words, "--yes") == ExitCode.DONE
    assert airflow.asked == {"approve": answer}


def test_a_plan_that_asks_nothing_is_named(shell: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "asking_task", lambda _: None)
    ann = shell("admin")
    assert ann("approve", "p1") == ExitCode.REFUSED
    assert "does not wait for an answer: it is planned" in ann.err
