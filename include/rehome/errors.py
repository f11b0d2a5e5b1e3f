"""Errors a person reads: what failed, what state was left, what to do next."""

from __future__ import annotations

import copyreg
from collections.abc import Sequence
from typing import Any

STEP_UNCHANGED = "This step has changed nothing."
"""What a step may say that refuses before it acts; not of the run, which may have acted before."""

SENTENCE_ENDS = (".", "!", "?", ":")


class PickledAsRaised:
    """An error that is pickled with its message and its fields, whatever its class takes.

    ``BaseException`` makes a pickled error by calling its class with the message: one that takes
    other arguments is lost between processes, or says something else there. Before the error's
    other base classes.
    """

    args: tuple[Any, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]


class RehomeError(PickledAsRaised, Exception):
    """Base of every error Rehome raises on purpose.

    :param what: what failed, with the broker's code and message where a broker said so.
    :param state_left: what the failure left behind, as far as it is known where it is raised; "" =
        it does not.
    :param next_step: what the reader should do now.
    """

    def __init__(self, what: str, *, state_left: str = "", next_step: str = "") -> None:
        self.what = what
        self.state_left = state_left
        self.next_step = next_step
        super().__init__(what)

    def __str__(self) -> str:
        parts = (self.what, self.state_left, self.next_step)
        return " ".join(sentence(part) for part in parts if part)


def sentence(text: str) -> str:
    """With a full stop, where it has no end."""
    return text if text.endswith(SENTENCE_ENDS) else f"{text}."


PROBLEMS_SHOWN = 10


def first_problems(problems: Sequence[str]) -> str:
    """The first ten of some problems in one line, and how many there are."""
    shown = [*problems[:PROBLEMS_SHOWN]]
    if len(problems) > PROBLEMS_SHOWN:
        shown.append(f"These are the first {PROBLEMS_SHOWN} of {len(problems):,} problems.")
    return " ".join(shown)


class InvalidRequestError(RehomeError):
    """A request that cannot be carried out as written; has every problem found, not the first.

    :param problems: one sentence per problem.
    :param next_step: where to correct it.
    """

    def __init__(
        self,
        problems: Sequence[str],
        *,
        next_step: str = "Correct the parameters, then trigger a new run.",
    ) -> None:
        self.problems = tuple(problems)
        super().__init__(
            "This cannot be carried out as it is asked for, or as Rehome is set up: "
            f"{first_problems(self.problems)}",
            state_left=STEP_UNCHANGED,
            next_step=next_step,
        )


class InvalidConnectionError(InvalidRequestError):
    """An Airflow connection that cannot be used as it is; has every problem found.

    :param connection: its id; "" = it has none yet, as where it is only tried out.
    :param problems: one sentence per problem.
    """

    def __init__(self, connection: str, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        subject = f"Connection {connection}" if connection else "The connection"
        RehomeError.__init__(
            self,
            f"{subject} cannot be used: {first_problems(self.problems)}",
            state_left=STEP_UNCHANGED if connection else "",
            next_step="Correct the connection in Airflow.",
        )


class PlanConflictError(RehomeError):
    """Another plan is active on the cluster, or the plan is not in a state that allows the step."""


class NotHealedError(PlanConflictError):
    """What a run was started for by itself is not to be healed, or not any more."""


class ClusterBusyError(PlanConflictError):
    """Another plan is active on the cluster."""
