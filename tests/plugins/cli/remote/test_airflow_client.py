"""What is wrong between a shell and its Airflow is named, with what to do."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse

from rehome.cli.main import main
from rehome.cli.output import CommandError, ExitCode
from rehome.cli.remote import options
from tests.ui.site import served


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A server that lets ann in, and has no Rehome; and the headers that it was sent."""
    app, seen = FastAPI(), list[dict[str, str]]()

    @app.post("/auth/token", status_code=201)
    async def token(request: Request) -> dict[str, str]:
        given = await request.json()
        if given["password"] != "right":
            raise HTTPException(401, "Invalid credentials")
        return {"access_token": f"token-{len(seen)}"}

    @app.get("/auth/token")
    def everybody() -> None:
        raise HTTPException(403, "This method is only for all_admins")

    @app.get("/rehome/clusters")
    def clusters(request: Request) -> Any:
        seen.append(dict(request.headers))
        if len(seen) == 1:
            raise HTTPException(403, "Token Expired")
        answer: dict[str, Any] = {"clusters": [], "problem": None, "notes": []}
        from fastapi.responses import JSONResponse

        sent = JSONResponse(answer)
        sent.set_cookie("_token", "of-a-browser")
        return sent

    @app.get("/rehome/plans/p1")
    def a_page() -> HTMLResponse:
        return HTMLResponse("<html>another thing</html>")

    @app.get("/rehome/plans/p4")
    def of_another_version() -> dict[str, Any]:
        return {"plan_id": "p4", "title": "Drain broker 4"}

    @app.get("/rehome/plans/p2")
    def broken() -> None:
        raise HTTPException(503, [{"loc": ["body", "conf"], "msg": "is away"}])

    with served(app) as address:
        yield address, seen


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        *(options.TOKEN_VARIABLE, options.USER_VARIABLE),
        *(options.PASSWORD_VARIABLE, options.URL_VARIABLE),
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("words", "env", "code", "named"),
    [
        (("status",), {}, ExitCode.NOT_ALLOWED, "does not know who you are"),
        (
            ("status", "--user", "ann"),
            {"REHOME_PASSWORD": "wrong"},
            ExitCode.NOT_ALLOWED,
            "does not let ann in: 401 Invalid credentials. Check --user",
        ),
        (("status", "--user", "ann"), {}, ExitCode.NOT_ALLOWED, "no terminal to ask for it"),
        (("status", "p1"), {"REHOME_TOKEN": "t"}, ExitCode.AWAY, "no Airflow that has this Rehome"),
        (("status", "p3"), {"REHOME_TOKEN": "t"}, ExitCode.AWAY, "no Airflow that has this Rehome"),
        (
            ("status", "p4"),
            {"REHOME_TOKEN": "t"},
            ExitCode.AWAY,
            "p4, without state) is no Airflow",
        ),
        (("status", "p2"), {"REHOME_TOKEN": "t"}, ExitCode.AWAY, "503 body.conf: is away"),
        (("status", "--token-file", "gone"), {}, ExitCode.USAGE, "The token cannot be read"),
    ],
)
def test_the_cause_is_named(
    elsewhere: tuple[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    env: dict[str, str],
    code: ExitCode,
    named: str,
) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert main([*words, "--airflow", elsewhere[0]]) == code
    said = capsys.readouterr()
    assert named in said.err
    assert said.out == ""


def test_an_address_where_nothing_answers_and_one_that_is_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        assert main(["clusters", "--airflow", url]) == ExitCode.AWAY
        assert f"{url} cannot be reached" in capsys.readouterr().err
    for no_address in ("airflow.example", "ftp://airflow", "http://airflow..example"):
        assert main(["clusters", "--airflow", no_address]) == ExitCode.USAGE
        assert "is no address" in capsys.readouterr().err


def test_a_login_is_made_again_when_its_token_is_too_old_and_no_cookie_is_kept(
    elsewhere: tuple[str, list[dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from rehome.cli.remote.airflow_client import AirflowClient, SignIn

    url, seen = elsewhere
    seen.clear()
    with AirflowClient(f"{url}/", SignIn(user="ann", password="right")) as client:
        with pytest.raises(CommandError, match="403 Token Expired"):
            client.page("/clusters")  # of a login of just now it is no old token
        assert client.page("/clusters")["clusters"] == []
        seen.clear()
        assert client.page("/clusters")["clusters"] == []
    assert [each["authorization"] for each in seen] == ["Bearer token-0", "Bearer token-1"]
    assert not any("cookie" in each for each in seen)


@pytest.mark.parametrize(
    "text", ["secret\nof ann\n", '{\n  "access_token": "secret"\n}', "secreté"]
)
def test_what_is_more_than_a_token_is_refused_and_not_shown(
    elsewhere: tuple[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    text: str,
) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    asked = ("clusters", "--airflow", elsewhere[0])
    assert main([*asked, "--token-file", str(file)]) == ExitCode.USAGE
    of_file = capsys.readouterr().err
    monkeypatch.setenv("REHOME_TOKEN", text)
    assert main(asked) == ExitCode.USAGE
    of_variable = capsys.readouterr().err
    for said, where in ((of_file, str(file)), (of_variable, "REHOME_TOKEN")):
        assert f"What {where} holds is no token" in said
        assert "secret" not in said
