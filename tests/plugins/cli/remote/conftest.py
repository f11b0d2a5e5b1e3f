"""The command line against the page as Airflow's API server serves it, without a scheduler."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from fastapi import FastAPI, HTTPException, Request

from rehome.cli.main import main
from tests.ui.conftest import page, site, triggered  # noqa: F401
from tests.ui.site import Site, served, token_of

RUN_ID = "manual__1"


@dataclass
class Airflow:
    """What the public API answers here: a DAG each, and a question to a person.

    :param asked: requests that would have changed something: path → body.
    """

    paused: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    options: tuple[str, ...] = ("Approve a1b2c3", "Send back", "Reject")
    asked: dict[str, Any] = field(default_factory=dict)


@dataclass
class Shell:
    """A terminal of a user: ``shell("status", "--json")`` returns the exit code.

    :param out, err: what the last command has printed.
    """

    url: str
    capsys: pytest.CaptureFixture[str]
    out: str = ""
    err: str = ""

    def __call__(self, *words: str) -> int:
        self.capsys.readouterr()
        code = main([*words, "--airflow", self.url])
        said = self.capsys.readouterr()
        self.out, self.err = said.out, said.err
        return code

    def json(self) -> Any:
        """What the last command has printed for programs."""
        return json.loads(self.out)


@pytest.fixture(scope="session")
def airflow_of_all() -> Airflow:
    return Airflow()


@pytest.fixture
def airflow(airflow_of_all: Airflow) -> Airflow:
    """As it is at the beginning of a test."""
    vars(airflow_of_all).update(vars(Airflow()))
    return airflow_of_all


@pytest.fixture(scope="session")
def url(page: FastAPI, airflow_of_all: Airflow) -> Iterator[str]:  # noqa: F811
    """The page, and beside it as much of the public API as commands ask for."""
    airflow, whole = airflow_of_all, FastAPI()

    @whole.get("/api/v2/dags/{dag_id}")
    def dag(dag_id: str) -> dict[str, Any]:
        if dag_id in airflow.gone:
            raise HTTPException(404, f"Dag with ID: `{dag_id}` was not found")
        return {"dag_id": dag_id, "is_paused": dag_id in airflow.paused}

    @whole.post("/api/v2/dags/{dag_id}/dagRuns")
    async def trigger(dag_id: str, request: Request) -> dict[str, Any]:
        airflow.asked[dag_id] = await request.json()
        return {"dag_run_id": RUN_ID}

    @whole.get("/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task}/-1/hitlDetails")
    def question(dag_id: str, run_id: str, task: str) -> dict[str, Any]:
        return {"body": f"May {dag_id} move it?", "options": airflow.options}

    @whole.patch("/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task}/-1/hitlDetails")
    async def answer(dag_id: str, run_id: str, task: str, request: Request) -> dict[str, Any]:
        airflow.asked[task] = await request.json()
        return {"chosen_options": airflow.asked[task]["chosen_options"]}

    whole.mount("/", page)
    with served(whole) as address:
        yield address


@pytest.fixture
def shell(
    url: str,
    site: Site,  # noqa: F811
    airflow: Airflow,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[[str], Shell]:
    """The terminal of a user of a role; of nobody who is known: ``shell("")``."""

    def opened(role: str) -> Shell:
        monkeypatch.setenv("REHOME_TOKEN", token_of(role) if role else "forged")
        return Shell(url, capsys)

    return opened
