"""Which Airflow, and who asks: what every command takes that acts through an Airflow."""

from __future__ import annotations

import argparse
import contextlib
import getpass
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from rehome.cli.output import CommandError, ExitCode
from rehome.cli.remote.airflow_client import AirflowClient, SignIn, read_token, token_in

URL_VARIABLE = "REHOME_AIRFLOW_URL"
TOKEN_VARIABLE = "REHOME_TOKEN"
USER_VARIABLE = "REHOME_USER"
PASSWORD_VARIABLE = "REHOME_PASSWORD"
DEFAULT_URL = "http://localhost:8080"


def add_airflow(parser: argparse.ArgumentParser) -> None:
    """Which Airflow, and who asks."""
    group = parser.add_argument_group("Airflow")
    group.add_argument(
        "--airflow",
        metavar="URL",
        help=f"address of Airflow's UI, with its path prefix (default: {URL_VARIABLE}, or "
        f"{DEFAULT_URL})",
    )
    group.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help=f"file with a token of Airflow's (default: the token in {TOKEN_VARIABLE})",
    )
    group.add_argument(
        "--user",
        metavar="NAME",
        help=f"log in by a password (default: {USER_VARIABLE}); it is {PASSWORD_VARIABLE}, or is "
        "asked for",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Whether programs read the answer."""
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def add_yes(parser: argparse.ArgumentParser) -> None:
    """Whether to ask before something is changed."""
    parser.add_argument("--yes", action="store_true", help="do not ask before it is done")


@contextlib.contextmanager
def open_airflow(chosen: argparse.Namespace) -> Iterator[AirflowClient]:
    """The Airflow that a command names, as the person who asks.

    :raises CommandError: the token or the password cannot be had.
    """
    url = chosen.airflow or os.environ.get(URL_VARIABLE) or DEFAULT_URL
    file, user, token = chosen.token_file, "", ""
    if file:
        token = read_token(file)
    elif not chosen.user:
        token = token_in(os.environ.get(TOKEN_VARIABLE, ""), TOKEN_VARIABLE)
    if chosen.user or not token:
        user = chosen.user or os.environ.get(USER_VARIABLE, "")
    who = SignIn("", user, _password(user)) if user else SignIn(token, token_file=file)
    with AirflowClient(url, who) as client:
        yield client


def _password(user: str) -> str:
    if (given := os.environ.get(PASSWORD_VARIABLE)) is not None:
        return given
    if not sys.stdin.isatty():
        raise CommandError(
            ExitCode.NOT_ALLOWED,
            f"The password of {user} is not known, and there is no terminal to ask for it.",
            f"Set {PASSWORD_VARIABLE}, or give a token in {TOKEN_VARIABLE}.",
        )
    return getpass.getpass(f"Password of {user}: ")


def confirm(chosen: argparse.Namespace, question: str) -> bool:
    """Whether the person says yes.

    :raises CommandError: there is no terminal to ask at, and no ``--yes``.
    """
    if chosen.yes:
        return True
    if not sys.stdin.isatty():
        raise CommandError(
            ExitCode.USAGE, "There is no terminal to ask at. Nothing was done.", "Give --yes."
        )
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
