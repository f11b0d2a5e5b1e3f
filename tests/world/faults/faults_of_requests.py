"""Faults put back in what people ask for: rates of single brokers, and what other clients have in
flight. See :mod:`tests.world.mutants`.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sqlalchemy import update

from rehome.domain.broker_rates import RateSide
from rehome.execution.actions import SetRate
from rehome.execution.foreign.cancel_foreign import ForeignCancelled
from rehome.execution.observation.foreign_reassignments import CancelOutlook, NeverEnds
from rehome.execution.observation.move_status import Fate
from rehome.execution.throttle.set_up import ThrottleSetUp
from rehome.ledger.base.models import PLANS
from tests.world.mutants import Mutant, Original, returns
from world import cases_of_requests as cases
from world.airflow.shape import FOREIGN as FOREIGN_DAG
from world.cases_of_rare_seeds import LED_BY_A_NEW_REPLICA, SLOWED_AFTER_ITS_WINDOW
from world.judge.violations import Kind

EXECUTION = "rehome.execution"
FOREIGN = f"{EXECUTION}.foreign"
OVER = frozenset({Kind.OVER_ITS_RATE})
_IN, _OUT = RateSide.FOLLOWER.direction, RateSide.LEADER.direction
_OTHER = {_IN: _OUT, _OUT: _IN}


def _the_other_direction(original: Original) -> Original:
    """What a broker may send is set for what it receives, and the other way round."""

    def by_key(self: Any) -> Any:
        return {(_OTHER[way], broker): rate for (way, broker), rate in original(self).items()}

    return by_key


def _leaves_own_rates(original: Original) -> Original:
    """A request for single brokers is heard, and no broker's rate changes."""

    def asked(view: Any, *args: Any) -> Any:
        return original(replace(view, requested_rates_by_broker=None), *args)

    return asked


def _hears_yes(original: Original) -> Original:
    """Whatever a person answers, it approves."""

    def complete(self: Any, context: Any, event: Any) -> Any:
        approves = f"{self.APPROVE} {self.question(context).question.code}"
        return original(self, context, {**event, "chosen_options": [approves]})

    return complete


def _cancels_all(original: Original) -> Original:
    """All that is in flight of a topic is cancelled, whatever the person was asked about."""

    def cancel(asked: Any, ledger: Any, cluster: Any) -> ForeignCancelled:
        topics = {partition.topic for partition in asked.by_partition}
        found = [each for each in cluster.list_reassignments() if each.topic in topics]
        cluster.alter_reassignments(dict.fromkeys(found))
        done: ForeignCancelled = original(asked, ledger, cluster)
        return done

    return cancel


def _cleans_unasked(original: Original) -> Original:
    """Throttles of others go with what is cancelled, though nobody has asked for that."""

    def named_by_run(context: Any) -> Any:
        found = original(context)
        return None if found is None else replace(found, clean_throttles=True)

    return named_by_run


def _adds_nothing(_original: Original) -> Any:
    """What is adopted is taken for a move that adds nothing: new replicas count as old ones."""

    def move(self: Any) -> Any:
        now = replace(self, order=self.entry.replicas, entry=replace(self.entry, adding=()))
        return replace(_original.fget(now), target=self.entry.target)  # type: ignore[attr-defined]

    return property(move)


def _knows_no_starts(original: Original) -> Original:
    """What plans have begun is listed as another client's."""
    return lambda chosen, seen, throttles, _starts, known: original(
        chosen, seen, throttles, (), known
    )


def _leaves_some_out(original: Original) -> Original:
    """A listing of all leaves the first one out."""
    return lambda self, ongoing: original(self, ongoing)[1:]


def _changes_no_rate(original: Original) -> Original:
    """A plan that is to stop changes no rates."""
    return lambda *args: [each for each in original(*args) if not isinstance(each, SetRate)]


def _all_complete(original: Original) -> Original:
    """What was cancelled meanwhile is followed as if it had come to its end."""

    def fates(*args: Any) -> Any:
        return {
            partition: (Fate.DONE if what is Fate.UNDONE else what, text)
            for partition, (what, text) in original(*args).items()
        }

    return fates


def _all_may_end(original: Original) -> Original:
    """Whatever a reassignment waits for, it is described as one that may end."""
    return lambda entry, live, state=None: original(entry, live, state) and None


def _cancels_everything(original: Original) -> Original:
    """A cancel is said to end whatever cannot end."""

    def hindrance(*args: Any) -> Any:
        found = original(*args)
        return None if found is None else replace(found, cancel=CancelOutlook.TAKEN)

    return hindrance


def _looks_at_new_ones(original: Original) -> Original:
    """Replicas that stay are not looked at."""

    def hindrance(*args: Any) -> Any:
        found = original(*args)
        return None if found is None or found.kind is NeverEnds.KEPT_AWAY else found

    return hindrance


def _takes_the_cluster(original: Original) -> Original:
    """An adoption takes the cluster, whichever plan has it."""

    @contextmanager
    def driving(context: Any, cluster: Any, record: Any, **options: Any) -> Any:
        ledger = context.ledger
        other = ledger.active_plan(record.cluster_id)
        adopts = context.dag_run.dag_id == FOREIGN_DAG and record.started_at is None
        if adopts and other is not None and other.plan_id != record.plan_id:
            with ledger.writing() as connection:
                connection.execute(update(PLANS).values(active_cluster_id=None))
            held = ledger.holder(record.cluster_id)
            if held is not None:
                ledger.release_lease(held)
        with original(context, cluster, record, **options) as holding:
            yield holding

    return driving


HINDRANCE = f"{EXECUTION}.observation.foreign_reassignments:hindrance"
ALSO_HINDRANCE = (f"{FOREIGN}.in_flight", f"{EXECUTION}.dry_run.dry_run")
OF_REQUESTS = (
    Mutant(
        "what can never end is described as if it may",
        HINDRANCE,
        _all_may_end,
        frozenset({Kind.FALSE_CLAIM}),
        ALSO_HINDRANCE,
    ),
    Mutant(
        "a cancel that the controller refuses is said to end it",
        HINDRANCE,
        _cancels_everything,
        frozenset({Kind.FALSE_CLAIM}),
        ALSO_HINDRANCE,
    ),
    Mutant(
        "a dead replica that stays keeps nothing from ending",
        HINDRANCE,
        _looks_at_new_ones,
        frozenset({Kind.FALSE_CLAIM}),
        ALSO_HINDRANCE,
    ),
    Mutant(
        "an adoption takes the cluster from a plan that runs",
        "rehome.run.drivers:driving",
        _takes_the_cluster,
        frozenset({Kind.TWO_PLANS}),
    ),
    Mutant(
        "rates of single brokers are set for the other direction",
        "rehome.domain.broker_rates:BrokerRates.by_key",
        _the_other_direction,
        OVER,
    ),
    Mutant(
        "brokers with a rate of their own have the plan's",
        f"{EXECUTION}.throttle.rate_scope:own_by_key",
        returns({}),
        OVER,
        (f"{EXECUTION}.throttle.plan_throttle", f"{EXECUTION}.throttle.coverage"),
    ),
    Mutant(
        "a new replica that comes to lead sends at any rate",
        f"{EXECUTION}.throttle.keys:_may_lead",
        lambda _: lambda move: move.current,
        OVER,
    ),
    Mutant(
        "what cannot be cancelled goes on at its old rate",
        f"{EXECUTION}.decide:_stop",
        _changes_no_rate,
        OVER,
    ),
    Mutant(
        "rates of single brokers do not change in mid-run",
        f"{EXECUTION}.governor.rate_lines:asked_change",
        _leaves_own_rates,
        OVER,
        (f"{EXECUTION}.governor.control_loop",),
    ),
    Mutant(
        "what was approved is cancelled, whatever is in flight by then",
        f"{FOREIGN}.cancel_foreign:refuse_set_meanwhile",
        returns(None),
        frozenset({Kind.TAKEN_OVER}),
        (f"{FOREIGN}.adopt",),
    ),
    Mutant(
        "what a person has not let go is cancelled",
        "rehome.operators.approval.without_plan:ApproveProposedOperator.execute_complete",
        _hears_yes,
        frozenset({Kind.TAKEN_OVER}),
    ),
    Mutant(
        "more is cancelled of others than was named",
        f"{FOREIGN}.cancel_foreign:cancel_foreign",
        _cancels_all,
        frozenset({Kind.TAKEN_OVER}),
    ),
    Mutant(
        "a cancel of others' loses the order of replicas",
        f"{FOREIGN}.cancel_foreign:restore_order",
        returns(({}, {})),
        frozenset({Kind.MISPLACED}),
    ),
    Mutant(
        "rates of others that something in flight uses are taken away",
        f"{FOREIGN}.clean_throttles:_idle",
        returns(True),
        frozenset({Kind.TAKEN_AWAY}),
    ),
    Mutant(
        "items of others are taken away that are of no cancelled partition",
        f"{FOREIGN}.clean_throttles:_not_used",
        lambda _: lambda _topic, items, *_more: list(items),
        frozenset({Kind.TAKEN_AWAY}),
    ),
    Mutant(
        "throttles of others are taken away unasked",
        "rehome.operators.foreign.asked:named_by_run",
        _cleans_unasked,
        frozenset({Kind.TAKEN_AWAY}),
    ),
    Mutant(
        "what is adopted is not throttled",
        f"{FOREIGN}.adopt:set_up_throttle",
        returns(ThrottleSetUp((), {})),
        OVER,
    ),
    Mutant(
        "what is adopted counts as a move that copies nothing",
        f"{FOREIGN}.named:NamedReassignment.move",
        _adds_nothing,
        OVER,
    ),
    Mutant(
        "what plans have begun is listed as another client's",
        f"{FOREIGN}.in_flight:describe",
        _knows_no_starts,
        frozenset({Kind.FALSE_CLAIM}),
        (f"{FOREIGN}.read_flights",),
    ),
    Mutant(
        "a listing leaves something out",
        f"{FOREIGN}.in_flight:Chosen.among",
        _leaves_some_out,
        frozenset({Kind.FALSE_CLAIM}),
    ),
    Mutant(
        "what was cancelled is followed to a good end",
        f"{EXECUTION}.observation.foreign_reassignments:fates",
        _all_complete,
        frozenset({Kind.FALSE_CLAIM}),
        also=("rehome.triggers.watch",),
    ),
)
OF_REQUESTS_FOUND_BY = {
    "what can never end is described as if it may": cases.FOREIGN_TARGET_DEAD,
    "a cancel that the controller refuses is said to end it": cases.FOREIGN_WITHOUT_ORIGINALS,
    "a dead replica that stays keeps nothing from ending": cases.FOREIGN_KEPT_AWAY,
    "an adoption takes the cluster from a plan that runs": cases.FOREIGN_ADOPTED_BESIDE_A_PLAN,
    "rates of single brokers are set for the other direction": cases.RATES_BY_BROKER,
    "brokers with a rate of their own have the plan's": cases.RATES_BY_BROKER,
    "a new replica that comes to lead sends at any rate": LED_BY_A_NEW_REPLICA,
    "what cannot be cancelled goes on at its old rate": SLOWED_AFTER_ITS_WINDOW,
    "rates of single brokers do not change in mid-run": cases.RATES_BY_BROKER_LOWERED,
    "what was approved is cancelled, whatever is in flight by then": cases.FOREIGN_SET_MEANWHILE,
    "what a person has not let go is cancelled": cases.FOREIGN_REJECTED,
    "more is cancelled of others than was named": cases.FOREIGN_BESIDE_ANOTHER,
    "a cancel of others' loses the order of replicas": cases.FOREIGN_CANCELLED_IN_ORDER,
    "rates of others that something in flight uses are taken away": cases.FOREIGN_CLEANED,
    "items of others are taken away that are of no cancelled partition": cases.FOREIGN_CLEANED,
    "throttles of others are taken away unasked": cases.FOREIGN_NOT_CLEANED,
    "what is adopted is not throttled": cases.FOREIGN_ADOPTED,
    "what is adopted counts as a move that copies nothing": cases.FOREIGN_ADOPTED_AND_CANCELLED,
    "what plans have begun is listed as another client's": cases.FOREIGN_LISTED_AND_FOLLOWED,
    "a listing leaves something out": cases.FOREIGN_LISTED_AND_FOLLOWED,
    "what was cancelled is followed to a good end": cases.FOREIGN_FOLLOWED_AND_CANCELLED,
}
