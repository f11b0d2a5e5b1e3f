"""Reasons of copies in a rebalance: which target each copy serves, at its source and its target."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask
from rehome.domain.resources import PLACED, Resource
from rehome.domain.text import amount_text, count_text
from rehome.planning.limits.apply_limits import groups
from rehome.planning.model.arrays import broker_sums, is_new
from rehome.planning.placement.topic_counts import TopicCounts
from rehome.planning.search.state import Problem

_WHICH = {
    Resource.BYTES_IN: " taken in",
    Resource.POTENTIAL_BYTES_OUT: " to send if every replica on it led",
}
"""For rates: which rate an amount is."""

LEAST_EXCESS = 1e-12
"""The least change of excess that counts."""


@dataclass(frozen=True)
class CopyReasons:
    """The copies of a finished rebalance, by partition, with the target that each serves.

    :param partition: (n,) whose replica is copied, ascending; ``source``: the broker that gives
        it up, ``target``: the one that receives it.
    :param gives, takes: (n,) row of PLACED in which undoing the copy would increase the excess of
        the source, or of the target, most; NONE if it would not.
    :param before, share: (K, B) loads before, and shares.
    :param spread: (n,) whether undoing the copy would spread its topic worse.
    :param topics: topic counts before; None if no copy was made for a topic.
    """

    partition: Ints
    source: Ints
    target: Ints
    gives: Ints
    takes: Ints
    before: Floats
    share: Floats
    spread: Mask
    topics: TopicCounts | None

    @classmethod
    def of(cls, problem: Problem) -> CopyReasons:
        """The reasons of the present layout."""
        origin, rows = problem.layout.origin, problem.layout.rows
        gone, new = is_new(origin, rows), is_new(rows, origin)
        partition = np.nonzero(new)[0]
        source, target = (side.astype(np.int64) for side in (origin[gone], rows[new]))
        weight = problem.weights[:, partition]
        before, after = (_loads(problem, some) for some in (origin, rows))
        return cls(
            partition,
            source,
            target,
            _most_harmed(problem, source, after[:, source], weight),
            _most_harmed(problem, target, after[:, target], -weight),
            before,
            problem.targets.share,
            *_spread(problem, partition, source, target),
        )

    def sentence(self, problem: Problem, partition: int) -> str:
        """Why the partition's replicas move; one sentence."""
        of = self._partitions
        text = "; ".join(
            self._clause(problem, i)
            for i in range(bisect_left(of, partition), bisect_right(of, partition))
        )
        return f"{text[:1].upper()}{text[1:]}."

    @cached_property
    def _partitions(self) -> list[int]:
        found: list[int] = self.partition.tolist()
        return found

    @cached_property
    def _copies(self) -> list[tuple[int, int, int, int]]:
        """Source, target, gives and takes of each copy: reading arrays one by one takes longer."""
        columns = (self.source, self.target, self.gives, self.takes)
        return list(zip(*(column.tolist() for column in columns), strict=True))

    @cached_property
    def _said(self) -> dict[tuple[int, int], str]:
        """What :meth:`_held` has said."""
        return {}

    def _clause(self, problem: Problem, i: int) -> str:
        source, target, gives, takes = self._copies[i]
        ids = problem.layout.arrays.brokers.ids
        giver, taker = f"broker {ids[source]}", f"broker {ids[target]}"
        if _is_brought(problem, self._partitions[i], source):
            return f"{giver} is no destination of this rebalance; {taker} takes its place"
        if takes != NONE:
            taker += f", which held {self._held(takes, target)},"
        if gives != NONE:
            return f"{giver} held {self._held(gives, source)}; {taker} takes its place"
        if takes != NONE:
            return f"{taker} takes the place of {giver}, which can spare it"
        if self.spread[i] and self.topics is not None:
            p = self._partitions[i]
            held, has = (self.topics.held[self.topics.cell(p, b)] for b in (source, target))
            topic = problem.layout.arrays.partition(p).topic
            replicas = count_text(int(held), "replica")
            return f"{giver} held {replicas} of {topic} and {taker} {has}: it takes one over"
        return f"{taker} takes the place of {giver} for the racks of this partition"

    def _held(self, k: int, broker: int) -> str:
        said = self._said.get((k, broker))
        if said is None:
            held, share = (
                amount_text(PLACED[k], side[k, broker]) for side in (self.before, self.share)
            )
            said = f"{held}{_WHICH.get(PLACED[k], '')} of a share of {share}"
            self._said[k, broker] = said
        return said


def _is_brought(problem: Problem, partition: int, source: int) -> bool:
    """Whether the partition is brought to destinations, of which this broker is none."""
    arrays = problem.layout.arrays
    if arrays.limits is None:
        return False
    group = int(groups(arrays)[partition])
    return group >= arrays.limits.bound_from and not arrays.limits.allowed[group, source]


def _spread(
    problem: Problem, partition: Ints, source: Ints, target: Ints
) -> tuple[Mask, TopicCounts | None]:
    if problem.spread is None or problem.spread.leaders_only:
        return np.zeros(len(partition), bool), None
    after = TopicCounts.of_replicas(problem.spread, problem.layout.rows)
    worse: Mask = after.moving(partition, target, source) > 0
    return worse, TopicCounts.of_replicas(problem.spread, problem.layout.origin)


def _loads(problem: Problem, rows: np.ndarray) -> Floats:
    return np.stack([broker_sums(rows, weight, len(problem.gives)) for weight in problem.weights])


def _most_harmed(problem: Problem, brokers: Ints, load: Floats, more: Floats) -> Ints:
    """(n,) the resource in which the added load increases each broker's excess most."""
    targets = problem.targets
    low, high, share = (side[:, brokers] for side in (targets.low, targets.high, targets.share))
    banded = np.isfinite(high) & problem.gives[brokers]

    def outside(loads: Floats) -> Floats:
        off = np.maximum(np.maximum(loads - high, low - loads), 0)
        return np.where(banded, off / np.maximum(share, 1.0), 0.0)

    harm = outside(load + more) - outside(load)
    most: Ints = np.where(harm.max(axis=0) > LEAST_EXCESS, harm.argmax(axis=0), NONE)
    return most
