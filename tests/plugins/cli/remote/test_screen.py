"""The picture of a plan in a terminal holds what its page's data say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient
from rich.console import Console

from rehome.cli.remote import screen
from rehome.domain.run.states import Control
from tests.ui.site import EVIL, MB, Site, token_of

if TYPE_CHECKING:
    from fastapi import FastAPI


def plan_of(page: FastAPI, plan_id: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A plan and its moves in flight, as the page answers a program of an admin's."""
    client = TestClient(page, base_url="http://testserver/rehome")
    headers = {"Authorization": f"Bearer {token_of('admin')}", "Accept": "application/json"}
    plan = client.get(f"plans/{plan_id}", headers=headers).json()
    found = client.get(f"plans/{plan_id}/tabs/partitions?state=admitted", headers=headers).json()
    return plan, found["moves"]


def drawn(plan: dict[str, Any], moves: list[dict[str, Any]], width: int = 110) -> str:
    console = Console(width=width, record=True, file=None, force_terminal=False, markup=False)
    with console.capture() as captured:
        console.print(screen.picture(plan, moves))
    return captured.get()


def test_a_plan_that_runs_shows_brokers_and_moves_in_flight(page: FastAPI, site: Site) -> None:
    plan = site.plan("p1", actor=EVIL)
    site.run(plan, 3, 2)
    site.poll(plan, 1_600 * MB)
    text = drawn(*plan_of(page, "p1"))
    lines = [line.split() for line in text.splitlines()]
    assert "33 %: 1.6 GB of 4.8 GB are in place" in text
    assert "2 in flight, 7 wait, 3 of 12 moves done" in text
    assert EVIL in text
    (two,) = (line for line in lines if line[:1] == ["2"] and line[-1] == "GB")
    assert " ".join(two).startswith("2 ")
    assert "2 moves" in " ".join(two)
    assert next(line[:7] for line in lines if line[:1] == ["orders-3"]) == [
        "orders-3",
        "4,",
        "1",
        "2,",
        "1",
        "200",
        "MB",
    ]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_it_fits_any_terminal(page: FastAPI, site: Site, width: int) -> None:
    plan = site.plan("p1", actor="x" * 200)
    site.run(plan, 3, 2)
    site.poll(plan, 1_600 * MB)
    text = drawn(*plan_of(page, "p1"), width)
    assert max(map(len, text.splitlines())) <= width


def test_a_plan_that_waits_says_what_to_do(page: FastAPI, site: Site) -> None:
    site.plan("p1", dry_run=True)
    plan, moves = plan_of(page, "p1")
    text = drawn({**plan, "asking": "approve"}, moves)
    assert "planned, waits for approval" in text
    assert "12 moves, 4.8 GB to copy" in text
    assert "! A person has to approve it: rehome approve p1" in text


def test_what_hurts_names_the_command_where_the_reader_may(page: FastAPI, site: Site) -> None:
    site.run(site.plan("p1"), 3, 2)
    plan, _ = plan_of(page, "p1")
    hurt = {
        "text": "It is slow.",
        "next_step": "Ask an operator.",
        "next_step_here": "Raise the throttle.",
        "since": None,
        "control": "change_throttle",
    }
    own = screen.attention_lines({**plan, "attention": [hurt]})
    assert list(own) == ["! It is slow. Raise the throttle. (rehome throttle p1)"]
    others = screen.attention_lines({**plan, "attention": [hurt], "controls": []})
    assert list(others) == ["! It is slow. Ask an operator."]


def test_every_request_has_its_word() -> None:
    assert set(screen.COMMANDS) == {control.value for control in Control}
