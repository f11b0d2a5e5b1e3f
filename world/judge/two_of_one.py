"""One cluster, two names for it: of two entries that are for one cluster nothing begins, and two
plans of one ledger are never carried out at once, through whichever connections.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from world.history import Alter, ConfigWrite, History
from world.judge.flights import Span, in_flight
from world.judge.placement import Partitions, run_of
from world.judge.plan_seen import PlanSeen
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

    :param runs: name of the run → id of its plan; ``adopting``: those of them that adopt what other
        clients have in flight.
    """

    by: str
    runs: Mapping[str, str]
    adopting: Collection[str] = ()


def begun_by_two_entries(alters: Sequence[Alter], seen: Sequence[Entries]) -> Iterator[Violation]:
    """What was begun meanwhile."""
    for each in seen:
        for alter in alters:
            began = each.began.get(run_of(alter.process), -1.0)
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
            plan_id = each.runs.get(run_of(alter.process))
            if plan_id is not None and alter.target is not None:
                times.setdefault(plan_id, []).append(alter.at)
        for first, sent in times.items():
            for second, others in times.items():
                if first != second and sent[0] < others[0] < sent[-1]:
                    text = f"plan {second} has begun while {first} was carried out"
                    yield Violation(Kind.TWO_PLANS, each.by, text, others[0])


def adopted_beside_a_plan(
    history: History,
    plans: Sequence[PlanSeen],
    partitions: Partitions,
    seen: Sequence[CarriedOutBy],
) -> Iterator[Violation]:
    """What a run has adopted while another plan of its ledger was carried out: something of that
    was in flight, or was sent later. Of the controller nothing is asked at an adoption: the first
    change of a throttle tells when it was.
    """
    writes = [each for each in history.writes if isinstance(each, ConfigWrite)]
    for each in seen:
        for run in each.adopting:
            begun = [write.at for write in writes if run_of(write.process) == run]
            if begun:
                yield from _beside(history, plans, partitions, each, (each.runs[run], begun[0]))


def _beside(
    history: History,
    plans: Sequence[PlanSeen],
    partitions: Partitions,
    seen: CarriedOutBy,
    adopted: tuple[str, float],
) -> Iterator[Violation]:
    plan_id, begun = adopted
    own = {key for plan in plans if plan.plan_id == plan_id for key in plan.lists}
    for other in plans:
        if other.by != seen.by or other.plan_id == plan_id:
            continue
        later = (alter for alter in history.alters if alter.target and alter.at > begun)
        sends = any(seen.runs.get(run_of(each.process)) == other.plan_id for each in later)
        flying = in_flight(partitions, other.lists, begun) - own
        active = any(span.since < begun < span.until for span in other.carried_out)
        if active and (flying or sends):
            text = f"plan {plan_id} was adopted while {other.plan_id} was carried out"
            yield Violation(Kind.TWO_PLANS, seen.by, text, begun)
