"""One cluster, two names for it: of two entries that are for one cluster nothing begins, and two
plans of one ledger are never carried out at once, through whichever connections.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from world.history import Alter
from world.judge.flights import Span
from world.judge.violations import Kind, Violation


@dataclass(frozen=True, slots=True)
class Entries:
    """Of one installation.

    :param known: when it could know that two entries are for the cluster.
    :param began: when each of its runs began, by its name.
    """

    by: str
    known: Sequence[Span]
    began: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class CarriedOutBy:
    """The runs that have carried out each plan of one ledger, by their names.

    :param runs: name of the run → id of its plan.
    """

    by: str
    runs: Mapping[str, str]


def begun_by_two_entries(alters: Sequence[Alter], seen: Sequence[Entries]) -> Iterator[Violation]:
    """What was begun meanwhile."""
    for each in seen:
        for alter in alters:
            began = each.began.get(alter.process.partition(".")[0], -1.0)
            if alter.owner != each.by or alter.target is None:
                continue
            if any(span.since < began and alter.at < span.until for span in each.known):
                text = f"{alter.process} has sent {alter.partition}; two entries name its cluster"
                yield Violation(Kind.TWO_ENTRIES, each.by, text, alter.at)


def two_plans_at_once(alters: Sequence[Alter], seen: Sequence[CarriedOutBy]) -> Iterator[Violation]:
    """A plan that has begun before another one has sent its last move."""
    for each in seen:
        times: dict[str, list[float]] = {}
        for alter in alters:
            plan_id = each.runs.get(alter.process.partition(".")[0])
            if plan_id is not None and alter.target is not None:
                times.setdefault(plan_id, []).append(alter.at)
        for first, sent in times.items():
            for second, others in times.items():
                if first != second and sent[0] < others[0] < sent[-1]:
                    text = f"plan {second} has begun while {first} was carried out"
                    yield Violation(Kind.TWO_PLANS, each.by, text, others[0])
