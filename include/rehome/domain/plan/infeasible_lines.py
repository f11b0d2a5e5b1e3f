"""What a plan does not reach, and what limits it, in lines for people: one for each cause, with
examples.
"""

from __future__ import annotations

from collections.abc import Iterable

from rehome.domain.plan.infeasible import OF_THE_CLUSTER, Infeasible
from rehome.domain.plan.infeasible_text import infeasible_text, subject_text
from rehome.domain.text import join_names

EXAMPLES = 3
"""How many more of a kind a line names."""


def infeasible_lines(notes: Iterable[Infeasible]) -> tuple[str, ...]:
    """What a plan leaves though it was asked for. A line for each kind of subject, obstacle and
    resource: the note that is furthest from what was wanted, how many more there are, and some of
    them.
    """
    return _lines(misses_of(notes))


def lines_not_reached(notes: Iterable[Infeasible], *, cut_by_budget: bool) -> tuple[str, ...]:
    """The same, with the budget where that does not pay for all; () = the plan leaves nothing."""
    budget = ("The budget of the request does not pay for more",) if cut_by_budget else ()
    return (*infeasible_lines(notes), *budget)


def limit_lines(notes: Iterable[Infeasible]) -> tuple[str, ...]:
    """The same of limits of the cluster: there the plan reaches the best that is possible."""
    return _lines(note for note in notes if note.obstacle in OF_THE_CLUSTER)


def misses_of(notes: Iterable[Infeasible]) -> tuple[Infeasible, ...]:
    """Notes on what another plan, another request or more disk might reach."""
    return tuple(note for note in notes if note.obstacle not in OF_THE_CLUSTER)


def _lines(notes: Iterable[Infeasible]) -> tuple[str, ...]:
    alike: dict[object, list[Infeasible]] = {}
    for note in notes:
        alike.setdefault((note.subject.kind, note.obstacle, note.resource), []).append(note)
    return tuple(_line(group) for group in alike.values())


def _line(group: list[Infeasible]) -> str:
    furthest = max(group, key=lambda note: abs(note.wanted - note.nearest))
    line, others = infeasible_text(furthest), [note for note in group if note is not furthest]
    if not others:
        return line
    names = [subject_text(note.subject) for note in others[:EXAMPLES]]
    if len(others) > EXAMPLES:
        names.append("others")
    return f"{line}; {len(others):,} more of this kind: {join_names(names)}"
