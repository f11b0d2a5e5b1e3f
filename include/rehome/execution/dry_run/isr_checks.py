"""In-sync replicas of a plan's partitions, as they are and as they will be while it runs."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from rehome.domain.kafka import BrokerId, PartitionState
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.run.findings import Finding, Severity
from rehome.domain.text import count_text
from rehome.execution.dry_run.cluster_state import ClusterState

_CHECK = "in-sync replicas"


class _Kind(enum.IntEnum):
    """What is wrong, the worst first."""

    NO_SOURCE = enum.auto()
    TOO_FEW_REPLICAS = enum.auto()
    LOSES_IN_SYNC = enum.auto()
    ALREADY_TOO_FEW = enum.auto()
    BELOW_MINIMUM = enum.auto()
    AT_MINIMUM = enum.auto()
    UNDER_REPLICATED = enum.auto()
    WAITS_FOR_ISR = enum.auto()
    LEADER_OUT_OF_SYNC = enum.auto()
    ALWAYS_AT_MINIMUM = enum.auto()


_SEVERITY = {
    _Kind.NO_SOURCE: Severity.ERROR,
    _Kind.TOO_FEW_REPLICAS: Severity.ERROR,
    _Kind.LOSES_IN_SYNC: Severity.ERROR,
    _Kind.ALWAYS_AT_MINIMUM: Severity.INFO,
}
_REMEDY = {
    _Kind.NO_SOURCE: "Bring a broker of its ISR back first.",
    _Kind.TOO_FEW_REPLICAS: "Lower min.insync.replicas first, or plan more replicas.",
    _Kind.LOSES_IN_SYNC: "Trigger a new run: its plan keeps the replicas that are in sync now.",
    _Kind.ALREADY_TOO_FEW: "Lower min.insync.replicas, or plan more replicas.",
    _Kind.BELOW_MINIMUM: "See why replicas are out of sync before moving it.",
    _Kind.AT_MINIMUM: "See why replicas are out of sync before moving it.",
    _Kind.UNDER_REPLICATED: "See why replicas are out of sync before moving it.",
    _Kind.WAITS_FOR_ISR: "See why it is out of sync, or plan without it.",
    _Kind.LEADER_OUT_OF_SYNC: "Elections wait until it is in sync.",
    _Kind.ALWAYS_AT_MINIMUM: "Expect refused acks=all writes should a replica fail.",
}


@dataclass(frozen=True, slots=True)
class _Shape:
    """What the findings of many partitions share.

    :param in_sync: replicas in the ISR now; ``least``: while the move runs, if nothing fails.
    :param replicas: now, without those that are being added; ``wanted``: in the end.
    :param names: the brokers that the kind is about.
    """

    kind: _Kind
    in_sync: int
    least: int
    replicas: int
    wanted: int
    minimum: int
    names: tuple[BrokerId, ...] = ()

    def text(self) -> str:
        """What is wrong; starts after the partition's name."""
        few = f"min.insync.replicas={self.minimum}"
        synced = f"{self.in_sync} of {self.replicas} replicas are in sync"
        named = ", ".join(map(str, self.names))
        wanted = count_text(self.wanted, "replica is", "replicas are")
        return {
            _Kind.NO_SOURCE: f"has no live leader to copy from; its replicas are on "
            f"{list(self.names)}",
            _Kind.TOO_FEW_REPLICAS: f"{wanted} fewer than {few}: producers with acks=all would be "
            "refused",
            _Kind.ALREADY_TOO_FEW: f"{wanted} fewer than {few}, as its "
            f"{self.replicas} are now: producers with acks=all are refused before and after",
            _Kind.LOSES_IN_SYNC: f"{synced}; the move leaves {self.least} of these, fewer than "
            f"{few}, though it could keep more",
            _Kind.BELOW_MINIMUM: f"{synced}, fewer than {few}: producers with acks=all are "
            "refused now, and while it moves",
            _Kind.AT_MINIMUM: f"{synced}; while it moves {self.least} are, as few as {few} allows",
            _Kind.UNDER_REPLICATED: f"is under-replicated: {synced}",
            _Kind.WAITS_FOR_ISR: f"keeps replicas that are out of sync (brokers {named}): the "
            "controller ends the move only when they are in the ISR",
            _Kind.LEADER_OUT_OF_SYNC: f"its preferred leader will be broker {named}, whose replica "
            "is out of sync",
            _Kind.ALWAYS_AT_MINIMUM: f"all {self.replicas} replicas are in sync; while it moves "
            f"{self.least} are, as few as {few} allows",
        }[self.kind]


def isr_findings(plan: Plan, now: ClusterState) -> Iterator[Finding]:
    """Every partition that is under-replicated, that is at or below ``min.insync.replicas`` while
    it moves, or that cannot be moved as planned; partitions of a topic that are alike together.
    """
    found = []
    for move in plan.moves:
        state = now.state(move.partition)
        if state is not None:  # else its verdict, or the drift check, says so
            topic, number = move.partition
            found += [(shape, topic, number) for shape in _shapes(move, state, now)]
    found.sort(key=lambda item: (item[0].kind, item[1], str(item[0]), item[2]))
    for (shape, topic), same in groupby(found, key=lambda item: item[:2]):
        yield Finding(
            _SEVERITY.get(shape.kind, Severity.WARNING),
            _CHECK,
            f"{topic}-{_ranges(number for _, _, number in same)}",
            shape.text(),
            _REMEDY[shape.kind],
        )


def _shapes(move: Move, state: PartitionState, now: ClusterState) -> Iterator[_Shape]:
    """What is to be said of a partition: of its ISR and minimum one thing, the worst."""
    entry = now.ongoing.get(move.partition)
    adding = {*(entry.adding if entry else ())}
    replicas = [broker for broker in state.replicas if broker not in adding]
    synced = state.isr.intersection(replicas)
    kept = synced.intersection(move.target)
    minimum = now.min_isr.get(move.partition.topic, 1)
    least = min(len(synced), len(kept) + len(move.adding))

    sizes = len(synced), least, len(replicas), len(move.target), minimum

    def shape(kind: _Kind, names: Iterable[BrokerId] = ()) -> _Shape:
        return _Shape(kind, *sizes, tuple(names))

    if state.leader not in now.cluster.brokers and move.adding:
        yield shape(_Kind.NO_SOURCE, state.replicas)
        return
    worst = _worst(_Shape(_Kind.NO_SOURCE, *sizes), takes_time=_takes_time(move))
    if worst is not None:
        yield shape(worst)
    lagging = [b for b in move.target if b not in synced and b not in move.adding]
    if len(move.target) < len(replicas) and lagging:
        yield shape(_Kind.WAITS_FOR_ISR, lagging)
    if move.target[:1] != move.current[:1] and move.target[0] in lagging:
        yield shape(_Kind.LEADER_OUT_OF_SYNC, move.target[:1])


def _worst(found: _Shape, *, takes_time: bool) -> _Kind | None:
    """The worst that is to be said of a partition's ISR and minimum; None = nothing.

    What is bad already, and gets no worse by the move, is no error.

    :param takes_time: whether the controller has to wait for anything.
    """
    minimum, in_sync = found.minimum, found.in_sync
    if found.wanted < min(minimum, found.replicas):
        return _Kind.TOO_FEW_REPLICAS
    if found.least < min(minimum, in_sync, found.wanted):
        return _Kind.LOSES_IN_SYNC
    if found.wanted < minimum:
        return _Kind.ALREADY_TOO_FEW
    if in_sync < minimum:
        return _Kind.BELOW_MINIMUM
    if found.least <= minimum and takes_time:
        whole = in_sync == found.replicas
        return _Kind.ALWAYS_AT_MINIMUM if whole else _Kind.AT_MINIMUM
    return _Kind.UNDER_REPLICATED if in_sync < found.replicas else None


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
