"""Every partition has replicas that somebody has asked for; what is in flight, and when."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rehome.domain.kafka import Replicas, TopicPartition
from world.history import OTHERS, Alter
from world.judge.violations import Kind, Violation
from world.kafka.metadata import MetadataLog, Partition, PartitionKey


@dataclass(frozen=True, slots=True)
class Placed:
    """A partition's registration from a time on; None = it is not there."""

    at: float
    state: Partition | None


@dataclass
class Partitions:
    """Every partition by topic id, and its states, oldest first."""

    states: dict[PartitionKey, list[Placed]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """Name by topic id, of topics that are gone, too."""

    @classmethod
    def of(cls, log: MetadataLog) -> Partitions:
        """Read the controllers' log."""
        found = cls()
        for entry in log.entries:
            for record in entry.records:
                if record.name == "partitions":
                    states = found.states.setdefault(record.key, [])
                    states.append(Placed(entry.at, record.value))
                elif record.name == "topics" and record.value is not None:
                    found.names[record.value] = record.key
        return found

    def named(self, partition: TopicPartition) -> list[PartitionKey]:
        """Keys that a partition of this name has had, oldest first."""
        return [
            key
            for key in self.states
            if self.names.get(key.topic_id) == partition.topic and key.number == partition.partition
        ]

    def at(self, key: PartitionKey, when: float) -> Partition | None:
        """A partition's state at a time."""
        found = None
        for placed in self.states[key]:
            if placed.at > when:
                break
            found = placed.state
        return found

    def times(self, since: float, until: float) -> list[float]:
        """The times in between at which anything changed, with both ends."""
        between = {
            placed.at
            for states in self.states.values()
            for placed in states
            if since < placed.at < until
        }
        return [since, *sorted(between), until]


@dataclass(frozen=True)
class LetAct:
    """A person has let a run cancel or adopt what other clients had in flight.

    :param named: number of the reading by which it was named; ``at``: when, in seconds.
    :param about: the topic, or its partition, that it was about; "" = all that was in flight.
    :param cleans: whether throttles of others are taken away, too, that were for that.
    """

    named: int
    at: float
    about: str = ""
    cleans: bool = False

    def is_about(self, partition: TopicPartition) -> bool:
        """Whether a partition was asked about."""
        topic, number = partition
        return self.about in ("", topic, f"{topic}:{number}")


def target_of(state: Partition) -> Replicas:
    """Where a reassignment leads to; of none, the replicas."""
    return tuple(broker for broker in state.replicas if broker not in state.removing)


def misplaced(
    partitions: Partitions,
    alters: Collection[Alter],
    planned: Mapping[PartitionKey, set[Replicas]],
    let_act: Mapping[str, LetAct],
) -> Iterator[Violation]:
    """Partitions whose replicas are, at the end, none that anybody has asked for.

    :param planned: targets of plans, by the partition that they were made for.
    :param let_act: as in :func:`taken_over`.
    """
    asked: dict[TopicPartition, set[Replicas]] = {}
    disordered = set()
    for alter in alters:
        if alter.target is None and (alter.owner == OTHERS or run_of(alter.process) in let_act):
            disordered.add(alter.partition)  # a cancel loses the order, which was not ours to know
        elif alter.owner == OTHERS and alter.target is not None:
            asked.setdefault(alter.partition, set()).add(alter.target)
    for key, states in partitions.states.items():
        last, first = states[-1].state, states[0].state
        if last is None or first is None or last.reassigning:
            continue
        name = TopicPartition(partitions.names[key.topic_id], key.number)
        merged = _merged(states, alters, name, asked.get(name, set()))
        allowed = {first.replicas, *asked.get(name, ()), *planned.get(key, ()), *merged}
        if name in disordered:
            right = sorted(last.replicas) in map(sorted, allowed)
            # A reassignment that replaces another is cancelled to what that one had by then.
            right |= name in asked and set(last.replicas) <= set().union(*allowed)
        else:
            right = last.replicas in allowed
        if not right:
            text = f"{name} has {last.replicas}; asked for were {sorted(allowed)}"
            yield Violation(Kind.MISPLACED, str(name), text, states[-1].at)


def _merged(
    states: Sequence[Placed], alters: Collection[Alter], name: TopicPartition, asked: set[Replicas]
) -> Iterator[Replicas]:
    """Where a reassignment leads to that has every replica of one in flight: the controller lets
    what that one removes go, in the order of the later one. Neither client has asked for that order
    where one of the two is another's; whether we could have seen it says :func:`taken_over`.
    """
    for alter in alters:
        if alter.partition != name or alter.target is None:
            continue
        before = [placed.state for placed in states if placed.at < alter.at]
        state = before[-1] if before else None
        if state is None or not state.removing or not set(state.replicas) <= set(alter.target):
            continue
        if alter.owner == OTHERS or set(target_of(state)) in map(set, asked):
            yield tuple(broker for broker in alter.target if broker not in state.removing)


def taken_over(
    partitions: Partitions, alters: Collection[Alter], let_act: Mapping[str, LetAct]
) -> Iterator[Violation]:
    """Reassignments of others that we have replaced or cancelled, though we had seen them, or
    could have: they had begun before we looked at what is in flight. Of one that leads to where
    ours leads already nothing can be seen.

    :param let_act: by the name of a run: it may cancel what it had read before a person was asked.
    """
    foreign: dict[TopicPartition, Alter] = {}
    ours: dict[TopicPartition, set[Replicas | None]] = {}
    last: dict[TopicPartition, Replicas | None] = {}
    for alter in alters:
        if alter.owner == OTHERS:
            own = ours.get(alter.partition, set())
            same = alter.target in own and (
                alter.target == last.get(alter.partition)
                or _leads_to(partitions, alter.partition, alter.target, alter.at)
            )
            foreign[alter.partition] = replace(alter, target=None) if same else alter
            continue
        last[alter.partition] = alter.target
        ours.setdefault(alter.partition, set()).add(alter.target)
        theirs = foreign.get(alter.partition)
        if theirs is None or theirs.target is None:
            continue
        if theirs.target == alter.target:
            if alter.listed is None or alter.listed < theirs.number:
                foreign[alter.partition] = replace(theirs, target=None)  # both ask for it, unseen
            continue
        let = let_act.get(run_of(alter.process))
        lets = let is not None and let.is_about(alter.partition) and let.at <= alter.at
        if let and lets and alter.target is None and theirs.number < let.named:
            continue
        seen = alter.listed is not None and theirs.number < alter.listed
        if seen and _leads_to(partitions, alter.partition, theirs.target, alter.at):
            text = f"{alter.partition} was on its way to {theirs.target}; {alter.process} has "
            text += "cancelled that" if alter.target is None else f"sent it to {alter.target}"
            yield Violation(Kind.TAKEN_OVER, str(alter.partition), text, alter.at)


def run_of(process: str) -> str:
    """The run of a process."""
    return process.partition(".")[0]


def _leads_to(
    partitions: Partitions, name: TopicPartition, target: Replicas | None, when: float
) -> bool:
    """Whether a partition was being reassigned to a target, until this moment."""
    for key in partitions.named(name):
        before = [placed.state for placed in partitions.states[key] if placed.at < when]
        state = before[-1] if before else None
        if state is not None and state.reassigning and target_of(state) == target:
            return True
    return False
