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

    B1 = "B1"
    """Two Rehomes on one cluster put each other's rates back, and so leave them."""
    B4 = "B4"
    """A ledger that was restored does not know what was changed since."""


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


def two_rates(script: Script) -> bool:
    """Two installations on one cluster, both with a throttle."""
    return len({plan.of for plan in script.plans if not plan.unthrottled}) > 1


def has(*whats: What) -> Callable[[Script], bool]:
    """Somebody does one of these."""
    return lambda script: any(does.what in whats for does in script.does)


OURS = r"(broker|topic) \S+ (\S+\.throttled\.(rate|replicas)|\S+\.io\.max\S+|cordoned\.log\.dirs)"
RATE = r"broker \S+ (leader|follower)\.replication\.throttled\.rate"
FORGETS = has(What.LEDGER_RESTORED, What.LEDGER_NEW)
KNOWN: tuple[Known, ...] = (
    *(Known(Issue.B1, kind, two_rates, RATE) for kind in (Kind.LEFT_BEHIND, Kind.NOT_AS_WANTED)),
    Known(Issue.B1, Kind.FALSE_CLAIM, two_rates, r"\S+ (AsBefore|NoThrottleLeft)"),
    Known(Issue.B4, Kind.LEFT_BEHIND, FORGETS, OURS),
    Known(Issue.B4, Kind.GOES_ON, FORGETS),
)


def issue_of(script: Script, found: Violation) -> Issue | None:
    """The fault that explains a violation; None = it is new."""
    for known in KNOWN:
        if known.explains(script, found):
            return known.issue
    return None


def new_ones(script: Script, found: tuple[Violation, ...]) -> tuple[Violation, ...]:
    """Violations that nothing explains."""
    return tuple(each for each in found if issue_of(script, each) is None)
