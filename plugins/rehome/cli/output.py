"""How commands print: text of others made harmless, JSON, and a console that knows its terminal."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from rich.console import Console

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
