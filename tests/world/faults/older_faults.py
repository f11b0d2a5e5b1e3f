"""Faults of earlier Rehomes, and what docs/reliability.md rules out, put back one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.execution.completion.drained import Drained
from rehome.execution.throttle.cordon import EVERY_LOG_DIR
from rehome.execution.throttle.keys import CORDONED
from tests.world.mutants import Mutant, Original, played, returns
from world import cases
from world.judge.violations import Kind
from world.script import Do, Plan, Script, Topic, Watch, What

EXECUTION = "rehome.execution"


def _believes_the_plan(original: Original) -> Original:
    """Verify says that everything is where the plan says."""

    def verify(*args: Any, **options: Any) -> Any:
        found = original(*args, **options)
        return replace(found, problems={}, gone=type(found.gone)())

    return verify


def _empty_at_once(_original: Original) -> Original:
    """A drain is over when its moves are."""
    return lambda cluster, request, *args: Drained(request.emptied)


def _unjournalled(_original: Original) -> Original:
    """Brokers are cordoned, and no ledger knows it."""

    def cordon(plan: Any, request: Any, ledger: Any, cluster: Any) -> tuple[int, ...]:
        set_to = (CORDONED, ConfigOperation.SET, EVERY_LOG_DIR)
        changes = [ConfigChange(ConfigResource.broker(b), *set_to) for b in request.emptied]
        cluster.alter_configs(changes)
        return tuple(request.emptied)

    return cordon


def _begins_with_what_is_left(original: Original) -> Original:
    """A move begins with the messages that are there when it is sent."""
    return lambda plan_id, move, *args: original(plan_id, replace(move, end_offset=-1), *args)


def _without_grace(original: Original) -> Original:
    """A broker that is away for two snapshots is dead."""
    return lambda finding, rules: original(finding, rules.model_copy(update={"grace_s": 0.0}))


def _hears_yes(original: Original) -> Original:
    """Whatever a person answers, it approves."""

    def complete(self: Any, context: Any, event: Any) -> Any:
        approves = f"{self.APPROVE} {self.question(context).question.code}"
        return original(self, context, {**event, "chosen_options": [approves]})

    return complete


OLDER = (
    Mutant(
        "verify believes what was planned",
        f"{EXECUTION}.completion.verify:verify",
        _believes_the_plan,
        frozenset({Kind.FALSE_CLAIM}),
    ),
    Mutant(
        "a drain is over when its moves are",
        f"{EXECUTION}.completion.drained:wait_until_drained",
        _empty_at_once,
        frozenset({Kind.FALSE_CLAIM}),
        also=("rehome.operators.completion.drained",),
    ),
    Mutant(
        "brokers are cordoned without the journal",
        f"{EXECUTION}.throttle.cordon:cordon",
        _unjournalled,
        frozenset({Kind.LEFT_BEHIND}),
    ),
    Mutant(
        "no alert is raised for a plan whose run is gone",
        f"{EXECUTION}.access.lease:is_orphaned",
        returns(False),
        frozenset({Kind.NAMES_NOBODY}),
    ),
    Mutant(
        "a cancel cancels what others have begun",
        f"{EXECUTION}.control.cancel:_ended_otherwise",
        returns(None),
        frozenset({Kind.TAKEN_OVER}),
    ),
    Mutant(
        "a plan fails for what is gone by then",
        f"{EXECUTION}.advance:_ActionRunner._settle_needless",
        returns(False),
        frozenset({Kind.FAILED_FOR_NOTHING}),
    ),
    Mutant(
        "the cordon of a lost ledger is not named",
        f"{EXECUTION}.throttle.foreign:_cordons",
        returns(()),
        frozenset({Kind.LEFT_BEHIND}),
    ),
    Mutant(
        "an end is named that comes after the window",
        "rehome.domain.run.progress:ProgressSample.ends_at",
        lambda _original: lambda sample, _window_end: sample.at_this_pace,
        frozenset({Kind.FALSE_CLAIM}),
    ),
    Mutant(
        "a plan that a person has rejected is taken for approved",
        "rehome.operators.approval.approve:ApprovePlanOperator.execute_complete",
        _hears_yes,
        frozenset({Kind.UNAPPROVED}),
    ),
    Mutant(
        "what is lost before a move starts is not known",
        "rehome.ledger.base.reassignment_rows:started_row",
        _begins_with_what_is_left,
        frozenset({Kind.LOST_UNSAID}),
        ("rehome.ledger.stores.moves",),
    ),
    Mutant(
        "a broker that restarts is healed",
        "rehome.watching.open_and_close:_opens",
        _without_grace,
        frozenset({Kind.HEALED_WRONGLY}),
    ),
    Mutant(
        "an outage of a data centre is healed",
        "rehome.watching.domains_away:domains_away",
        returns([]),
        frozenset({Kind.HEALED_WRONGLY}),
        ("rehome.fleet.judged_snapshots",),
    ),
)

AGAIN = Topic("u", ((1, 2),), 5_000_000)
DRAIN = Plan("A", (), 1_000_000, drains=(1,), tried_out=True, cordons=True)
DRAINED = Script(1, 4, (cases.ONE, AGAIN), (DRAIN,), does=(cases.START,), quiet_s=300.0)
WATCHED = Script(
    5,
    5,
    (Topic("t", ((1, 2), (2, 3), (3, 4)), 20_000_000),),
    (),
    does=(Do(100.0, "fate", What.BROKER_LOST, (2,)),),
    quiet_s=400.0,
    watches=(Watch("A", grace_s=200.0),),
)
OLDER_FOUND_BY = {
    "a broker that restarts is healed": WATCHED,
    "an outage of a data centre is healed": replace(
        WATCHED, does=(*WATCHED.does, Do(101.0, "fate", What.BROKER_LOST, (4,)))
    ),
    "a plan that a person has rejected is taken for approved": played(
        Do(20.0, "A", What.ANSWER, ("reject",)), plans=(replace(cases.PLAN, approval=True),)
    ),
    "what is lost before a move starts is not known": cases.WIPED_BEFORE_IT_MOVES,
    "a plan fails for what is gone by then": cases.GONE_AFTER_IT_FAILED,
    "the cordon of a lost ledger is not named": cases.CORDON_OF_A_LOST_LEDGER,
    "an end is named that comes after the window": cases.LATE_FOR_ITS_WINDOW,
    "verify believes what was planned": cases.TOPIC_DELETED,
    "a drain is over when its moves are": replace(
        DRAINED,
        does=(
            cases.START,
            Do(20.0, "admin", What.DELETE_TOPIC, ("u",)),
            Do(22.0, "admin", What.CREATE_TOPIC, ("u",)),
        ),
    ),
    "brokers are cordoned without the journal": DRAINED,
    "no alert is raised for a plan whose run is gone": played(Do(20.0, "A", What.DELETE_RUN)),
    "a cancel cancels what others have begun": played(
        Do(20.0, "A", What.DELETE_RUN),
        Do(30.0, "admin", What.REASSIGN, ("t", 0, (4, 2))),
        Do(35.0, "A", What.CANCEL),
        topics=(replace(cases.ONE, size_bytes=20_000_000_000),),
    ),
}
