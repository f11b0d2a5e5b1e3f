"""In-sync replicas of a plan's partitions, as they are and as they will be while it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from rehome.domain.kafka import PartitionState
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.execution.dry_run.cluster_state import ClusterState
from rehome.execution.dry_run.typed_finding import FoundKind, IsrShape, TypedFinding

_ORDER = list(FoundKind)


def isr_findings(plan: Plan, now: ClusterState) -> Iterator[TypedFinding]:
    """Every partition that is under-replicated, that is at or below ``min.insync.replicas`` while
    it moves, or that cannot be moved as planned; partitions of a topic that are alike together.
    """
    found = []
    for move in plan.moves:
        state = now.state(move.partition)
        if state is not None:  # else its verdict, or the drift check, says so
            topic, number = move.partition
            found += [
                (_ORDER.index(kind), topic, shape, number)
                for kind, shape in _shapes(move, state, now)
            ]
    for (kind, topic, shape), same in groupby(sorted(found), key=lambda item: item[:3]):
        subject = f"{topic}-{_ranges(number for *_, number in same)}"
        yield TypedFinding(_ORDER[kind], subject, isr=shape)


def _shapes(
    move: Move, state: PartitionState, now: ClusterState
) -> Iterator[tuple[FoundKind, IsrShape]]:
    """What is to be said of a partition: of its ISR and minimum one thing, the worst."""
    entry = now.ongoing.get(move.partition)
    adding = {*(entry.adding if entry else ())}
    replicas = [broker for broker in state.replicas if broker not in adding]
    synced = state.isr.intersection(replicas)
    kept = synced.intersection(move.target)
    minimum = now.min_isr.get(move.partition.topic, 1)
    least = min(len(synced), len(kept) + len(move.adding))

    sizes = IsrShape(len(synced), least, len(replicas), len(move.target), minimum)
    if state.leader not in now.cluster.brokers and move.adding:
        yield FoundKind.NO_SOURCE, sizes._replace(brokers=tuple(state.replicas))
        return
    worst = _worst(sizes, takes_time=_takes_time(move))
    if worst is not None:
        yield worst, sizes
    lagging = [b for b in move.target if b not in synced and b not in move.adding]
    if len(move.target) < len(replicas) and lagging:
        yield FoundKind.WAITS_FOR_ISR, sizes._replace(brokers=tuple(lagging))
    if move.target[:1] != move.current[:1] and move.target[0] in lagging:
        yield FoundKind.LEADER_OUT_OF_SYNC, sizes._replace(brokers=move.target[:1])


def _worst(found: IsrShape, *, takes_time: bool) -> FoundKind | None:
    """The worst that is to be said of a partition's ISR and minimum; None = nothing.

    What is bad already, and gets no worse by the move, is no error.

    :param takes_time: whether the controller has to wait for anything.
    """
    minimum, in_sync = found.minimum, found.in_sync
    if found.wanted < min(minimum, found.replicas):
        return FoundKind.TOO_FEW_REPLICAS
    if found.least < min(minimum, in_sync, found.wanted):
        return FoundKind.LOSES_IN_SYNC
    if found.wanted < minimum:
        return FoundKind.ALREADY_TOO_FEW
    if in_sync < minimum:
        return FoundKind.BELOW_MINIMUM
    if found.least <= minimum and takes_time:
        whole = in_sync == found.replicas
        return FoundKind.ALWAYS_AT_MINIMUM if whole else FoundKind.AT_MINIMUM
    return FoundKind.UNDER_REPLICATED if in_sync < found.replicas else None


def _takes_time(move: Move) -> bool:
    """Whether the controller has to wait for anything: another order is there at once."""
    return bool(move.adding or move.removing)


def _ranges(numbers: Iterable[int]) -> str:
    """Ascending partition numbers: ``0-3,5``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
