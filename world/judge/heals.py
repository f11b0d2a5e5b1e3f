"""What watching finds, and starts by itself: only what is true, and only for what is dead."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from rehome.domain.kafka import BrokerId
from world.judge.living import (
    Alive,
    absences,
    away_all_the_time,
    between,
    longest_alive,
    states_of,
)
from world.judge.violations import Kind, Violation
from world.kafka.metadata import MetadataLog

SEEN_S = 90.0
"""So long before a run is started, at most, the snapshot was taken that it is started by."""
AGAIN_S = 1800.0
"""So long after a heal that has failed there is no other one for the same broker."""
DAY_S = 86_400.0
FLAPS = 6
"""So often, at least, a broker goes away and comes back of which this has to be found."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A run that watching has started.

    :param grace_s: for so long a broker has to be dead, at least.
    :param seen_s: an absence is seen in which this much time passes, at the latest.
    :param ended_at: when it ended first; None = it has not; ``failed``: how it ended.
    :param asks: it proposes a plan, and carries out nothing without a person.
    """

    at: float
    by: str
    run_id: str
    brokers: tuple[BrokerId, ...]
    grace_s: float
    seen_s: float
    ended_at: float | None = None
    failed: bool = False
    asks: bool = False


@dataclass(frozen=True, slots=True)
class CarriedOut:
    """A plan that no person was asked about, and that has changed the cluster.

    :param began: when the run began that has carried it out; ``at``: its first change.
    :param copies_bytes: at least; ``budget_bytes``: at most; None = as much as it takes.
    :param heals_a_day: at most, of its installation.
    """

    began: float
    at: float
    by: str
    plan_id: str
    brokers: tuple[BrokerId, ...]
    seen_s: float
    heals_a_day: int
    copies_bytes: int = 0
    budget_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Watched:
    """What an installation's ledger says in the end.

    :param settles_s: what has been so for this long is known.
    :param dead: brokers of which a finding says so; ``under_replicated``: whether one is open.
    :param flapping: brokers of which one says that they come and go.
    :param shown_s: an absence that lasts so long is in a snapshot.
    """

    by: str
    settles_s: float
    dead: frozenset[BrokerId]
    under_replicated: bool
    flapping: frozenset[BrokerId] = frozenset()
    shown_s: float = DAY_S


@dataclass(frozen=True, slots=True)
class Watching:
    """All of it.

    :param forgotten: installations whose ledger was replaced: what they have healed they do not
        know.
    """

    begun: Sequence[Begun] = ()
    carried_out: Sequence[CarriedOut] = ()
    watched: Sequence[Watched] = ()
    forgotten: Collection[str] = ()


def wrong_in_watching(log: MetadataLog, seen: Watching, ended_at: float) -> Iterator[Violation]:
    """What should not have been started or carried out, and findings that are not true."""
    if not seen.watched:
        return
    states = states_of(log)
    for run in seen.begun:
        for text in _started_wrongly(states, run):
            yield Violation(Kind.HEALED_WRONGLY, "start", f"{run.run_id}: {text}", run.at)
    for earlier, run in _pairs([run for run in seen.begun if not run.asks]):
        if run.by not in seen.forgotten and (text := _too_soon(earlier, run)):
            yield Violation(Kind.HEALED_WRONGLY, "start", f"{run.run_id}: {text}", run.at)
    for plan in seen.carried_out:
        others = [each for each in seen.carried_out if each.by == plan.by]
        for text in _carried_out_wrongly(states, plan, others, seen.forgotten):
            yield Violation(Kind.HEALED_WRONGLY, "plan", f"plan {plan.plan_id}: {text}", plan.at)
    for each in seen.watched:
        in_the_end = between(states, ended_at - each.settles_s, ended_at)
        unfound = [] if each.by in seen.forgotten else _unfound(states, each)
        for text in (*unfound, *_untrue(in_the_end, each)):
            yield Violation(Kind.FALSE_FINDING, "finding", f"{each.by}: {text}", ended_at)


def _pairs(runs: Sequence[Begun]) -> Iterator[tuple[Begun, Begun]]:
    """Each with each later one of the same installation."""
    for number, run in enumerate(runs):
        yield from ((earlier, run) for earlier in runs[:number] if earlier.by == run.by)


def _started_wrongly(states: Sequence[Alive], run: Begun) -> Iterator[str]:
    now = between(states, run.at - SEEN_S, run.at)
    for broker in run.brokers:
        if all(broker in state.live for state in now):
            yield f"broker {broker} is alive"
            continue
        before = between(states, run.at - run.grace_s - SEEN_S, run.at - run.grace_s)
        if all(broker in state.live for state in before):
            yield f"broker {broker} has been dead for less than {run.grace_s:.0f} s"
        if longest_alive(states, broker, run.at - run.grace_s, run.at) > run.seen_s:
            yield f"broker {broker} has been back in between"
    away = away_all_the_time(states, run.at - SEEN_S, run.at)
    if away and not run.asks:
        yield f"away as a whole: {', '.join(sorted(away))}"


def _too_soon(earlier: Begun, run: Begun) -> str:
    if earlier.ended_at is None or earlier.ended_at > run.at:
        return f"{earlier.run_id} has not ended"
    same = earlier.brokers == run.brokers and earlier.failed
    if same and run.at < earlier.ended_at + AGAIN_S:
        return f"{earlier.run_id} has failed {run.at - earlier.ended_at:.0f} s before"
    return ""


def _carried_out_wrongly(
    states: Sequence[Alive],
    plan: CarriedOut,
    others: Sequence[CarriedOut],
    forgotten: Collection[str],
) -> Iterator[str]:
    if away := away_all_the_time(states, plan.began, plan.at):
        yield f"away as a whole: {', '.join(sorted(away))}"
    for broker in plan.brokers:
        if all(broker in each.live for each in between(states, plan.began - plan.seen_s, plan.at)):
            yield f"broker {broker} has been back for {plan.seen_s:.0f} s"
    if plan.budget_bytes is not None and plan.copies_bytes > plan.budget_bytes:
        yield f"it copies {plan.copies_bytes} bytes of {plan.budget_bytes}"
    before = sum(plan.at - DAY_S < each.at <= plan.at for each in others)
    if before > plan.heals_a_day and plan.by not in forgotten:
        yield f"it is the {before}th within a day, of {plan.heals_a_day}"


def _unfound(states: Sequence[Alive], said: Watched) -> Iterator[str]:
    """Brokers that come and go, and no finding says so."""
    for broker in sorted(states[-1].holding - said.dead - said.flapping):
        shown = [each for each in absences(states, broker) if each >= said.shown_s]
        if len(shown) >= FLAPS:
            yield f"broker {broker} was away {len(shown)} times, and no finding says so"


def _untrue(states: Sequence[Alive], said: Watched) -> Iterator[str]:
    """What findings say, and leave out, that has been otherwise in all of these states."""
    for broker in sorted(said.dead):
        if all(broker in state.live for state in states):
            yield f"broker {broker} has been alive for {said.settles_s:.0f} s, and is called dead"
    held = frozenset.intersection(*(state.holding - state.live for state in states))
    if not all(state.live for state in states):
        held = frozenset()  # there was none to take a snapshot from
    for broker in sorted(held - said.dead):
        yield f"broker {broker} has been dead for {said.settles_s:.0f} s, and no finding says so"
    if said.under_replicated and not any(state.lacking for state in states):
        yield f"all replicas have been in sync for {said.settles_s:.0f} s, and a finding differs"
