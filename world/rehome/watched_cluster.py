"""Watching in the simulated world: rules and windows of a cluster, what its runs are to do, and
what the judge gets to know of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rehome.alerts.kinds import AlertKind
from rehome.clusters.clusters_file import ClustersFile
from rehome.domain.clock import CLOCKS_DIFFER
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.run.watched.finding_kinds import FindingKind
from rehome.fleet.watch_runs import RUN_ID_PREFIX
from rehome.watching.remedy import broker_of
from world.airflow.runs import DagRun
from world.airflow.shape import IN_WINDOW
from world.airflow.standing_in import CONNECTION
from world.airflow.states import BAD
from world.history import Alter
from world.judge.answers_in_time import Asked, WindowRun, WindowsSeen
from world.judge.flights import Span
from world.judge.heals import Begun, CarriedOut, Watched, Watching
from world.judge.promises import Promise, Promises, TakenUp
from world.rehome.by_hand import CLUSTER
from world.rehome.people import plan_of
from world.running.outside import EPOCH
from world.script import Plan, Topic, Watch, What

if TYPE_CHECKING:
    from world.stage import Stage

REPLACED = (What.LEDGER_NEW, What.LEDGER_RESTORED)


def file_of(watch: Watch) -> ClustersFile:
    """The clusters file of an installation that watches: dead brokers alone have a policy."""
    rules = {
        "policies": {"dead_broker": watch.policy},
        "grace_s": watch.grace_s,
        "heals_a_day": watch.heals_a_day,
        "budget_bytes": watch.budget_bytes,
    }
    entry: dict[str, Any] = {
        "connection": CONNECTION,
        "watch": rules,
        "targets": {"throttle": str(watch.rate)} | ({"approval": True} if watch.approval else {}),
        "own_plan": watch.own_plan,
    }
    if watch.window_s is not None:
        entry["windows"] = [
            {"cron": f"{opens_s // 60} 0 * * *", "hours": lasts_s / 3600}
            for opens_s, lasts_s in (watch.window_s, *watch.later)
        ]
    return ClustersFile.model_validate({"clusters": {CLUSTER: entry}})


def is_started(run: Any) -> bool:
    """Whether watching has started a run."""
    return str(run.run_id).startswith(RUN_ID_PREFIX)


def by_itself(name: str, run: Any, watches: Sequence[Watch]) -> Plan | None:
    """What a run is to do that no person has triggered: watching has, or the windows' schedule;
    None = a person has.
    """
    if not is_started(run) and run.dag_id != IN_WINDOW:
        return None
    asks = bool(run.conf.get("approval")) or any(w.approval for w in watches if w.of == name)
    return Plan(name, (), tried_out=True, approval=asks)


def watching_seen(stage: Stage) -> Watching:
    """What was found, started and carried out by itself."""
    watches = stage.script.watches
    return Watching(
        [each for watch in watches for each in _begun(stage, watch)],
        [each for watch in watches for each in _carried_out(stage, watch)],
        [_watched(stage, watch) for watch in watches],
        frozenset(does.who for does in stage.script.does if does.what in REPLACED),
    )


def windows_seen(stage: Stage) -> list[WindowsSeen]:
    """Questions and runs of installations that watch, but for those that may not know of all."""
    found = []
    for watch in stage.script.watches:
        rehome = stage.rehomes[watch.of]
        if len(stage.ledgers[watch.of]) > 1 or _ahead_s(stage, watch):
            continue
        runs = [run for run in rehome.airflow.runs if not run.deleted]
        told = {
            alert.subject
            for alert in rehome.installation.ledger().alerts()
            if alert.kind is AlertKind.FAILED
        }
        scheduled = [run for run in runs if run.window_end is not None]
        found.append(
            WindowsSeen(
                watch.of,
                [asked for run in runs for asked in _asked(run)],
                [WindowRun(run.name, run.began_at, run.started_at) for run in scheduled],
                told,
                _promises(stage, watch),
            )
        )
    return found


def _promises(stage: Stage, watch: Watch) -> Promises:
    made = [
        Promise(claim, said.where, Span(said.since, said.at))
        for said in stage.statements
        for claim in said.claims
        if said.by == watch.of and isinstance(claim, TakenUp)
    ]
    windows = (watch.window_s, *watch.later) if watch.window_s is not None else ()
    paused = stage.rehomes[watch.of].airflow.pauses.get(IN_WINDOW, ())
    return Promises(made, [opens for opens, _ in windows], [Span(*each) for each in paused])


def _asked(run: DagRun) -> Iterator[Asked]:
    closes = None if run.window_end is None else (run.window_end - EPOCH).total_seconds()
    subject = f"{run.graph.dag_id}/{run.run_id}"
    for each in run.questions:
        yield Asked(run.name, subject, Span(each.since, each.until), each.lapsed, closes)


def _ahead_s(stage: Stage, watch: Watch) -> float:
    """By how much the clock of an installation was ever wrong."""
    does = stage.script.does
    jumps = [d.args[0] for d in does if d.what is What.CLOCK_JUMPS and d.who == watch.of]
    return float(max(map(abs, jumps), default=0.0))


def _started(stage: Stage, watch: Watch) -> Iterator[DagRun]:
    return (run for run in stage.rehomes[watch.of].airflow.runs if is_started(run))


def _begun(stage: Stage, watch: Watch) -> Iterator[Begun]:
    for run in _started(stage, watch):
        yield Begun(
            run.began_at,
            watch.of,
            run.run_id,
            tuple(run.conf.get("brokers", ())),
            max(0.0, watch.grace_s - _ahead_s(stage, watch)),
            3 * watch.every_s,
            run.ended_at,
            any(task.state in BAD for task in run.tasks.values()),
            asks=bool(run.conf.get("approval")),
        )


def _carried_out(stage: Stage, watch: Watch) -> Iterator[CarriedOut]:
    airflow = stage.rehomes[watch.of].airflow
    heals = {
        plan_id: tuple(run.conf.get("brokers", ()))
        for run in _started(stage, watch)
        if not run.conf.get("approval") and (plan_id := plan_of(run))
    }
    for started in stage.started:
        plan = started.plan
        record = stage.records.get(plan.plan_id)
        if plan.plan_id not in heals or record is None:
            continue
        names = {run.name: run for run in airflow.runs if run.run_id == record.run_id}
        moved = {move.partition for move in plan.moves}
        changes = [
            alter
            for alter in stage.history.alters
            if alter.process.partition(".")[0] in names and alter.partition in moved
        ]
        if not changes:
            continue
        run = names[changes[0].process.partition(".")[0]]
        yield CarriedOut(
            run.began_at,
            changes[0].at,
            watch.of,
            plan.plan_id,
            heals[plan.plan_id],
            3 * watch.every_s,
            watch.heals_a_day,
            copied_bytes(stage.topics, plan.moves, changes),
            watch.budget_bytes,
        )


def copied_bytes(
    topics: Mapping[str, Topic], moves: Collection[Move], changes: Collection[Alter]
) -> int:
    """Of the moves that were sent: what their leaders had then, which may have been wiped before;
    and not what was written since the topic was filled, as that may be more than the plan has read.
    """
    sizes: dict[TopicPartition, float] = {}
    for change in changes:
        sizes.setdefault(change.partition, change.size_bytes)
    return int(
        sum(
            min(topics[move.partition.topic].size_bytes, sizes[move.partition])
            * len(set(move.target) - set(move.current))
            for move in moves
            if move.partition in sizes
        )
    )


def _watched(stage: Stage, watch: Watch) -> Watched:
    ledger = stage.rehomes[watch.of].installation.ledger()
    found = ledger.open_findings(CLUSTER)
    future_s = min(_ahead_s(stage, watch), CLOCKS_DIFFER.total_seconds())
    settles_s = watch.grace_s + 4 * watch.every_s + 120.0 + future_s
    dead = [broker_of(each.subject) for each in found if each.kind is FindingKind.DEAD_BROKER]
    lacking = any(each.kind is FindingKind.UNDER_REPLICATED for each in found)
    flaps = [broker_of(f.subject) for f in found if f.kind is FindingKind.FLAPPING_BROKER]
    shown_s = 2 * watch.every_s
    return Watched(watch.of, settles_s, frozenset(dead), lacking, frozenset(flaps), shown_s)
