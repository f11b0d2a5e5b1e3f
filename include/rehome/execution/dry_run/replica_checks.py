"""Brokers and replicas of a plan: what the controller does not check before it starts a copy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import groupby

from rehome.cluster.snapshot.columns import has_inner_slash, rack_path
from rehome.domain.actions import Action
from rehome.domain.kafka import Broker, BrokerId, PartitionState
from rehome.domain.plan.failure_domains import weaknesses_of
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.request.pasted_reassignment import TakenFrom, taken_from
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.text import brokers_text
from rehome.execution.dry_run.cluster_state import ClusterState
from rehome.execution.dry_run.typed_finding import FoundKind, IsrShape, TypedFinding

_ORDER = list(FoundKind)


def broker_findings(plan: Plan, now: ClusterState) -> Iterator[TypedFinding]:
    """Destinations that could not take their copies, and brokers of the plan that do not answer.

    The controller accepts a dead broker that is registered, and one whose log dirs are all
    cordoned: on the one the copy would never end, on the other it is not wanted.
    """
    receiving: dict[BrokerId, list[Move]] = {}
    for move in plan.moves:
        for broker in move.needs_alive:
            if broker in move.adding or broker not in now.cluster.brokers:
                receiving.setdefault(broker, []).append(move)
    closed = _closed_brokers(now)
    for broker, moves in sorted(receiving.items()):
        kind = closed.get(broker) if broker in now.cluster.brokers else FoundKind.BROKER_DEAD
        if kind is not None:
            partitions = tuple(str(move.partition) for move in moves)
            yield TypedFinding(kind, f"broker {broker}", partitions=partitions)
    involved = {broker for move in plan.moves for broker in (*move.current, *move.target)}
    for broker, error in now.log_dirs.missing.items():
        kind = FoundKind.BROKER_SILENT if broker in involved else FoundKind.OTHER_BROKER_SILENT
        yield TypedFinding(kind, f"broker {broker}", error)


def redundancy_findings(
    plan: Plan, request: ReassignmentRequest, now: ClusterState, *, refuse: bool
) -> Iterator[TypedFinding]:
    """Partitions that end in fewer racks, or with fewer replicas, than they have.

    :param refuse: whether that is an error, as the setting ``refuse_fewer_domains`` says.
    """
    racks = {broker.id: rack_path(broker.rack) for broker in now.cluster.brokers.values()}
    for weakness in weaknesses_of(plan.moves, racks):
        is_requested = weakness.level == 0 and (
            request.action is Action.SET_REPLICATION_FACTOR
            or request.allow_replication_factor_change
        )
        usual = FoundKind.WEAKENED_AGAINST_SETTING if refuse else FoundKind.WEAKENED
        kind = FoundKind.WEAKENED_AS_ASKED if is_requested else usual
        yield TypedFinding(kind, "plan", weakened=weakness)


def rack_findings(
    request: ReassignmentRequest, brokers: Collection[Broker]
) -> Iterator[TypedFinding]:
    """Racks that count for other than one may think: brokers that have none while others have one,
    and names with slashes in them that do not begin with one.

    :param brokers: that are alive.
    """
    if request.ignore_racks:
        return
    without = sorted(broker.id for broker in brokers if not rack_path(broker.rack))
    if without and len(without) < len(brokers):
        yield TypedFinding(FoundKind.NO_RACK, brokers_text(without), count=len(without))
    for rack in sorted({str(broker.rack) for broker in brokers if has_inner_slash(broker.rack)}):
        yield TypedFinding(FoundKind.RACK_WITHOUT_LEVELS, f"rack {rack}")


def _closed_brokers(now: ClusterState) -> dict[BrokerId, FoundKind]:
    """Brokers that answered and have no log dir for new replicas, with the reason."""
    open_dirs: dict[BrokerId, int] = {}
    cordoned: set[BrokerId] = set()
    for log_dir in now.log_dirs.value:
        takes = log_dir.error is None and not log_dir.cordoned
        open_dirs[log_dir.broker] = open_dirs.get(log_dir.broker, 0) + takes
        if log_dir.cordoned:
            cordoned.add(log_dir.broker)
    return {
        broker: FoundKind.BROKER_CORDONED if broker in cordoned else FoundKind.BROKER_OFFLINE
        for broker, number in open_dirs.items()
        if not number
    }


def file_findings(request: ReassignmentRequest) -> Iterator[TypedFinding]:
    """What was taken of what a person has pasted, where that was more than a reassignment."""
    if taken_from(request.reassignment) is TakenFrom.GENERATED:
        entries = (request.reassignment or {}).get("partitions", ())
        yield TypedFinding(FoundKind.PROPOSAL_TAKEN, "plan", count=len(entries))


def limit_findings(
    request: ReassignmentRequest, brokers: Collection[BrokerId]
) -> Iterator[TypedFinding]:
    """Brokers that limits name and that are not alive, or were never there: plans go on without
    them, so that a set is smaller than it is meant to be.

    :param brokers: that are alive.
    """
    for item in request.broker_sets or ():
        gone = sorted({*item.brokers}.difference(brokers))
        if gone:
            yield _limits_of_no_broker(f"broker set {item.name}", gone)
    capped = sorted({*(request.caps.brokers if request.caps else ())}.difference(brokers))
    if capped:
        yield _limits_of_no_broker("caps", capped)


def _limits_of_no_broker(subject: str, brokers: Collection[BrokerId]) -> TypedFinding:
    return TypedFinding(FoundKind.LIMITS_OF_NO_BROKER, subject, brokers=tuple(brokers))


def step_findings(plan: Plan, request: ReassignmentRequest) -> Iterator[TypedFinding]:
    """Partitions that get their new replicas in steps, and what they have in between."""
    most = request.max_new_replicas_at_once
    new = [len(move.adding) for move in plan.moves if most and len(move.adding) > most]
    if not most or not new:
        return
    steps = -(-max(new) // most)
    yield TypedFinding(FoundKind.IN_STEPS, "plan", count=len(new), moves=steps, most=most)


def isr_findings(plan: Plan, now: ClusterState) -> Iterator[TypedFinding]:
    """Every partition that is under-replicated, that is at or below ``min.insync.replicas`` while
    it moves, or that cannot be moved as planned; partitions of a topic that are alike together.
    """
    shapes = []
    for move in plan.moves:
        state = now.state(move.partition)
        if state is not None:  # else its verdict, or the drift check, says so
            topic, number = move.partition
            shapes += [
                (_ORDER.index(kind), topic, shape, number)
                for kind, shape in _shapes(move, state, now)
            ]
    for (kind, topic, shape), same in groupby(sorted(shapes), key=lambda item: item[:3]):
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


def _worst(shape: IsrShape, *, takes_time: bool) -> FoundKind | None:
    """The worst that is to be said of a partition's ISR and minimum; None = nothing.

    What is bad already, and gets no worse by the move, is no error.

    :param takes_time: whether the controller has to wait for anything.
    """
    minimum, in_sync = shape.minimum, shape.in_sync
    if shape.replicas_in_the_end < min(minimum, shape.replicas):
        return FoundKind.TOO_FEW_REPLICAS
    if shape.least < min(minimum, in_sync, shape.replicas_in_the_end):
        return FoundKind.LOSES_IN_SYNC
    if shape.replicas_in_the_end < minimum:
        return FoundKind.ALREADY_TOO_FEW
    if in_sync < minimum:
        return FoundKind.BELOW_MINIMUM
    if shape.least <= minimum and takes_time:
        whole = in_sync == shape.replicas
        return FoundKind.ALWAYS_AT_MINIMUM if whole else FoundKind.AT_MINIMUM
    return FoundKind.UNDER_REPLICATED if in_sync < shape.replicas else None


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
