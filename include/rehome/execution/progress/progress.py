"""How far a plan is: KIP-179's status of each replica, bytes, rate, time left.

Never from DescribeLogDirs' OffsetLag: for a replica that is being added the broker clamps it to
0 from the first byte on. Messages behind come from log end offsets, bytes from sizes on disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from rehome.cluster.interface.error_codes import NOT_HOSTED
from rehome.domain.kafka import BrokerError, ReplicaId, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.run.flows import FLOWS_VIEWED
from rehome.domain.run.ledger_view import LedgerView, MoveStep
from rehome.domain.run.observation import Observation
from rehome.domain.run.progress import ProgressSample, ReplicaState, ReplicaStatus
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState
from rehome.execution.admission.backlog import Backlog
from rehome.execution.estimate.estimate import around
from rehome.execution.observation.log_dir_copies import all_taken_up, copied_across
from rehome.execution.observation.observe import messages_behind
from rehome.execution.progress.eta import foretell
from rehome.execution.progress.flow_samples import Copied, throttle_text
from rehome.execution.progress.measured import measure, source_size
from rehome.execution.progress.outpaced import Outpaced
from rehome.execution.progress.received import gains_of, received_bytes, received_per_s
from rehome.execution.stall import held_up
from rehome.ledger.store import Ledger

_SAMPLES_READ = 100


@dataclass(frozen=True)
class Progress:
    """One poll's findings: the state of each replica in flight, and of the plan as a whole.

    :param outpaced: where producers write more than the throttle lets through: the time left is
        not known then.
    """

    statuses: tuple[ReplicaStatus, ...]
    sample: ProgressSample
    throttle: str = ""
    outpaced: tuple[Outpaced, ...] = ()

    def table(self) -> str:
        """KIP-179's table with the footer, and the throttle below it."""
        table = status_table(self.statuses, self.sample)
        why = "; ".join(map(str, self.outpaced))
        unknown = f"Why the time left is not known: {why}" if why else ""
        return "\n".join(line for line in (table, self.throttle, unknown) if line)


def admitted_moves(plan: Plan, view: LedgerView) -> tuple[Move, ...]:
    """The moves that are, or are about to be, at the controller; by partition."""
    partitions = (p for p, state in view.moves.items() if state is MoveState.ADMITTED)
    return tuple(plan.by_partition[partition] for partition in sorted(partitions))


def record_progress(
    plan: Plan,
    view: LedgerView,
    ledger: Ledger,
    observation: Observation,
    policy: Policy,
    backlog: Backlog,
) -> tuple[Progress, LedgerView]:
    """Work out the plan's progress from an observation and write it to the ledger.

    A move that the controller lists was accepted, even if its answer was lost, and is recorded so:
    else it would look as if it was never sent, should another client cancel it later. The same goes
    for a move between log dirs that the brokers show.

    :param backlog: the view's open moves.
    :returns: with the view as the ledger gives it now.
    """
    flying = admitted_moves(plan, view)
    unsure = [move for move in flying if move.partition not in view.sent]
    listed = [
        m.partition for m in unsure if _is_accepted(m, observation, view.steps.get(m.partition))
    ]
    if listed:
        sent_at = ledger.mark_sent(plan.plan_id, listed)
        view = replace(view, sent={**view.sent, **dict.fromkeys(listed, sent_at)})
    history = ledger.samples(plan.plan_id, newest=_SAMPLES_READ)
    before = _before(plan.plan_id, ledger, backlog, flying, history)
    statuses = replica_statuses(flying, observation, before)
    sample = measure(plan, view, observation, statuses)
    # Another process may have polled since the history was read: then that was the poll before.
    status_times = [*(s.sampled_at for s in history[-1:]), *(s.status_at for s in before.values())]
    since = max(status_times, default=None)
    if since is not None and history[-1:] and history[-1].sampled_at != since:
        newest = ledger.samples(plan.plan_id, newest=1)
    else:
        newest = history[-1:]
    copies = copies_at(since, before.values())
    estimate = foretell(
        view, backlog, observation, policy, copies, since, history, backlog.foreseen
    )
    backlog.foreseen = estimate.foreseen
    then = _of_this_start(before.values(), _first_sent(flying, view), since)
    gains = gains_of(flying, observation, then)
    sample = replace(
        sample,
        busiest_bytes=estimate.busiest_bytes,
        eta_s=estimate.eta_s,
        received_bytes=received_bytes(newest, gains),
    )
    sample = replace(sample, rate_bytes_per_s=received_per_s([*history, sample]))
    recorded = ledger.add_samples(plan.plan_id, statuses, sample, estimate.flows, gains)
    own = (observation.taken_at, {status.replica: status for status in statuses})
    backlog.statuses = own if recorded.kept else None
    if recorded.kept and estimate.flows is not None:
        view = replace(view, flows=(*view.flows, estimate.flows)[-FLOWS_VIEWED:])
    if recorded.progressed:
        view = replace(view, last_progress_at=observation.taken_at)
    if held_up(plan, observation, policy, admitted=bool(flying)):
        ledger.record_hold(plan.plan_id, observation.taken_at)
        view = replace(view, held_at=observation.taken_at)
    throttle = throttle_text(view, estimate.flows)
    return Progress(tuple(statuses), sample, throttle, estimate.outpaced), view


def _before(
    plan_id: str,
    ledger: Ledger,
    backlog: Backlog,
    flying: Collection[Move],
    history: Sequence[ProgressSample],
) -> Mapping[ReplicaId, ReplicaStatus]:
    """Statuses of the poll before. Where that was this process's own, and saw all that is in flight
    now, the ledger would say nothing else.
    """
    if backlog.statuses is not None and history:
        at, own = backlog.statuses
        first = (ReplicaId(*move.partition, move.target[0]) for move in flying)
        if history[-1].sampled_at == at and all(replica in own for replica in first):
            return own
    return ledger.latest_in_flight(plan_id)


def _first_sent(flying: Collection[Move], view: LedgerView) -> dict[TopicPartition, datetime]:
    """When moves were sent; without those that are made in steps and have one of them done: what
    that has copied is there still.
    """
    sent = dict(view.sent)
    for move in flying:
        step = view.steps.get(move.partition)
        if step is not None and move.copies_at(step.before) is not None:
            sent.pop(move.partition, None)
    return sent


def _of_this_start(
    statuses: Iterable[ReplicaStatus],
    sent: Mapping[TopicPartition, datetime],
    at: datetime | None,
) -> dict[ReplicaId, ReplicaStatus]:
    """Those of a poll, without what it saw of a copy that was taken back and has begun anew."""
    return {
        status.replica: status
        for status in statuses
        if status.status_at == at
        and status.status_at >= sent.get(status.replica.topic_partition, at)
    }


def copies_at(at: datetime | None, statuses: Iterable[ReplicaStatus]) -> dict[ReplicaId, Copied]:
    """The states at a poll of the copies that were in flight then."""
    copies = {}
    for status in statuses:
        size, behind = status.size_bytes, status.bytes_behind
        if size is not None and status.status_at == at:
            whole = None if behind is None else size + behind
            copies[status.replica] = Copied(size, whole)
    return copies


def _is_accepted(move: Move, observation: Observation, step: MoveStep | None) -> bool:
    entry, state = (
        observation.ongoing.get(move.partition),
        observation.partitions.get(move.partition),
    )
    if entry is not None or state is None or not move.target_log_dirs:
        return entry is not None and entry.target == (step.target if step else move.target)
    return state.replicas == move.target and all_taken_up(move, observation)


def replica_statuses(
    moves: Collection[Move],
    observation: Observation,
    previous: Mapping[ReplicaId, ReplicaStatus] | None = None,
) -> list[ReplicaStatus]:
    """The state of every target replica of these moves.

    :param previous: earlier statuses; they give the largest lag, the last time in the ISR, and
        the size where a broker does not answer now.
    """
    before = previous or {}
    return [
        _status(move, replica, observation, before.get(replica))
        for move in moves
        for replica in (ReplicaId(*move.partition, broker) for broker in move.target)
    ]


def _status(
    move: Move, replica: ReplicaId, observation: Observation, before: ReplicaStatus | None
) -> ReplicaStatus:
    """What another client copies to a log dir that the move does not name is none of its copies."""
    of_partition = observation.partitions.get(replica.topic_partition)
    in_isr = of_partition is not None and replica.broker in of_partition.isr
    there, across = of_partition is not None, replica in copied_across(move, observation)
    state = _replica_state(replica, observation, there=there, in_isr=in_isr, across=across)
    behind = messages_behind(observation, replica, across=across)
    between = replica.broker in move.relocating
    size = observation.future_sizes.get(replica) if between else None
    if size is None:
        size = observation.sizes.get(replica)
    if size is None and before is not None:
        size = before.size_bytes
    largest = before.max_messages_behind if before else None
    lags = [lag for lag in (behind, largest) if lag is not None]
    in_isr_before = before.last_in_isr_at if before else None
    return ReplicaStatus(
        replica=replica,
        state=state,
        status_at=observation.taken_at,
        last_in_isr_at=observation.taken_at if in_isr else in_isr_before,
        messages_behind=behind,
        max_messages_behind=max(lags, default=None),
        bytes_behind=_bytes_behind(source_size(replica, observation, across=between), size),
        size_bytes=size,
    )


def _replica_state(
    replica: ReplicaId, observation: Observation, *, there: bool, in_isr: bool, across: bool
) -> ReplicaState:
    """Of a replica whose partition the brokers describe, or not (``there``), and that is on its way
    to the log dir that the plan names, or not (``across``).
    """
    if replica.topic in observation.topics_missing:
        return ReplicaState.UNKNOWN_TOPIC
    if replica.topic in observation.unreadable:
        return ReplicaState.UNREADABLE
    if not there:
        return ReplicaState.UNKNOWN_PARTITION
    if replica.broker not in observation.live_brokers:
        return ReplicaState.UNKNOWN_BROKER
    if across:
        return ReplicaState.BEHIND
    if in_isr:
        return ReplicaState.IN_SYNC
    offset = observation.log_end_offsets.get(replica)
    if isinstance(offset, BrokerError) and offset.code in NOT_HOSTED:
        return ReplicaState.NOT_HOSTED
    return ReplicaState.BEHIND


def _bytes_behind(source: int | None, size: int | None) -> int | None:
    return None if source is None or size is None else max(0, source - size)


def status_text(status: ReplicaStatus) -> str:
    """KIP-179's Status column, with the bytes that are still missing."""
    text = _TEXTS[status.state]
    if status.state is not ReplicaState.BEHIND:
        return text
    messages = "?" if status.messages_behind is None else str(status.messages_behind)
    text = f"{text}: {messages} messages behind"
    return text if status.bytes_behind is None else f"{text}, {size_text(status.bytes_behind)}"


_TEXTS = {
    ReplicaState.IN_SYNC: "In sync",
    ReplicaState.BEHIND: "Behind",
    ReplicaState.UNREADABLE: "Not readable",
    ReplicaState.UNKNOWN_TOPIC: "Unknown topic",
    ReplicaState.UNKNOWN_PARTITION: "Unknown partition",
    ReplicaState.UNKNOWN_BROKER: "Unknown broker",
    ReplicaState.NOT_HOSTED: "Broker does not host this partition",
}


TABLE_LINES = 50
"""So many the table has at most, its heading among them: the ledger has every replica."""


def status_table(statuses: Collection[ReplicaStatus], sample: ProgressSample | None = None) -> str:
    """KIP-179's table, one line per replica, and the plan's own line below it.

    Of more replicas than :data:`TABLE_LINES`, those are shown that matter most:
    first where something is wrong, then those that lack most. The last line sums up the others.
    """
    shown = _most_telling(statuses)
    rows = [("Topic", "Partition", "Broker", "Status")]
    for status in shown:
        topic, partition, broker = status.replica
        rows.append((topic, str(partition), str(broker), status_text(status)))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
        for row in rows
    ]
    sums = [footer(sample)] if sample else []
    if len(shown) < len(statuses):
        sums.append(_others(statuses, len(shown)))
    return "\n".join([*lines, *([", ".join(sums)] if sums else [])])


def _most_telling(statuses: Collection[ReplicaStatus]) -> list[ReplicaStatus]:
    """In the order in which they came."""
    most = TABLE_LINES - 1
    if len(statuses) <= most:
        return list(statuses)
    ranked = sorted(
        enumerate(statuses), key=lambda ranked_status: (*_says(ranked_status[1]), ranked_status[0])
    )
    return [
        status for _, status in sorted(ranked[:most], key=lambda ranked_status: ranked_status[0])
    ]


def _says(status: ReplicaStatus) -> tuple[int, int]:
    """Sort key of statuses: the lowest for what matters most."""
    order = {ReplicaState.BEHIND: 1, ReplicaState.NOT_HOSTED: 2, ReplicaState.IN_SYNC: 3}
    lacks = status.bytes_behind or status.messages_behind or 0
    return order.get(status.state, 0), -lacks


def _others(statuses: Collection[ReplicaStatus], shown: int) -> str:
    states = Counter(status.state for status in statuses)
    counted = ", ".join(f"{count} {_COUNTED[name]}" for name, count in sorted(states.items()))
    return f"{shown} of {len(statuses)} replicas shown (of all: {counted})"


_COUNTED = {
    ReplicaState.IN_SYNC: "in sync",
    ReplicaState.BEHIND: "behind",
    ReplicaState.UNREADABLE: "of topics that cannot be read",
    ReplicaState.UNKNOWN_TOPIC: "of unknown topics",
    ReplicaState.UNKNOWN_PARTITION: "of unknown partitions",
    ReplicaState.UNKNOWN_BROKER: "on unknown brokers",
    ReplicaState.NOT_HOSTED: "not hosted yet",
}


def footer(sample: ProgressSample) -> str:
    """Bytes done of all, moves, rate and time left, in one line."""
    done, total = size_text(sample.bytes_done), size_text(sample.bytes_total)
    moves = f"{sample.moves_done} of {sample.moves_total} moves done"
    percent = f"({100 * sample.fraction:.0f} %)"
    copied = [f"{done} of {total} {percent}", moves]
    rate, left = sample.rate_bytes_per_s, around(sample)
    return ", ".join(
        [
            *(copied if sample.bytes_total else [f"{moves} {percent}", "no bytes to copy"]),
            f"{sample.in_flight} in flight",
            "rate unknown" if rate is None else f"{size_text(rate)}/s",
            "time left unknown" if left is None else f"{left} left at this pace",
        ]
    )


def size_text(size_bytes: float) -> str:
    """A number of bytes for people, in powers of 1000 as throttles are given."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(size_bytes) < 1000:
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.1f} TB"
