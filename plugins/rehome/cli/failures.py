"""What a command ends with: exit codes, and errors that people read."""

from __future__ import annotations

import enum


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


class CommandError(Exception):
    """A command cannot do what it was asked for.

    :param what: what failed, with the server's code and message where it spoke.
    :param next_step: what the reader should do now; "" = that is said already.
    """

    def __init__(self, code: ExitCode, what: str, next_step: str = "") -> None:
        self.code, self.what, self.next_step = code, what, next_step
        super().__init__(" ".join(part for part in (what, next_step) if part))
