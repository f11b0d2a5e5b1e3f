"""Faults that the simulator has found and that are not mended yet: expected, counted, never hidden.

A violation that no entry explains is new. An entry that explains nothing any more has to go.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass

from world.judge.violations import Kind, Violation
from world.script import Script, What


class Issue(enum.StrEnum):
    """Numbers of part B of the issue "A world in a box", and of what was found since."""


@dataclass(frozen=True, slots=True)
class Known:
    """Violations of a kind are explained by a fault, in scripts that have what it takes.

    :param subject: matches the whole of the violation's.
    """

    issue: Issue
    kind: Kind
    takes: Callable[[Script], bool]
    subject: str = ".*"

    def explains(self, script: Script, found: Violation) -> bool:
        """Whether this is why."""
        fits = found.kind is self.kind and re.fullmatch(self.subject, found.subject)
        return bool(fits) and self.takes(script)


def has(*whats: What) -> Callable[[Script], bool]:
    """Somebody does one of these."""
    return lambda script: any(does.what in whats for does in script.does)


KNOWN: tuple[Known, ...] = ()


def issue_of(script: Script, found: Violation) -> Issue | None:
    """The fault that explains a violation; None = it is new."""
    for known in KNOWN:
        if known.explains(script, found):
            return known.issue
    return None


def new_ones(script: Script, found: tuple[Violation, ...]) -> tuple[Violation, ...]:
    """Violations that nothing explains."""
    return tuple(each for each in found if issue_of(script, each) is None)
