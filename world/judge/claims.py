"""Whether what was said was true at some moment between its first read and its publication."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from rehome.domain.claims import (
    AsFound,
    Claim,
    Emptied,
    EndsIn,
    InFlight,
    NoThrottleLeft,
    NotOwedHere,
    Placed,
    RunGoesOn,
)
from rehome.domain.kafka import Replicas, TopicPartition
from world.history import METADATA_LAG_S, Alter, History
from world.judge.configs import Configs, as_wanted
from world.judge.described import Described, wrong_in_hindrances, wrong_in_listing
from world.judge.flights import Span, in_flight
from world.judge.living import Alive, states_of
from world.judge.owed_marks import NEEDS, needed_rates
from world.judge.placement import Partitions
from world.judge.promises import TakenUp
from world.judge.statements import Statement
from world.judge.violations import Kind, Violation
from world.kafka.metadata import PartitionKey

FACTOR, SLACK_S = 4.0, 300.0
"""So far off an estimate may be."""


@dataclass(frozen=True)
class Truth:
    """All that a claim is held against.

    :param lists: what each plan may lead partitions to, by its id.
    :param ends: when plans ended that nothing has disturbed, by their ids.
    :param windows: when the windows of plans end that nothing has disturbed, by their ids.
    :param paused: when each installation's DAG was paused.
    """

    history: History
    configs: Configs
    partitions: Partitions
    lists: Mapping[str, Mapping[PartitionKey, frozenset[Replicas]]]
    ends: Mapping[str, float] = field(default_factory=dict)
    windows: Mapping[str, float] = field(default_factory=dict)
    paused: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)

    def false_claims(self, said: Statement) -> Iterator[Violation]:
        """Claims of a statement that were at no moment true."""
        for claim in said.claims:
            if wrong := self._wrong(said, claim):
                text = f"{said.by} {said.where} of plan {said.plan_id or '-'}: {wrong}"
                subject = f"{said.where} {type(claim).__name__}"
                yield Violation(Kind.FALSE_CLAIM, subject, text, said.at)

    def _wrong(self, said: Statement, claim: Claim | Described | TakenUp) -> str:
        """Why it is false; "" = it is not."""
        match claim:
            case AsFound():
                return self._not_as_found(said, claim)
            case NoThrottleLeft():
                return self._left(said)
            case InFlight():
                return self._miscounted(said, claim)
            case Placed():
                return self._not_placed(said, claim)
            case Emptied():
                return self._not_empty(said, claim)
            case RunGoesOn():
                return self._stays_queued(said)
            case NotOwedHere():
                return self._not_idle(said, claim)
            case Described():
                return self._listed_otherwise(said, claim)
            case EndsIn():
                return self._ended_otherwise(said, claim)
            case _:
                return ""

    def _listed_otherwise(self, said: Statement, claim: Described) -> str:
        """A ledger that knows less than its installation has done takes that for others'."""
        asked: dict[tuple[TopicPartition, Replicas | None], set[Alter]] = {}
        for each in self.history.alters:
            asked.setdefault((each.partition, each.target), set()).add(each)
        knows = len(self.configs.ledgers.had.get(said.by, ())) == 1
        own = [
            each
            for of_it in asked.values()
            for each in of_it
            if knows and {other.owner for other in of_it} == {said.by}
        ]
        planned = {
            (TopicPartition(self.partitions.names[key.topic_id], key.number), target)
            for lists in self.lists.values()
            for key, targets in lists.items()
            for target in targets
        }
        span = Span(said.since, said.at)
        if wrong := wrong_in_listing(claim, self.partitions, span, own, planned):
            return wrong
        lagging = Span(max(said.since - METADATA_LAG_S, 0.0), said.at)
        return wrong_in_hindrances(claim, self.partitions, lagging, self._alive)

    @cached_property
    def _alive(self) -> list[Alive]:
        return states_of(self.history.log)

    def _not_as_found(self, said: Statement, claim: AsFound) -> str:
        by = self.configs.ledgers.of(said.by, said.since)
        for setting in claim.settings:
            known = self.configs.keys.get(setting)
            if known is None:
                continue
            moments = known.between(said.since, said.at)
            if not any(as_wanted(known, moment, by) for moment in moments):
                last = moments[-1]
                where = f"{setting[0]} {setting[1]}"
                return f"{where} is as it was found; it holds {last.actual!r}, not {last.seen!r}"
        return ""

    def _left(self, said: Statement) -> str:
        needed, by = self._needed_by_others(said), self.configs.ledgers.of(said.by, said.since)
        for known in self.configs.keys.values():
            if (known.key[0].name or "default", known.key[1]) in needed:
                continue  # it was left for another Rehome, which has marked it
            moments = known.between(said.since, said.at)
            if all(by in moment.ours for moment in moments):
                return f"no throttle is left; {known.key[0]} {known.key[1]} is ours still"
        return ""

    def _needed_by_others(self, said: Statement) -> set[tuple[str, str]]:
        by = self.configs.ledgers.of(said.by, said.since)
        return needed_rates(
            [
                name
                for (_, name), known in self.configs.keys.items()
                if name.startswith(NEEDS)
                and any(m.ours.keys() - {by} for m in known.between(said.since, said.at))
            ]
        )

    def _miscounted(self, said: Statement, claim: InFlight) -> str:
        lists = self.lists.get(said.plan_id, {})
        times = self.partitions.times(said.since, said.at)
        counts = {len(in_flight(self.partitions, lists, when)) for when in times}
        if claim.moves in counts or min(counts) <= claim.moves <= max(counts):
            return ""
        return f"{claim.moves} moves are in flight; it was {sorted(counts)}"

    def _not_placed(self, said: Statement, claim: Placed) -> str:
        for partition, target in claim.targets.items():
            keys = self.partitions.named(partition)
            times = self.partitions.times(said.since, said.at)
            states = [self.partitions.at(key, when) for key in keys for when in times]
            if not any(
                s is not None and s.replicas == target and not s.reassigning for s in states
            ):
                return f"{partition} is on {target}; it was on {states[-1:]}"
        return ""

    def _not_empty(self, said: Statement, claim: Emptied) -> str:
        for when in self.partitions.times(said.since, said.at):
            states = [self.partitions.at(key, when) for key in self.partitions.states]
            held = {broker for state in states if state is not None for broker in state.replicas}
            if not held & set(claim.brokers):
                return ""
        return f"nothing is on {claim.brokers}; something was all the time"

    def _ended_otherwise(self, said: Statement, claim: EndsIn) -> str:
        """An estimate may be off by a factor; of a plan that was disturbed nothing is asked. It
        never ends after its window: when that closes is known. A run that a person resumes after
        its window is bound by none.
        """
        closes = self.windows.get(said.plan_id)
        if closes is not None and said.since <= closes < said.since + claim.seconds:
            return f"it ends in {claim.seconds:.0f} s; its window closes in {closes - said.at:.0f}"
        end = self.ends.get(said.plan_id)
        if end is None:
            return ""
        took = max(end - said.at, 0.0)
        if claim.seconds <= FACTOR * took + SLACK_S and took <= FACTOR * claim.seconds + SLACK_S:
            return ""
        return f"it ends in {claim.seconds:.0f} s; it took {took:.0f} s"

    def _stays_queued(self, said: Statement) -> str:
        paused = self.paused.get(said.by, ())
        if any(since <= said.since and said.at <= until for since, until in paused):
            return "its run goes on; its DAG is paused, and no task of it starts"
        return ""

    def _not_idle(self, said: Statement, claim: NotOwedHere) -> str:
        if not claim.idle:
            return ""
        for when in self.partitions.times(said.since, said.at):
            states = [self.partitions.at(key, when) for key in self.partitions.states]
            if not any(state is not None and state.reassigning for state in states):
                return ""
        return "nothing is being reassigned; something was all the time"
