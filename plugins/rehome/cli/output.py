"""What a command prints, and how it ends."""

from __future__ import annotations

import enum
import json
from datetime import datetime
from typing import Any

from rich.console import Console

from rehome.errors import PickledAsRaised

_NARROW = 100
"""Columns where the output is no terminal: lines are not to break there."""


def clean(text: object) -> str:
    """Text of a cluster or a person, without what a terminal takes for commands."""
    return "".join(each if each.isprintable() or each == "\n" else "�" for each in str(text))


def say(*texts: object) -> None:
    """Print text of whatever origin, a line each."""
    for text in texts:
        print(clean(text))


def say_json(data: Any) -> None:
    """Print data for a program, on as many lines as it takes."""
    print(json.dumps(data, indent=2, ensure_ascii=True))


def say_json_line(data: Any) -> None:
    """Print data for a program that reads line by line."""
    print(json.dumps(data, ensure_ascii=True), flush=True)


def console() -> Console:
    """Where pictures are drawn."""
    made = Console(highlight=False, markup=False, emoji=False)
    if not made.is_terminal:
        made = Console(highlight=False, markup=False, emoji=False, width=max(_NARROW, made.width))
    return made


def local_time(text: str | None, form: str = "%H:%M:%S") -> str:
    """An instant in the zone of this machine; "–" = there is none."""
    return "–" if text is None else datetime.fromisoformat(text).astimezone().strftime(form)


def local_moment(text: str | None) -> str:
    """The same with its date and its zone."""
    return local_time(text, "%Y-%m-%d %H:%M:%S %Z")


class ExitCode(enum.IntEnum):
    """What ``rehome`` ends with."""

    DONE = 0
    """It was done; of a plan that was followed: it has ended well."""
    FAILED = 1
    """It was asked for, and has failed, or the plan has ended otherwise than well."""
    USAGE = 2
    """The command line is not understood."""
    NOT_ALLOWED = 3
    """Airflow does not know who asks, or they have no right to it."""
    NOT_THERE = 4
    """There is no such plan, cluster or file, or it is not for this user."""
    REFUSED = 5
    """It is not possible now, or as it was asked for. Nothing was done."""
    AWAY = 6
    """Airflow, its page of Rehome, or a Kafka cluster cannot be reached or does not answer."""
    INTERRUPTED = 130
    """It was ended from the keyboard. What was asked for before that goes on."""


class CommandError(PickledAsRaised, Exception):
    """A command cannot do what it was asked for.

    :param what: what failed, with the server's code and message where it spoke.
    :param next_step: what the reader should do now; "" = that is said already.
    """

    def __init__(self, code: ExitCode, what: str, next_step: str = "") -> None:
        self.code, self.what, self.next_step = code, what, next_step
        super().__init__(" ".join(part for part in (what, next_step) if part))
