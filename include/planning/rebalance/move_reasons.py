"""Why a rebalance makes each copy: which targets it serves, on the side that gives and takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from include.domain.array_types import NONE, Floats, Ints, Mask
from include.domain.resources import PLACED, Resource
from include.domain.text import amount_text
from include.planning.model.arrays import broker_sums, is_new
from include.planning.placement.topic_counts import TopicCounts
from include.planning.search.state import Problem

_WHICH = {
    Resource.BYTES_IN: " taken in",
    Resource.POTENTIAL_BYTES_OUT: " to send if every replica on it led",
}
"""Of rates, which one an amount is."""

LEAST_EXCESS = 1e-12
"""Shares by which a broker must be further out of its band for it to count."""


@dataclass(frozen=True)
class CopyReasons:
    """The copies of a finished rebalance, by partition, and what each is for.

    :param partition: (n,) whose replica is copied, ascending; ``source``: the broker that gives
        it up, ``target``: the one that receives it.
    :param gives, takes: (n,) row of PLACED in which the source, or the target, would be furthest
        further out of its band if the replica went home; NONE where it would not.
    :param before, share: (K, B) what brokers held, and were to hold.
    :param spread: (n,) whether the topic would be spread worse if the replica went home.
    :param topics: what brokers held of each topic before; None where that does not matter.
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
        """The needs of the layout as it is now."""
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
        first, end = np.searchsorted(self.partition, [partition, partition + 1]).tolist()
        text = "; ".join(self._clause(problem, i) for i in range(first, end))
        return f"{text[:1].upper()}{text[1:]}."

    def _clause(self, problem: Problem, i: int) -> str:
        source, target = int(self.source[i]), int(self.target[i])
        gives, takes = int(self.gives[i]), int(self.takes[i])
        ids = problem.layout.arrays.brokers.ids
        told, taker = f"broker {ids[source]}", f"broker {ids[target]}"
        if takes != NONE:
            taker += f", which held {self._held(takes, target)},"
        if gives != NONE:
            return f"{told} held {self._held(gives, source)}; {taker} takes its place"
        if takes != NONE:
            return f"{taker} takes the place of {told}, which can spare it"
        if self.spread[i] and self.topics is not None:
            p = int(self.partition[i])
            held, has = (self.topics.held[self.topics.cell(p, b)] for b in (source, target))
            topic = problem.layout.arrays.partition(p).topic
            return f"{told} held {held} replicas of {topic} and {taker} {has}: it takes one over"
        return f"{taker} takes the place of {told} for the racks of this partition"

    def _held(self, k: int, broker: int) -> str:
        held, share = (
            amount_text(PLACED[k], side[k, broker]) for side in (self.before, self.share)
        )
        return f"{held}{_WHICH.get(PLACED[k], '')} of a share of {share}"


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
    """(n,) the resource in which more load takes each broker furthest further out of its band."""
    targets = problem.targets
    low, high, share = (side[:, brokers] for side in (targets.low, targets.high, targets.share))
    banded = np.isfinite(high) & problem.gives[brokers]

    def outside(loads: Floats) -> Floats:
        off = np.maximum(np.maximum(loads - high, low - loads), 0)
        return np.where(banded, off / np.maximum(share, 1.0), 0.0)

    harm = outside(load + more) - outside(load)
    most: Ints = np.where(harm.max(axis=0) > LEAST_EXCESS, harm.argmax(axis=0), NONE)
    return most
