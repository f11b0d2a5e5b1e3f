"""The judge: everything that must never be, looked for in one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rehome.domain.claims import InFlight
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import ReplicaId, Replicas, TopicPartition
from rehome.domain.run.states import PlanState
from rehome.ledger.base.records import ThrottleEntry
from world.history import OTHERS, ConfigKey, ConfigWrite, History
from world.judge.alerts_seen import AlertsSeen, wrong_in_alerts
from world.judge.answers_in_time import WindowsSeen, wrong_in_windows
from world.judge.claims import Truth
from world.judge.cleaned import Cleaned
from world.judge.configs import Configs, KeyHistory, Ledgers, left_by_a_lost_ledger
from world.judge.flights import foreign_unthrottled, in_flight, unthrottled
from world.judge.heals import Watching, wrong_in_watching
from world.judge.lost_unsaid import lost_unsaid
from world.judge.orders import CancelSeen, out_of_order
from world.judge.owed_marks import kept_befores, needed_rates, owed_marks
from world.judge.placement import LetAct, Partitions, misplaced, taken_over
from world.judge.plan_seen import PlanSeen, too_many_at_once
from world.judge.rates_kept import over_their_rates
from world.judge.statements import Statement
from world.judge.two_of_one import (
    CarriedOutBy,
    Entries,
    adopted_beside_a_plan,
    begun_by_two_entries,
    two_plans_at_once,
)
from world.judge.violations import Kind, Violation
from world.kafka.metadata import MetadataLog, PartitionKey
from world.rehome.installation import Spent
from world.running.outside import EPOCH

MOST_CALLS = {Spent.POLL: 24, Spent.DECISION: 52}
"""Calls through the port of one poll, and of one decision with all that it leads to. Most polls
make six or seven; one that sees moves end looks up to three times. A decision that starts moves in
two rounds while rates of single brokers change makes 49.
"""

ASKED_IN_S = 300.0
WINDOW_KEPT_S = 120.0
"""So long after its window's end nothing of a plan may be in flight: some polls, and the cancel."""
CORDONED, CORDONED_WITHIN_S = "cordoned.log.dirs", 30.0
"""So long after it began to run, at most, a plan that nothing disturbs has cordoned its brokers."""
READ_FOR_S = 5.0
"""What ends a plan, and is no step of it, reads and says so in this time."""
JUST_BEFORE_S = 1e-6
"""What is asked for may take place at once."""
MOST_ASKED = 20
"""So often, at most, one cancel is asked for in that time."""


@dataclass(frozen=True)
class Seen:
    """All that the judge is told.

    :param false_accounts: what was false in accounts of plans when they were read.
    :param open_entries: what ledgers name as set or owed, at the end.
    :param ledgers: that each installation has had; ``named``: the keys that their last sweeps have
        named as another installation's, to be settled by a person.
    :param never_ended: plans that had not ended when they should have, and wait for nobody.
    :param waits_unnamed: plans that no run drives any more, and of which nobody was told.
    :param lost: acknowledged messages that no leader has any more, by partition.
    :param wiped: when a broker last came back without its replica of a partition.
    :param spent: calls to the cluster of each poll and decision, by installation.
    :param gate_refused: plans of the planner's that the gate has refused, and why.
    :param elsewhere: what has been changed on another cluster, and when.
    :param watching: what it has found, started and carried out.
    :param only_started: nothing was done but to start plans, and nothing struck.
    :param alerts: of installations that have a channel; ``entries``: of those whose clusters file
        had two for the cluster; ``carried_out``: by which runs, of those with one ledger.
    :param let_act: runs that may act on what others have in flight, by their names; ``cancels``:
        those that have cancelled it.
    :param crashes: errors that no code of ours raises on purpose, by the process.
    """

    history: History
    log: MetadataLog
    plans: Sequence[PlanSeen]
    statements: Sequence[Statement]
    false_accounts: Sequence[Violation]
    open_entries: Sequence[ThrottleEntry]
    never_ended: Sequence[str]
    waits_unnamed: Sequence[str]
    cancelled_in_vain: Sequence[str]
    crashes: Sequence[tuple[str, BaseException]]
    lost: Mapping[PartitionKey, float]
    spent: Mapping[str, Mapping[Spent, Sequence[int]]]
    ended_at: float
    only_started: bool = False
    gate_refused: Mapping[str, Sequence[str]] = field(default_factory=dict)
    elsewhere: Sequence[tuple[float, str]] = ()
    watching: Watching = field(default_factory=Watching)
    ledgers: Ledgers = field(default_factory=Ledgers)
    wiped: Mapping[PartitionKey, float] = field(default_factory=dict)
    named: Mapping[str, frozenset[ConfigKey]] = field(default_factory=dict)
    paused: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    let_act: Mapping[str, LetAct] = field(default_factory=dict)
    cancels: Sequence[CancelSeen] = ()
    alerts: Sequence[AlertsSeen] = ()
    entries: Sequence[Entries] = ()
    carried_out: Sequence[CarriedOutBy] = ()
    windows: Sequence[WindowsSeen] = ()


@dataclass(frozen=True)
class Verdict:
    """What was found.

    :param unavoidable: writes that hit what nobody could have seen: another's write came between
        our last reading of the key and our own write.
    """

    violations: tuple[Violation, ...]
    unavoidable: int = 0


def judge(seen: Seen) -> Verdict:
    """Look for everything; where another cluster was changed, for nothing else."""
    if seen.elsewhere:
        changed = [Violation(Kind.WRONG_CLUSTER, "elsewhere", t, at) for at, t in seen.elsewhere]
        return Verdict(tuple(changed))
    partitions = Partitions.of(seen.log)
    cleaned = Cleaned(seen.history, partitions, seen.let_act)
    announced = {plan.plan_id: plan.list_items for plan in seen.plans}
    configs = Configs.of(seen.history, seen.ledgers, cleaned.lets, announced)
    lists = {plan.plan_id: plan.lists for plan in seen.plans}
    windows = {p.plan_id: p.window_s for p in seen.plans if p.window_s is not None}
    truth = Truth(seen.history, configs, partitions, lists, _ends(seen), windows, seen.paused)
    found = [
        *configs.taken_away,
        *_configs(configs, partitions, seen),
        *_plans(partitions, configs, seen),
    ]
    for said in seen.statements:
        found += truth.false_claims(said)
    found += seen.false_accounts
    for plan_id, rules in seen.gate_refused.items():
        text = f"plan {plan_id}: {'; '.join(rules)}"
        found.append(Violation(Kind.GATE_REFUSED, "plan", text, seen.ended_at))
    for process, error in seen.crashes:
        text = f"{process}: {type(error).__name__}: {error}"
        found.append(Violation(Kind.CRASH, type(error).__name__, text, seen.ended_at))
    planned: dict[PartitionKey, set[Replicas]] = {}
    for plan in seen.plans:
        for key, target in plan.targets.items():
            # A ledger that is lost takes no step back, and knows of no next one.
            asked = {target} if plan.record is not None else plan.lists[key]
            planned.setdefault(key, set()).update(asked)
    found += misplaced(partitions, seen.history.alters, planned, seen.let_act)
    found += taken_over(partitions, seen.history.alters, seen.let_act)
    found += out_of_order(partitions, seen.history.alters, seen.cancels)
    found += foreign_unthrottled(partitions, configs, seen.history.alters, set(planned))
    found += begun_by_two_entries(seen.history.alters, seen.entries)
    found += two_plans_at_once(seen.history.alters, seen.carried_out)
    found += adopted_beside_a_plan(seen.history, seen.plans, partitions, seen.carried_out)
    found += wrong_in_windows(seen.windows, seen.ended_at)
    found += wrong_in_alerts(seen.alerts, seen.ended_at)
    found += wrong_in_watching(seen.log, seen.watching, seen.ended_at)
    found += [*_below_min_isr(seen), *_wrong_log_dirs(seen), *_too_many_calls(seen)]
    return Verdict(tuple(dict.fromkeys(found)), configs.unavoidable)


def _below_min_isr(seen: Seen) -> Iterator[Violation]:
    for taken in seen.history.taken:
        if taken.owner != OTHERS and taken.after < taken.least <= taken.before:
            text = f"{taken.partition}: {taken.before} in sync, then {taken.after} < {taken.least}"
            yield Violation(Kind.BELOW_MIN_ISR, str(taken.partition), text, taken.at)


def _wrong_log_dirs(seen: Seen) -> Iterator[Violation]:
    planned = {pair for plan in seen.plans for pair in plan.log_dirs}
    been: dict[ReplicaId, set[str | None]] = {}
    for asked in seen.history.dirs:
        been.setdefault(asked.replica, set()).add(asked.before)
        right = (asked.replica, asked.path) in planned or asked.path in been[asked.replica]
        if asked.owner != OTHERS and not right:
            text = f"{asked.replica} was sent to {asked.path}"
            yield Violation(Kind.WRONG_LOG_DIR, str(asked.replica), text, asked.at)


def _too_many_calls(seen: Seen) -> Iterator[Violation]:
    for name, spent in seen.spent.items():
        for what, numbers in spent.items():
            if max(numbers) > MOST_CALLS[what]:
                text = (
                    f"a {what} of {name} made {max(numbers)} calls; {MOST_CALLS[what]} are stated"
                )
                yield Violation(Kind.TOO_MANY_CALLS, what, text, seen.ended_at)


def _ends(seen: Seen) -> dict[str, float]:
    """When plans ended that nothing has disturbed, in seconds since the world began: by themselves.
    One that waits is cancelled by a person in the end, and of one that failed the controller has
    refused a move that every estimate until then has counted.
    """
    records = [plan.record for plan in seen.plans if plan.record and seen.only_started]
    records = [record for record in records if record.state is PlanState.DONE]
    return {
        record.plan_id: (record.ended_at - EPOCH).total_seconds()
        for record in records
        if record.ended_at is not None
    }


def _configs(configs: Configs, partitions: Partitions, seen: Seen) -> Iterator[Violation]:
    owed = {(entry.resource, entry.key) for entry in seen.open_entries}
    marks = owed_marks(seen.open_entries, {key for _, key in configs.keys})
    left = [known for known in configs.ours_left() if not _of_a_ledger_that_is_gone(known, seen)]
    gone = {known.key[1] for known in configs.ours_left()} - {known.key[1] for known in left}
    named = {key for keys in seen.named.values() for _, key in keys}
    marks |= kept_befores(gone, named)
    needed = needed_rates(gone & named)
    relied_on = _relied_on(partitions, seen)
    for known in left:
        resource, key = known.key
        if known.key in relied_on:
            continue
        if (resource.name or "default", key) in needed and key in named:
            continue  # its writer has left it for a ledger that is gone since
        if known.key not in owed and key not in marks:
            yield _config_violation(known)


def _relied_on(partitions: Partitions, seen: Seen) -> set[ConfigKey]:
    """What the last sweep of an installation has named as left, while a copy is in flight that its
    ledger has lost: nothing may be taken from that before it ends.
    """
    lost = [plan for plan in seen.plans if plan.record is None]
    waits = {plan.by for plan in lost if in_flight(partitions, plan.lists, seen.ended_at)}
    return {key for name in waits for key in seen.named.get(name, ())}


def _of_a_ledger_that_is_gone(known: KeyHistory, seen: Seen) -> bool:
    """Whether another ledger is in its place, and names this as not its own."""
    return any(
        known.key in seen.named.get(name, ()) and left_by_a_lost_ledger(known, seen.ledgers, name)
        for name in seen.ledgers.had
    )


def _config_violation(known: KeyHistory) -> Violation:
    resource, key = known.key
    last = known.last
    text = f"{resource} {key} is {last.actual!r}, and others want {last.wanted!r}"
    subject = f"{_subject(resource)} {key}"
    if known.is_list and last.actual == "" and last.wanted is None:
        return Violation(Kind.EMPTY_LIST, subject, text, last.at)
    kind = Kind.LEFT_BEHIND if last.ours else Kind.NOT_AS_WANTED
    return Violation(kind, subject, text, last.at)


def _subject(resource: ConfigResource) -> str:
    return f"{resource.type_value} {resource.name or 'default'}"


def _plans(partitions: Partitions, configs: Configs, seen: Seen) -> Iterator[Violation]:
    for plan in seen.plans:
        if plan.throttled:
            yield from unthrottled(partitions, configs, plan.lists, plan.able)
        yield from over_their_rates(partitions, configs, seen.history, plan)
        yield from too_many_at_once(partitions, plan, seen.history.alters)
        if plan.plan_id in seen.never_ended:
            text = f"plan {plan.plan_id} is {plan.record and plan.record.state} still"
            yield Violation(Kind.NEVER_ENDS, "plan", text, seen.ended_at)
        if plan.plan_id in seen.waits_unnamed:
            text = f"plan {plan.plan_id} waits for a person, and no alert says so"
            yield Violation(Kind.NAMES_NOBODY, "plan", text, seen.ended_at)
        if plan.plan_id in seen.cancelled_in_vain:
            text = f"plan {plan.plan_id} is {plan.record and plan.record.state} after a cancel"
            yield Violation(Kind.CANCEL_FAILS, "plan", text, seen.ended_at)
        yield from _going_on(partitions, plan, seen)
        for name, messages in lost_unsaid(partitions, plan, seen.statements, seen.lost, seen.wiped):
            text = f"{messages:.0f} messages of {name} are gone; plan {plan.plan_id} is done"
            yield Violation(Kind.LOST_UNSAID, name, text, seen.ended_at)
        yield from _unapproved(plan, seen)
        yield from _failed_for_nothing(partitions, plan, seen)
        yield from _asks_on(plan, seen)
        yield from _past_window(partitions, plan, seen)
        yield from _uncordoned(plan, seen)


def _unapproved(plan: PlanSeen, seen: Seen) -> Iterator[Violation]:
    """What was sent for a plan before a person had approved it, or another one with this target."""
    if plan.approved_s is None:
        return
    for asked in seen.history.alters:
        wanted = asked.partition, asked.target
        if asked.owner != plan.by or wanted not in plan.wanted:
            continue
        for_it = (each for each in seen.plans if each.by == plan.by and wanted in each.wanted)
        if all((each.approved_s or 0.0) > asked.at for each in for_it):
            text = f"{asked.partition}: {asked.target}; plan {plan.plan_id} was not approved"
            yield Violation(Kind.UNAPPROVED, plan.plan_id, text, asked.at)


def _failed_for_nothing(partitions: Partitions, plan: PlanSeen, seen: Seen) -> Iterator[Violation]:
    """A plan is called failed by what its last step has read: what comes later nobody knows."""
    record = plan.record
    if record is None or record.state is not PlanState.FAILED or not plan.undisturbed:
        return
    if record.started_at is None or record.ended_at is None:
        return  # it was refused, as what it was made for was not there any more
    ended_at = (record.ended_at - EPOCH).total_seconds()
    steps = [said for said in seen.statements if said.plan_id == plan.plan_id]
    since = [said.since for said in steps if said.since <= ended_at <= said.at and _of_step(said)]
    times = partitions.times(min(since, default=ended_at - READ_FOR_S), ended_at)
    last = [(key, partitions.at(key, when)) for key in plan.targets for when in times]
    gone = any(state is None for _, state in last)
    in_place = all(s is None or s.replicas == plan.targets[key] for key, s in last)
    if gone and in_place and not plan.said_lost:
        text = f"plan {plan.plan_id} has failed, and all of it is in place or gone: {record.cause}"
        yield Violation(Kind.FAILED_FOR_NOTHING, "plan", text, ended_at)


def _of_step(said: Statement) -> bool:
    return any(isinstance(claim, InFlight) for claim in said.claims)


def _past_window(partitions: Partitions, plan: PlanSeen, seen: Seen) -> Iterator[Violation]:
    """Whatever runs of an installation keeps a window's end: a paused DAG does not stop that."""
    if plan.window_s is None or plan.window_s + WINDOW_KEPT_S > seen.ended_at:
        return
    late = in_flight(partitions, plan.lists, plan.window_s + WINDOW_KEPT_S)
    if late:
        text = f"{len(late)} moves of plan {plan.plan_id} are in flight after its window"
        yield Violation(Kind.PAST_WINDOW, "plan", text, plan.window_s + WINDOW_KEPT_S)


def _uncordoned(plan: PlanSeen, seen: Seen) -> Iterator[Violation]:
    """Whoever drains a broker needs its cordon, whoever else has done with it."""
    brokers = {ConfigResource.broker(broker) for broker in plan.cordons}
    if not brokers or plan.record is None or plan.record.started_at is None:
        return
    since = (plan.record.started_at - EPOCH).total_seconds() + CORDONED_WITHIN_S
    ended = plan.record.ended_at
    until = seen.ended_at if ended is None else (ended - EPOCH).total_seconds()
    for write in seen.history.writes:
        if (
            isinstance(write, ConfigWrite)
            and (write.resource in brokers and write.key == CORDONED)
            and (write.owner not in (OTHERS, plan.by) and write.after is None)
            and since < write.at < until
        ):
            text = f"{write.resource} by {write.process}, while {plan.plan_id} drains it"
            yield Violation(Kind.UNCORDONED, str(write.resource), text, write.at)


def _asks_on(plan: PlanSeen, seen: Seen) -> Iterator[Violation]:
    """A cancel that is refused is asked again less and less often."""
    asked: dict[TopicPartition, list[float]] = {}
    for alter in seen.history.alters:
        if alter.owner == plan.by and alter.target is None and alter.partition in plan.moves:
            asked.setdefault(alter.partition, []).append(alter.at)
    for partition, times in asked.items():
        most = max(sum(since <= at < since + ASKED_IN_S for at in times) for since in times)
        if most > MOST_ASKED:
            text = f"{partition} was asked {most} times within {ASKED_IN_S:.0f} s to be cancelled"
            yield Violation(Kind.ASKS_ON, str(partition), text, times[-1])


def _begun_by_another(
    partitions: Partitions, plan: PlanSeen, key: PartitionKey, name: TopicPartition, seen: Seen
) -> bool:
    """Whether another client has asked last for the plan's very target, when nothing was on its way
    there.
    """
    target = plan.targets[key]
    asked = [
        each for each in seen.history.alters if (each.partition, each.target) == (name, target)
    ]
    if not asked or asked[-1].owner == plan.by:
        return False
    return key not in in_flight(
        partitions, {key: frozenset([target])}, asked[-1].at - JUST_BEFORE_S
    )


def _going_on(partitions: Partitions, plan: PlanSeen, seen: Seen) -> Iterator[Violation]:
    """What an ended plan has in flight has to be in its ledger as such, or as another plan's, which
    moves the same.
    """
    if plan.record is None or not plan.record.state.ended:
        return
    admitted = {name for each in seen.plans if each.by == plan.by for name in each.admitted}
    for key in in_flight(partitions, plan.lists, seen.ended_at):
        name = TopicPartition(partitions.names[key.topic_id], key.number)
        if name not in admitted and not _begun_by_another(partitions, plan, key, name, seen):
            text = f"{name} of plan {plan.plan_id}, which is {plan.record.state}"
            yield Violation(Kind.GOES_ON, str(name), text, seen.ended_at)
