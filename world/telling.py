"""What the judge is told of a run: the world's truth, and what ledgers and processes have left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from airflow.providers.common.compat.sdk import AirflowException

from rehome.alerts.catalog import CATALOG
from rehome.domain.kafka import BrokerId, ReplicaId
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan as RehomePlan
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.states import MoveState
from rehome.errors import RehomeError
from rehome.ledger.store import Ledger
from world.airflow.runs import DagRun
from world.airflow.shape import COLLECT
from world.airflow.states import TaskState
from world.judge.alerts_seen import AlertsSeen
from world.judge.configs import Ledgers
from world.judge.flights import Span
from world.judge.judge import Seen
from world.judge.orders import CancelSeen
from world.judge.plan_seen import PlanSeen, RatesAsked
from world.judge.two_of_one import CarriedOutBy
from world.kafka.metadata import PartitionKey
from world.rehome.people import adopts, plan_of
from world.rehome.rates_asked import carries_on_since, rates_asked
from world.rehome.two_entries import entries_seen
from world.rehome.watched_cluster import watching_seen, windows_seen
from world.script import What

if TYPE_CHECKING:
    from world.stage import Rehome, Stage, Started


class StruckError(Exception):
    """An exception out of nowhere, as of a task that is ended or a machine out of memory."""


EXPECTED = (RehomeError, AirflowException, StruckError)
"""What tasks may raise: errors made for people, and those that came out of nowhere."""


def told(stage: Stage) -> Seen:
    """The world at the end of a run."""
    ledgers = [rehome.installation.ledger() for rehome in stage.rehomes.values()]
    return Seen(
        history=stage.history,
        log=stage.model.world.log,
        plans=[_plan_seen(stage, started) for started in stage.started],
        statements=stage.statements,
        false_accounts=stage.accounts.violations,
        open_entries=[e for ledger in ledgers for e in ledger.throttles(open_only=True)],
        never_ended=stage.never_ended,
        waits_unnamed=stage.waits_unnamed,
        cancelled_in_vain=stage.cancelled_in_vain,
        crashes=list(_crashes(stage)),
        lost=dict(lost_messages(stage)),
        wiped=stage.model.world.wiped,
        spent={name: dict(r.installation.spent) for name, r in stage.rehomes.items()},
        ledgers=Ledgers(stage.ledgers),
        named={name: r.installation.named for name, r in stage.rehomes.items()},
        paused={
            name: [*chain.from_iterable(rehome.airflow.pauses.values())]
            for name, rehome in stage.rehomes.items()
        },
        ended_at=stage.scheduler.at_s,
        only_started=_only_started(stage),
        elsewhere=[] if stage.elsewhere is None else list(stage.elsewhere.changes()),
        watching=watching_seen(stage),
        alerts=[found for rehome in stage.rehomes.values() if (found := _alerts(rehome))],
        entries=entries_seen(stage),
        windows=windows_seen(stage),
        carried_out=list(_carried_out(stage)),
        gate_refused=_refused(stage),
        cancels=list(_cancels(stage)),
        let_act={
            run: rehome.person.let(asked, stage.history.last_listed(f"{asked}.look#"))
            for rehome in stage.rehomes.values()
            for asked in rehome.person.let_act
            for run in (asked, *rehome.person.that_carry_on(asked))
        },
    )


def _alerts(rehome: Rehome) -> AlertsSeen | None:
    """None = its installation has no channel."""
    site = rehome.installation
    if site.receiver is None:
        return None
    sent = {entry.kind for entry in CATALOG if entry.sent}
    lasting = [a for a in site.ledger().alerts() if a.closed_at is None and a.kind in sent]
    receiver = site.receiver
    return AlertsSeen(site.name, receiver.got, receiver.sendings, receiver.waited, lasting)


def _carried_out(stage: Stage) -> Iterator[CarriedOutBy]:
    for name, rehome in stage.rehomes.items():
        airflow = rehome.airflow
        plans = ((run.name, plan_of(run)) for run in (*airflow.runs, *airflow.others))
        adopting = [run.name for run in airflow.others if adopts(run)]
        if len(stage.ledgers[name]) == 1:
            by_run = {run: plan_id for run, plan_id in plans if plan_id}
            yield CarriedOutBy(name, by_run, adopting)


def _cancels(stage: Stage) -> Iterator[CancelSeen]:
    """Runs that have cancelled what others had in flight, by a ledger that knows its snapshots."""
    for name, rehome in stage.rehomes.items():
        airflow = rehome.airflow
        taken = [
            Span(run.began_at, run.ended_at)
            for run in airflow.others
            if run.graph.dag_id == COLLECT and run.ended_at is not None and _went_well(run)
        ]
        for run in airflow.others if len(stage.ledgers[name]) == 1 else ():
            cancels = [each for each in airflow.spawned if each.name == f"{run.name}.cancel"]
            if run.name in rehome.person.let_act and cancels and _went_well(run):
                yield CancelSeen(run.name, cancels[-1].ended_at, tuple(taken))


def _went_well(run: DagRun) -> bool:
    return {TaskState.SUCCESS, TaskState.SKIPPED}.issuperset(run.states().values())


def _refused(stage: Stage) -> dict[str, Sequence[str]]:
    """What gates have refused, and should not have: any plan of the planner's, and a snapshot where
    nothing has happened. Of another Rehome, which plans meanwhile, moves are in flight.
    """
    sites = [rehome.installation for rehome in stage.rehomes.values()]
    refused = [site.gate_refused for site in sites]
    if _only_started(stage):
        starting = [stage.rehomes[plan.of] for plan in stage.script.plans]
        refused += [rehome.installation.snapshots_refused for rehome in starting]
    return {plan_id: rules for each in refused for plan_id, rules in each.items()}


def _only_started(stage: Stage) -> bool:
    """Whether a single plan was started, and nothing else was done or struck."""
    script = stage.script
    return len(script.does) == len(script.plans) == 1 and not script.strikes


def _plan_seen(stage: Stage, started: Started) -> PlanSeen:
    plan, rehome = started.plan, stage.rehomes[started.by]
    record = stage.records.get(plan.plan_id)
    ledger = rehome.installation.ledger()
    admitted = ledger.planned_moves(plan.plan_id, MoveState.ADMITTED) if record else ()
    return PlanSeen(
        plan_id=plan.plan_id,
        by=started.by,
        moves={move.partition: (_topic_id(stage, move), move.target) for move in plan.moves},
        log_dirs=frozenset(_log_dirs(plan)),
        record=record,
        admitted=frozenset(move.partition for move in admitted),
        able=_able(stage, started),
        throttled=not started.script.unthrottled,
        undisturbed=_undisturbed(stage, started.by),
        unread=started.unread,
        approved_s=(
            rehome.person.approved.get(plan.plan_id, float("inf"))
            if started.script.approval
            else None
        ),
        said_lost=_said_lost(ledger, plan.plan_id) if record else frozenset(),
        cordons=_cordons(stage, started),
        window_s=started.script.window_s if _calm(stage, started.by) else None,
        before={move.partition: move.current for move in plan.moves},
        at_once=started.script.at_once,
        rates=tuple(_rates(stage, started)),
    )


def _rates(stage: Stage, started: Started) -> Iterator[RatesAsked]:
    """Of a plan whose ledger has known all that was asked of it."""
    if len(stage.ledgers[started.by]) == 1:
        yield from rates_asked(stage.rehomes[started.by].airflow, started.plan.plan_id)


def _topic_id(stage: Stage, move: Move) -> str:
    """Of the topic that a move is of; a plan of what it could not read does not know it."""
    key = stage.model.actions.key(move.partition)
    return move.topic_id or (key.topic_id if key is not None else "")


def _cordons(stage: Stage, started: Started) -> frozenset[BrokerId]:
    free = _undisturbed(stage, started.by) and _calm(stage, started.by)
    return frozenset(started.script.drains if free and started.script.cordons else ())


def _undisturbed(stage: Stage, name: str) -> bool:
    """Whether nobody has done anything to an installation but start a plan, nor fate."""
    struck = any(strike.whom == name for strike in stage.script.strikes)
    return not struck and all(
        does.what is What.START for does in stage.script.does if does.who == name
    )


def _calm(stage: Stage, name: str) -> bool:
    """Whether an installation's DAG was paused at most, and nothing happened to brokers."""
    calm = {What.START, What.RESUME, What.PAUSE_DAG, What.UNPAUSE_DAG, What.SWEEP}
    of_it = {does.what for does in stage.script.does if does.who == name}
    struck = any(strike.whom == name for strike in stage.script.strikes)
    fated = any(does.who == "fate" for does in stage.script.does)
    return not struck and not fated and of_it <= calm


def _able(stage: Stage, started: Started) -> list[Span]:
    """When something of the plan's runs was alive, and its ledger was there."""
    airflow = stage.rehomes[started.by].airflow
    plan_id, record = started.plan.plan_id, stage.records.get(started.plan.plan_id)
    by_run = None if record is None else record.run_id
    runs = [r for r in airflow.runs if plan_of(r) == plan_id]
    runs += [r for r in airflow.others if r.run_id == by_run]
    spans = [
        Span(max(since, actor.began_at), min(actor.ended_at, stage.scheduler.at_s))
        for run in runs
        for since in [carries_on_since(airflow, run)]
        for actor in airflow.spawned
        if actor.name.startswith(f"{run.name}.") and actor.ended_at > since
    ]
    for away in stage.away.get(started.by, ()):
        before = [Span(span.since, min(span.until, away.since)) for span in spans]
        after = [Span(max(span.since, away.until), span.until) for span in spans]
        spans = [span for span in (*before, *after) if span.lasts_s > 0]
    return spans


def lost_messages(stage: Stage) -> Iterator[tuple[PartitionKey, float]]:
    """Acknowledged messages that no leader has any more, by partition."""
    world = stage.model.world
    for key, acknowledged in world.acknowledged.items():
        state = world.image.partitions.get(key)
        node = world.nodes.get(state.leader or 0) if state is not None else None
        replica = node.replicas.get(key) if node is not None else None
        if replica is not None and replica.log.end < acknowledged - 1:
            yield key, acknowledged - replica.log.end


def _crashes(stage: Stage) -> Iterator[tuple[str, BaseException]]:
    """Of processes, errors that no code raises on purpose; of whatever else acts, all."""
    processes = {actor for each in stage.rehomes.values() for actor in each.airflow.spawned}
    for actor, error in stage.scheduler.raised():
        if actor not in processes or not isinstance(error, EXPECTED):
            yield actor.name, error


def _log_dirs(plan: RehomePlan) -> Iterator[tuple[ReplicaId, str]]:
    for move in plan.moves:
        for broker, path in zip(move.target, move.target_log_dirs, strict=False):
            yield ReplicaId(*move.partition, broker), path


def _said_lost(ledger: Ledger, plan_id: str) -> frozenset[str]:
    """Names of the partitions that the plan's events are about of which messages are lost."""
    events = ledger.events(plan_id)
    told = (event for event in events if event.kind is EventKind.DATA_LOST)
    return frozenset(event.detail.partition(":")[0] for event in told)
