"""How a script ends: the world becomes quiet, plans end, and a person cancels what still waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehome.alerts.kinds import AlertKind
from rehome.domain.kafka import TopicPartition
from rehome.domain.run.states import Control, PlanState
from rehome.errors import PlanConflictError
from rehome.ledger.base.records import PlanRecord
from world.airflow.shape import IN_WINDOW
from world.history import OTHERS
from world.rehome.channel import Answers
from world.script import What

if TYPE_CHECKING:
    from world.stage import Stage, Started

ENDS_WITHIN_S = 1800.0
"""After the world has become quiet, and beside the time that copies take."""
STALLED_S = 700.0
"""What a run may take that comes to nothing: others wait for it where only one may be active."""
LOOK_S = 60.0
ANSWERED_S = 300.0
"""What waits for a person is answered when the world becomes quiet, and begins only then."""
LEAST_RATE = 10_000
"""Numbers in scripts from here on are rates."""
WATCHED_S = 500.0
"""After the world has become quiet: what watching starts by then for what has happened has begun.
"""
SETTLED_S = 700.0
"""After the last cancel: a sweep comes, and what it has begun ends."""


def become_quiet(stage: Stage) -> None:
    """All that was broken is fixed: brokers, ledgers, clocks, reassignments that cannot end;
    DAGs are not paused, and nothing is produced any more, so that copies end.
    """
    for topic in stage.script.topics:
        for number in range(len(topic.partitions)):
            stage.model.actions.produce(TopicPartition(topic.name, number), 0)
    stage.fate.fix()
    _end_what_never_ends(stage)
    stage.time.ahead.clear()
    if stage.elsewhere is not None:
        stage.elsewhere.led.clear()
    for rehome in stage.rehomes.values():
        rehome.strikes.clear()
        rehome.installation.site.away = False
        if rehome.installation.receiver is not None:
            rehome.installation.receiver.how = Answers.AT_ONCE
        stage.two_entries.take_away(rehome.installation)
        rehome.airflow.unpause()
        rehome.airflow.unpause(IN_WINDOW)
        rehome.person.answer("approve")


def _end_what_never_ends(stage: Stage) -> None:
    """Do as alerts say: the controller never ends a reassignment that adds what it removes, or one
    of others that needs a broker which is lost.

    A person cancels it, which loses the order of replicas; and again, where no old replica was in
    sync yet.
    """
    asked = {each.partition: each.owner for each in stage.history.alters}
    for topic in stage.script.topics:
        for number in range(len(topic.partitions)):
            part = TopicPartition(topic.name, number)
            key = stage.model.actions.key(part)
            found = None if key is None else stage.model.world.image.partitions.get(key)
            if found is None or not found.reassigning:
                continue
            lost = stage.fate.lost if asked.get(part) == OTHERS else set()
            hangs = set(found.adding) & set(found.removing) or set(found.replicas) & lost
            if hangs and stage.model.actions.reassign(part, None) is None:
                stage.history.altered(stage.scheduler.at_s, OTHERS, "cancel-at-end", {part: None})


def let_end(stage: Stage) -> None:
    """Until all plans have ended, or should have: then those are named that have not."""
    until = stage.script.quiet_s + ENDS_WITHIN_S + _copy_s(stage)
    until += ANSWERED_S * any(plan.approval for plan in stage.script.plans)
    if stage.script.one_run:
        starts = sum(each.what is What.START for each in stage.script.does)
        until += STALLED_S * max(0, starts - 1)
    least = stage.script.quiet_s + WATCHED_S * bool(stage.script.watches)
    while stage.scheduler.at_s < (least if _all_ended(stage) else until):
        stage.scheduler.run(min(until, stage.scheduler.at_s + LOOK_S))
        _end_what_never_ends(stage)
        for rehome in stage.rehomes.values():
            rehome.person.answer("approve")
    for started in stage.started:
        if _waits_for_others(stage, started):
            continue
        if _drives(stage, started):
            stage.never_ended.append(started.plan.plan_id)
        elif _waits_unnamed(stage, started):
            stage.waits_unnamed.append(started.plan.plan_id)


def _drives(stage: Stage, started: Started) -> bool:
    """Whether a run still drives the plan, which waits for nobody."""
    record = _record(stage, started)
    if record is None or record.state is not PlanState.RUNNING:
        return False
    runs = stage.rehomes[started.by].airflow.runs
    return any(run.active and run.run_id == record.run_id for run in runs)


def _waits_for_others(stage: Stage, started: Started) -> bool:
    """Whether an alert says that the plan has stalled, and a reassignment of others is in flight
    that nobody can end, for the only replicas in sync are lost; or that cannot end until a person
    cancels the plan of another installation, for it adds a lost broker.
    """
    raised = stage.rehomes[started.by].installation.ledger().open_alerts(AlertKind.STALLED)
    if started.plan.plan_id not in {alert.subject for alert in raised}:
        return False
    asked = {stage.model.actions.key(each.partition): each.owner for each in stage.history.alters}
    lost = stage.fate.lost
    return any(
        (not state.isr and set(state.elr) <= lost)
        or (asked.get(key) != started.by and not lost.isdisjoint(state.adding))
        for key, state in stage.model.world.image.partitions.items()
        if state.reassigning
    )


def _waits_unnamed(stage: Stage, started: Started) -> bool:
    """Whether a plan runs that no run drives, and nobody was told that it waits."""
    record = _record(stage, started)
    if record is None or record.state is not PlanState.RUNNING:
        return False
    raised = stage.rehomes[started.by].installation.ledger().open_alerts(AlertKind.ORPHANED)
    return started.plan.plan_id not in {alert.subject for alert in raised}


def _copy_s(stage: Stage) -> float:
    """How long all copies would take one after the other, at the lowest of all rates."""
    plans, does = stage.script.plans, stage.script.does
    rates = [plan.rate for plan in plans] or [LEAST_RATE]
    rates += [int(c.value) for c in stage.script.configs if not c.of_topic]
    own = [own for plan in plans for own in plan.own]
    own += [each for d in does if d.what is What.CHANGE_RATES for each in d.args[1]]
    rates += [rate for _, *both in own for rate in both if rate]
    rates += [arg for d in does for arg in d.args if type(arg) is int and arg >= LEAST_RATE]
    sizes = {
        each.name: each.size_bytes + each.inflow * stage.script.quiet_s
        for each in stage.script.topics
    }
    moved = sum(sizes[topic] * len(new) for plan in plans for topic, _, new in plan.moves)
    drained = sum(sizes[each.name] * len(each.partitions) for each in stage.script.topics)
    return (moved + drained * any(plan.drains for plan in plans)) / min(rates)


def _all_ended(stage: Stage) -> bool:
    if any(run.active for rehome in stage.rehomes.values() for run in rehome.airflow.runs):
        return False
    waiting = (PlanState.PLANNED, PlanState.PAUSED) if stage.script.watches else ()
    return all(
        (record := _record(stage, started)) is None
        or record.state.ended
        or record.state in waiting  # for a window that opens tomorrow, or for a person
        for started in stage.started
    )


def _record(stage: Stage, started: Started) -> PlanRecord | None:
    try:
        return stage.rehomes[started.by].installation.ledger().plan(started.plan.plan_id)
    except PlanConflictError:
        return None  # its ledger was restored, or is new


def give_up_what_waits(stage: Stage) -> None:
    """A person cancels what waits for one; then everything settles. What watching starts meanwhile
    nobody cancels.
    """
    for started in stage.started:
        record = _record(stage, started)
        if record is not None and not record.state.ended:
            stage.asked_to_end.add(started.plan.plan_id)
            person = stage.rehomes[started.by].person
            stage.scheduler.spawn(
                f"{started.by}:cancel-at-end",
                lambda person=person, it=started.plan.plan_id: person.ask(  # type: ignore[misc]
                    Control.CANCEL, plan_id=it
                ),
            )
            stage.scheduler.run(stage.scheduler.at_s + 120)
    stage.scheduler.run(stage.scheduler.at_s + SETTLED_S)


def read_ledgers(stage: Stage) -> None:
    """What they say of plans in the end."""
    for started in stage.started:
        record = _record(stage, started)
        if record is not None:
            stage.records[started.plan.plan_id] = record
            if started.plan.plan_id in stage.asked_to_end and not record.state.ended:
                stage.cancelled_in_vain.append(started.plan.plan_id)
