"""Tokens end while a command runs: another is got where one can be had, else the user is asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI, HTTPException, Request

from rehome.cli.main import main
from rehome.cli.output import CommandError, ExitCode
from rehome.cli.remote import watch
from rehome.cli.remote.airflow_client import AirflowClient, SignIn
from tests.ui.site import served

PLAN = "20300131T040000Z-drain-0123456789"
LOOKS = 4
ANOTHER = "get a new one from Airflow's /auth/token, and set REHOME_TOKEN"


@dataclass
class Tokens:
    """What the server knows of tokens: each is good for two requests.

    :param says: what it answers where a token has ended.
    """

    url: str = ""
    says: int = 401
    given: int = 0
    used: dict[str, int] = field(default_factory=dict)
    looks: int = 0

    def give(self) -> dict[str, str]:
        """A new one."""
        self.given += 1
        self.used[f"token-{self.given}"] = 0
        return {"access_token": f"token-{self.given}"}

    def check(self, request: Request) -> None:
        """Use the token of a request."""
        token = request.headers["authorization"].removeprefix("Bearer ")
        self.used[token] = self.used.get(token, 2) + 1
        if self.used[token] > 2:
            raise HTTPException(self.says, {"rehome": "Token Expired"})


@pytest.fixture
def tokens() -> Iterator[Tokens]:
    app, known = FastAPI(), Tokens()
    app.post("/auth/token")(known.give)
    app.get("/auth/token")(known.give)

    @app.get(f"/rehome/plans/{PLAN}")
    def plan(request: Request) -> dict[str, Any]:
        known.check(request)
        known.looks += 1
        over = known.looks == LOOKS
        return {"state": "done" if over else "running", "dag_id": None, "ended": over}

    @app.get(f"/rehome/plans/{PLAN}/tabs/partitions")
    def moves(request: Request) -> dict[str, Any]:
        known.check(request)
        return {"moves": []}

    with served(app) as known.url:
        yield known


@pytest.mark.parametrize("says", [401, 403, 404])
@pytest.mark.parametrize("who", [SignIn(user="ann", password="right"), SignIn()], ids=("ann", ""))
def test_a_plan_is_followed_beyond_the_end_of_a_login(
    tokens: Tokens, monkeypatch: pytest.MonkeyPatch, says: int, who: SignIn
) -> None:
    """Keycloak's rights end with its own token, while Airflow's token lasts."""
    monkeypatch.setattr(watch, "EACH_LOOK_S", 0.0)
    tokens.says = says
    with AirflowClient(tokens.url, who) as client:
        found = list(watch.looks(client, PLAN))
    assert [each.plan["state"] for each in found] == ["running"] * (LOOKS - 1) + ["done"]
    assert not any(each.away for each in found)
    assert tokens.given == 4, "seven requests, two by each token"


def test_a_token_is_read_again_from_its_file(
    tokens: Tokens,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "token"
    monkeypatch.setattr(watch, "EACH_LOOK_S", 0.0)
    tokens.used.update({"first": 0, "second": 0})
    file.write_text("first\n")
    with AirflowClient(tokens.url, SignIn("first", token_file=file)) as client:
        found = watch.looks(client, PLAN)
        next(found)
        file.write_text("second\n")
        next(found)
    assert tokens.used == {"first": 3, "second": 2}
    asked = ("status", PLAN, "--token-file", str(file), "--airflow", tokens.url)
    assert main(asked) == ExitCode.NOT_ALLOWED
    assert ANOTHER in capsys.readouterr().err
    assert tokens.used == {"first": 3, "second": 3}, "the same token is not tried again"


@pytest.mark.parametrize("text", ["first", "", None], ids=("the same", "empty", "away"))
def test_where_the_file_has_no_other_token_the_first_answer_counts(
    tokens: Tokens, tmp_path: Path, text: str | None
) -> None:
    """An empty one is being written, or was a pipe."""
    file = tmp_path / "token"
    tokens.used["first"] = 0
    with AirflowClient(tokens.url, SignIn("first", token_file=file)) as client:
        if text is not None:
            file.write_text(text)
        for _ in range(2):
            with pytest.raises(CommandError) as raised:
                client.api("GET", "/dags/none")
            assert raised.value.code is ExitCode.NOT_THERE
            assert ANOTHER in raised.value.next_step
        client.page(f"/plans/{PLAN}")
    assert tokens.used == {"first": 1}, "the token that there was is kept"


def test_what_is_not_there_is_asked_for_again_without_further_logins(tokens: Tokens) -> None:
    with AirflowClient(tokens.url, SignIn(user="ann", password="right")) as client:
        for _ in range(4):
            with pytest.raises(CommandError) as raised:
                client.api("GET", "/dags/none")
            assert raised.value.code is ExitCode.NOT_THERE
    assert tokens.given == 2, "one at first, and one to see whether that was the cause"


@pytest.mark.parametrize(
    ("says", "named"),
    [
        (401, "does not accept the token: 401"),
        (403, "403 {'rehome': 'Token Expired'}. If the token has ended, get"),
    ],
)
def test_who_has_only_a_token_reads_that_it_has_ended_and_how_to_give_another(
    tokens: Tokens,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    says: int,
    named: str,
) -> None:
    tokens.says = says
    monkeypatch.setenv("REHOME_TOKEN", "an-old-one")
    assert main(("status", PLAN, "--airflow", tokens.url)) == ExitCode.NOT_ALLOWED
    said = capsys.readouterr().err
    assert named in said
    assert ANOTHER in said
    assert tokens.given == 0, "a token's user has no password to log in with"
