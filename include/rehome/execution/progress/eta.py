"""How long a plan still takes: the rest of it played out, at what brokers are found to deliver.

Not all bytes over the rate of all: that rate falls when brokers with little to do have ended,
while the busiest one, which decides when the plan ends, goes on as before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise

from rehome.domain.kafka import ReplicaId
from rehome.domain.plan.move import Move
from rehome.domain.run.flows import FlowSample
from rehome.domain.run.ledger_view import LedgerView
from rehome.domain.run.observation import Observation
from rehome.domain.run.pace import Pace, is_small
from rehome.domain.run.progress import ProgressSample
from rehome.domain.run.run_policy import Policy
from rehome.execution.admission.backlog import Admitted, Backlog, Foreseen
from rehome.execution.admission.slots import Slot, slots_of
from rehome.execution.estimate.projection import play_out
from rehome.execution.estimate.rate_regression import COMMON_WINDOW, Trend, trend
from rehome.execution.estimate.reaction import measured_reaction_s
from rehome.execution.governor.cluster_health import strain_of
from rehome.execution.progress.flow_samples import Copied, flow_sample
from rehome.execution.progress.outpaced import Outpaced, find_outpaced, may_be_outpaced


@dataclass(frozen=True, slots=True)
class Remaining:
    """What is left of a plan.

    :param left_bytes: by broker and direction; every copy with no less than the bytes of its
        smallest part of a slot.
    :param copying: moves that have been admitted, and whose copies are not complete.
    :param waiting: how many have not been admitted.
    """

    left_bytes: Mapping[Slot, int]
    copying: tuple[Admitted, ...]
    waiting: int

    @classmethod
    def of(cls, backlog: Backlog, observation: Observation, pace: Pace) -> Remaining:
        """From the open moves and the sizes of the copies in flight."""
        left: Counter[Slot] = Counter(backlog.pending_bytes)
        for slot, waiting in backlog.by_slot.items():
            if slot is not None:
                left[slot] += waiting.lacking(pace)
        copying = tuple(
            a for a in backlog.admitted.values() if not _has_arrived(a.move, observation)
        )
        for admitted_move in copying:
            for slot, left_bytes in slots_of(admitted_move.move, observation).items():
                small = is_small(left_bytes, pace.small_bytes)
                left[slot] += left_bytes if small else max(left_bytes, pace.least_bytes)
        return cls(left, copying, backlog.pending_count)

    @property
    def busiest_bytes(self) -> int:
        """Bytes left at the broker and direction where most are left."""
        return max(self.left_bytes.values(), default=0)

    @property
    def moves(self) -> int:
        """How many have not ended."""
        return len(self.copying) + self.waiting


def _has_arrived(move: Move, observation: Observation) -> bool:
    """Whether its copies are complete, and it is not settled yet."""
    if move.partition in observation.ongoing or move.relocating:
        return False
    shown = observation.partitions.get(move.partition)
    return shown is not None and shown.replicas == move.target


@dataclass(frozen=True, slots=True)
class Foretold:
    """What a poll shows of the rest of a plan.

    :param flows: what brokers have copied since the poll before; None where that is not known.
    :param busiest_bytes: bytes left at the broker and direction where most are left.
    :param eta_s: until the last copy is complete; None while nothing comes through.
    :param foreseen: for the next poll.
    :param outpaced: where producers write more than the throttle lets through: when the last copy
        is complete is not known then.
    """

    flows: FlowSample | None
    busiest_bytes: int
    eta_s: float | None
    foreseen: Foreseen | None = None
    outpaced: tuple[Outpaced, ...] = ()


def _now(move: Move, view: LedgerView) -> Move:
    """A move as its present step: brokers of later ones deliver nothing yet, which says nothing of
    them.
    """
    step = view.steps.get(move.partition)
    if step is None or move.target_log_dirs or not step.of_several(move):
        return move
    return replace(move, target=step.target)


def foretell(
    view: LedgerView,
    backlog: Backlog,
    observation: Observation,
    policy: Policy,
    before: Mapping[ReplicaId, Copied],
    since: datetime | None,
    history: Sequence[ProgressSample],
    foreseen: Foreseen | None = None,
) -> Foretold:
    """What brokers deliver, from what they have copied, and how long the rest takes with that.

    :param backlog: the view's open moves.
    :param before: the copies that were in flight at the poll before; ``since``: when that was.
    :param history: earlier samples, oldest first.
    :param foreseen: what an earlier poll has computed; None = the rest is played out in any case.
    """
    pace = policy.pace(view.target_bytes_per_s or policy.rate_bytes_per_s, view.own_targets)
    left = Remaining.of(backlog, observation, pace)
    last = view.flows[-1] if view.flows and view.flows[-1].at == since else None
    flows = flow_sample(
        [_now(admitted_move.move, view) for admitted_move in backlog.admitted.values()],
        observation,
        before,
        since,
        strain_of(observation),
        _delivered_trend(view.flows, view, observation, left, policy),
        frozenset(last.silent if last else ()),
    )
    flow_history = view.flows if flows is None else (*view.flows, flows)
    in_flight = [admitted_move.move for admitted_move in backlog.admitted.values()]
    slow, flow_history = _after_outpaced(flow_history, view, in_flight, observation, policy)
    if slow:
        return Foretold(flows, left.busiest_bytes, None, outpaced=slow)
    now = _delivered_trend(flow_history, view, observation, left, policy)
    if (
        foreseen is not None
        and left.moves
        and not now.stopped
        and foreseen.holds(view, observation)
    ):
        return Foretold(flows, left.busiest_bytes, foreseen.eta_at(observation), foreseen)
    policy = replace(policy, reaction_s=measured_reaction_s(history, observation.taken_at, policy))
    eta_s, work = _eta_s(left, backlog, observation, policy, pace, now)
    new = None
    if eta_s is not None:
        new = Foreseen(
            observation.taken_at, eta_s, work, view.target_bytes_per_s, observation.live_brokers
        )
    return Foretold(flows, left.busiest_bytes, eta_s, new)


def _after_outpaced(
    flows: tuple[FlowSample, ...],
    view: LedgerView,
    admitted: Collection[Move],
    observation: Observation,
    policy: Policy,
) -> tuple[tuple[Outpaced, ...], tuple[FlowSample, ...]]:
    """Where producers outrun copies now; and what was copied since they last did: what came before
    tells nothing of the pace from then on.
    """
    target = view.target_bytes_per_s
    if target is None or not view.rates:  # it runs without a throttle, or has not begun
        return (), flows
    for end in range(len(flows), 0, -1):
        if not may_be_outpaced(flows[end - 1]):
            continue
        slow = find_outpaced(
            *(flows[:end], admitted, observation.partitions, target, policy.throttle_efficiency),
            view.own_targets,
        )
        if slow:
            return (slow if end == len(flows) else ()), flows[end:]
    return (), flows


def _delivered_trend(
    flows: Sequence[FlowSample],
    view: LedgerView,
    observation: Observation,
    left: Remaining,
    policy: Policy,
) -> Trend:
    """Before it is measured, what the policy says of the governor's target is expected."""
    rate = view.rate_bytes_per_s or policy.rate_bytes_per_s
    target = view.target_bytes_per_s or rate
    expected = policy.throttle_efficiency * target / rate
    rates = {each.key: each.rate_bytes_per_s for each in view.own_rates}
    return trend(flows, observation.taken_at, left.left_bytes, rate, expected, rates)


def _eta_s(
    left: Remaining,
    backlog: Backlog,
    observation: Observation,
    policy: Policy,
    pace: Pace,
    now: Trend,
) -> tuple[float | None, int]:
    """Until the last copy is complete, of those that can be made; None where none comes through.

    :returns: with the work that this has taken.
    """
    if not left.moves:
        return 0.0, 0
    if now.stopped:
        return None, 0
    course = play_out(backlog, left.copying, observation, policy, pace, now.bytes_per_s)
    if not course.seconds and not course.whole:
        return None, course.work
    return max(course.seconds + now.ahead_s / now.part, 0.0), course.work


@dataclass(frozen=True, slots=True)
class EtaError:
    """How far off the ETA was while one tenth of the bytes was copied.

    :param tenth: 0 = the first one.
    :param worst: the predicted end less the true one, over the whole time from the start to the
        end, where that was largest: 0.1 = ten per cent of the whole time too late. The end is that
        of the last copy.
    """

    tenth: int
    worst: float


def eta_errors(samples: Sequence[ProgressSample]) -> tuple[EtaError, ...]:
    """The error of the recorded ETAs by tenths of the bytes; tenths without a sample are left out.

    Of a plan that has paused, only what came after counts: a pause cannot be predicted.

    :param samples: all of a plan that is done, oldest first.
    """
    stretch = _last_stretch(samples)
    if len(stretch) < 2:
        return ()
    end, start = _copied_at(stretch), stretch[0].sampled_at
    worst: dict[int, float] = {}
    for sample in stretch:
        if sample.eta_s is None or not sample.bytes_total or sample.sampled_at >= end:
            continue
        tenth = min(9, 10 * sample.bytes_done // sample.bytes_total)
        foretold = sample.sampled_at + timedelta(seconds=sample.eta_s)
        error = (foretold - end) / (end - start)
        worst[tenth] = max(worst.get(tenth, 0.0), error, key=abs)
    return tuple(EtaError(tenth, error) for tenth, error in sorted(worst.items()))


def _copied_at(samples: Sequence[ProgressSample]) -> datetime:
    """When the last copy was complete: halfway between the polls before and after that."""
    copying = [place for place, sample in enumerate(samples) if sample.busiest_bytes != 0]
    before = min(copying[-1] if copying else 0, len(samples) - 2)
    earlier, later = samples[before].sampled_at, samples[before + 1].sampled_at
    return earlier + (later - earlier) / 2


def _last_stretch(samples: Sequence[ProgressSample]) -> Sequence[ProgressSample]:
    starts = [
        place
        for place, (earlier, later) in enumerate(pairwise(samples), start=1)
        if later.sampled_at - earlier.sampled_at > COMMON_WINDOW
    ]
    return samples[starts[-1] :] if starts else samples
