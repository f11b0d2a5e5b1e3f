"""Copies between the log dirs of a broker (KIP-113): their states, and taking them back.

The broker itself reports both, at once: no metadata can be behind. What it has accepted shows as
a future replica, also after a restart, until it takes the old one's place.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.port import ClusterPort
from rehome.domain.kafka import ANY_LOG_DIR, BrokerError, BrokerId, ReplicaId, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.run.observation import Observation

NOT_AVAILABLE = ErrorCode.BROKER_NOT_AVAILABLE.error()


class LogDirState(enum.Enum):
    """Where a replica is that the plan names a log dir for."""

    UNKNOWN = enum.auto()  # its broker did not report it
    THERE = enum.auto()
    COPYING = enum.auto()
    STARTED_ELSEWHERE = enum.auto()  # a new replica that the broker has put into another log dir
    STAYED = enum.auto()  # where it was when planned, and nothing copies it
    TAKEN = enum.auto()  # another client moves it, or has moved it, to a third log dir


def wanted_log_dirs(move: Move) -> dict[ReplicaId, str]:
    """The log dir of each target replica that the plan names one for."""
    return {
        ReplicaId(*move.partition, broker): log_dir
        for broker, log_dir in zip(move.target, move.target_log_dirs, strict=False)
        if log_dir != ANY_LOG_DIR
    }


def places(move: Move, observation: Observation) -> dict[ReplicaId, LogDirState]:
    """Where each of the replicas is that the plan names a log dir for."""
    if not move.target_log_dirs:
        return {}
    planned = dict(zip(move.current, move.current_log_dirs, strict=False))
    return {
        replica: _place(replica, path, planned.get(replica.broker), observation, move)
        for replica, path in wanted_log_dirs(move).items()
    }


def _place(
    replica: ReplicaId, path: str, planned: str | None, observation: Observation, move: Move
) -> LogDirState:
    here, to = observation.log_dirs.get(replica), observation.future_log_dirs.get(replica)
    if to is not None:
        return LogDirState.COPYING if to == path else LogDirState.TAKEN
    if here is None or here == path:
        return LogDirState.UNKNOWN if here is None else LogDirState.THERE
    if replica.broker in move.adding:
        return LogDirState.STARTED_ELSEWHERE
    return LogDirState.STAYED if planned in (None, "", ANY_LOG_DIR, here) else LogDirState.TAKEN


def misplaced_replicas(move: Move, observation: Observation) -> dict[ReplicaId, str]:
    """New replicas that their brokers have put into another log dir, with the one wanted."""
    target_dirs = wanted_log_dirs(move)
    return {
        replica: target_dirs[replica]
        for replica, place in places(move, observation).items()
        if place is LogDirState.STARTED_ELSEWHERE
    }


def all_there(move: Move, observation: Observation) -> bool:
    """Whether each replica lies in the log dir that the plan names for it, if it names one."""
    return all(place is LogDirState.THERE for place in places(move, observation).values())


def all_taken_up(move: Move, observation: Observation) -> bool:
    """Whether each replica that the plan names a log dir for is in it, or on its way."""
    states = set(places(move, observation).values())
    return bool(states) and states <= {LogDirState.THERE, LogDirState.COPYING}


def where_copied_from(move: Move, observation: Observation) -> dict[ReplicaId, str]:
    """Replicas that are being copied to where the plan wants them, with the log dirs they are in.

    To ask for the log dir that a replica is in takes its copy back.
    """
    return {
        replica: observation.log_dirs[replica]
        for replica, place in places(move, observation).items()
        if place is LogDirState.COPYING and replica in observation.log_dirs
    }


def copied_across(move: Move, observation: Observation) -> set[ReplicaId]:
    """Replicas that are being copied to another log dir, and that the plan names one for. What is
    copied of others is another client's.
    """
    return {replica for replica in wanted_log_dirs(move) if replica in observation.future_sizes}


def may_be_copied(move: Move, observation: Observation) -> bool:
    """Whether a replica that stays on its broker is, or may be, on its way to the log dir wanted.

    It may be where its broker does not report it.
    """
    states = places(move, observation)
    staying = (states.get(ReplicaId(*move.partition, broker)) for broker in move.relocating)
    return not {LogDirState.COPYING, LogDirState.UNKNOWN}.isdisjoint(staying)


@dataclass(frozen=True)
class Stopped:
    """What became of copies that were to be taken back, by partition.

    :param arrived: every replica was in its log dir before that: nothing was taken back.
    :param owed: their broker is not alive; it resumes them when it returns.
    :param errors: what a broker that is alive refused, or did not answer.
    """

    arrived: frozenset[TopicPartition]
    owed: Mapping[TopicPartition, BrokerError]
    errors: Mapping[TopicPartition, BrokerError]


def stop_copies(cluster: ClusterPort, moves: Collection[Move], observation: Observation) -> Stopped:
    """Take back what these moves copy between log dirs.

    A copy may end before the broker receives the change: then it would begin to copy back. So
    the result is read, and such a replica is asked for where it is.
    """
    back = {
        r: log_dir for move in moves for r, log_dir in where_copied_from(move, observation).items()
    }
    owed, errors = _silent(moves, observation)
    now = observation
    if back:
        errors |= _refusals_in(cluster.alter_replica_log_dirs(back))
        dirs_now, silent = _log_dirs(cluster, back.keys())
        errors |= {r.topic_partition: silent[r.broker] for r in back if r.broker in silent}
        late = {r: dirs_now[r] for r in back if r in dirs_now and dirs_now[r] != back[r]}
        if late:
            errors |= _refusals_in(cluster.alter_replica_log_dirs(late))
        now = replace(
            observation, log_dirs={**observation.log_dirs, **dirs_now}, future_log_dirs={}
        )
    arrived = {move.partition for move in moves if wanted_log_dirs(move) and all_there(move, now)}
    return Stopped(frozenset(arrived), owed, errors)


Errors = dict[TopicPartition, BrokerError]


def _silent(moves: Iterable[Move], observation: Observation) -> tuple[Errors, Errors]:
    """Of replicas that no broker reports: those of brokers that are not alive, and other ones."""
    owed, errors = Errors(), Errors()
    for move in moves:
        for replica, place in places(move, observation).items():
            broker = replica.broker
            if place is not LogDirState.UNKNOWN or not _may_copy(move, broker, observation):
                continue
            if broker not in observation.live_brokers:
                what = f"broker {broker} is not alive, and goes on copying when it returns"
                owed[move.partition] = replace(NOT_AVAILABLE, message=what)
            elif broker in observation.missing:
                errors[move.partition] = observation.missing[broker]
    return owed, errors


def _may_copy(move: Move, broker: BrokerId, observation: Observation) -> bool:
    """Whether there is something to copy: a new replica only once the reassignment has ended."""
    state = observation.partitions.get(move.partition)
    arrived = state is not None and state.replicas == move.target
    return broker in move.relocating or (arrived and broker in move.adding)


def _refusals_in(verdicts: Mapping[ReplicaId, BrokerError | None]) -> Errors:
    return {replica.topic_partition: error for replica, error in verdicts.items() if error}


def _log_dirs(
    cluster: ClusterPort, replicas: Collection[ReplicaId]
) -> tuple[dict[ReplicaId, str], Mapping[BrokerId, BrokerError]]:
    """The log dirs that these replicas lie in; and the brokers that do not report it, with why."""
    brokers = {replica.broker for replica in replicas}
    answer = cluster.describe_log_dirs(brokers, {r.topic_partition for r in replicas})
    dirs = {
        ReplicaId(*partition, log_dir.broker): log_dir.path
        for log_dir in answer.value
        for partition, on_disk in log_dir.replicas.items()
        if not on_disk.is_future
    }
    return {r: dirs[r] for r in replicas if r in dirs}, answer.missing
