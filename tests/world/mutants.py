"""Faults put back: each replaces a named function of the real code, and has to be found.

Most are older faults of Rehome, told in docs/reliability.md; a mutant whose target is gone fails
until it is expressed anew.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from rehome.domain.configs import ConfigChange, ConfigOperation
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.actions import Cancel, Finish
from rehome.execution.control.answers import ThrottlesLeft
from rehome.execution.throttle.coverage import Coverage
from rehome.execution.throttle.keys import Restored
from rehome.execution.throttle.ownership.lost import Lost
from rehome.execution.throttle.ownership.marks import is_mark
from rehome.ledger.base.records import SetBy, ThrottleState
from world import cases, cases_of_rare_seeds
from world.judge.violations import Kind
from world.others import LISTS, RATES
from world.script import Blow, Config, Do, Plan, Script, Strike, Topic, What

Original = Callable[..., Any]


@dataclass(frozen=True)
class Mutant:
    """A fault.

    :param target: "module:function", or "module:Class.method".
    :param also: other modules that have imported the function by name.
    :param mutate: the original → what takes its place.
    :param kinds: what it is found as.
    """

    name: str
    target: str
    mutate: Callable[[Original], Original]
    kinds: frozenset[Kind]
    also: tuple[str, ...] = ()

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """While the fault is in the code."""
        module, _, path = self.target.partition(":")
        *inner, last = path.split(".")
        holder: Any = importlib.import_module(module)
        for name in inner:
            holder = getattr(holder, name)
        original = getattr(holder, last)
        holders = [holder, *map(importlib.import_module, self.also)]
        try:
            for place in holders:
                assert getattr(place, last) is original, f"{self.name}: its target is gone"
                setattr(place, last, self.mutate(original))
            yield
        finally:
            for place in holders:
                setattr(place, last, original)


def returns(value: Any) -> Callable[[Original], Original]:
    """It does nothing any more, and says this."""
    return lambda _original: lambda *args, **options: value


def _journals_late(original: Original) -> Original:
    """The cluster is changed before the ledger is written, and before it is marked."""

    def put(ledger: Any, cluster: Any, entries: Any, changes: Any, **options: Any) -> Any:
        if unmarked := [change for change in changes if not is_mark(change.key)]:
            cluster.alter_configs(unmarked)
        return original(ledger, cluster, entries, changes, **options)

    return put


def _deletes_lists(original: Original) -> Original:
    """Lists are deleted as a whole, with what others have on them."""

    def subtract(entry: Any, items: Any) -> ConfigChange:
        return ConfigChange(entry.resource, entry.key, ConfigOperation.DELETE)

    return subtract


def _knows_no_rehomes(_original: Original) -> Any:
    """What another Rehome has set is taken for what other clients want."""
    return property(lambda self: frozenset())


def _looks_for_nothing(_original: Original) -> Original:
    """A ledger that was restored is believed to know all."""
    return lambda _ledger, _cluster, _cluster_id, entries, **_options: Lost(tuple(entries))


def _cordons_unmarked(original: Original) -> Original:
    """A cordon that is there already is another client's, which stays by itself."""

    def read(*args: Any) -> Any:
        found, unread, marks = original(*args)
        return found, unread, replace(marks, needs=(), befores=())

    return read


def _clears_unread(original: Original) -> Original:
    """What is owed is called cleared."""

    def mark(self: Any, entries: Any) -> None:
        done = [
            replace(entry, state=ThrottleState.CLEARED)
            if entry.state is ThrottleState.OWED
            else entry
            for entry in entries
        ]
        original(self, done)

    return mark


def _never_revises(original: Original) -> Original:
    """What another client deletes in mid-run is put back at the end."""

    def theirs(value: Any, entry: Any, held: Any) -> Any:
        return original(value, entry, held) if entry is None else entry.prior_value

    return theirs


def _leaves_empty_lists(original: Original) -> Original:
    """A list that its owner has deleted stays, with nothing on it."""

    def next_for_list(entry: Any, now: Any) -> Any:
        deleted = now == "" and entry.prior_value
        return Restored(SetBy.OTHERS, "changed") if deleted else original(entry, now)

    return next_for_list


def _raises_key_error(original: Original) -> Original:
    """A map from an enum that is not total."""

    def table(*args: Any, **options: Any) -> Any:
        found = original(*args, **options)
        if found.ongoing:
            raise KeyError("unreadable")
        return found

    return table


def _fails_what_is_gone(original: Original) -> Original:
    """A topic that was deleted makes its moves fail."""

    def finish(states: Any) -> Finish:
        failed = Finish(PlanState.FAILED, "not every move is done")
        return failed if states.get(MoveState.GONE) else original(states)

    return finish


def _asks_at_every_poll(original: Original) -> Original:
    """A cancel that is refused is asked for again by every poll, without an end."""

    def stop(now_true: Any, to: Any, cause: str, then: Any) -> list[Any]:
        started = tuple(move.partition for move in now_true.started)
        return [*([Cancel(started, cause, then)] if started else []), Finish(to, cause)]

    return stop


def played(
    *does: Do,
    configs: tuple[Config, ...] = (),
    strikes: tuple[Strike, ...] = (),
    topics: tuple[Topic, ...] = (cases.ONE,),
    plans: tuple[Plan, ...] = (cases.PLAN,),
) -> Script:
    """One plan, and what happens to it."""
    return Script(1, 4, topics, plans, configs, (cases.START, *does), strikes, quiet_s=300.0)


EXECUTION = "rehome.execution"
THROTTLE = f"{EXECUTION}.throttle"
CONFIGS = frozenset({Kind.LEFT_BEHIND, Kind.NOT_AS_WANTED, Kind.TAKEN_AWAY, Kind.FALSE_CLAIM})
MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "B1: another Rehome's rate is taken for another client's",
        f"{THROTTLE}.ownership.marks:Held.values",
        _knows_no_rehomes,
        CONFIGS,
    ),
    Mutant(
        "B4: what a restored ledger does not know is not looked for",
        f"{THROTTLE}.clear:look_for_lost",
        _looks_for_nothing,
        CONFIGS,
    ),
    Mutant(
        "B17: a cordon that another plan has set is not held",
        f"{THROTTLE}.cordon:read_with_marks",
        _cordons_unmarked,
        frozenset({Kind.UNCORDONED}),
    ),
    Mutant(
        "B2: what an owner deletes in mid-run is put back",
        f"{THROTTLE}.rate_scope:_theirs",
        _never_revises,
        CONFIGS,
    ),
    Mutant(
        "B2: a list that its owner has deleted stays empty",
        f"{THROTTLE}.keys:_next_for_list",
        _leaves_empty_lists,
        CONFIGS | {Kind.EMPTY_LIST},
    ),
    Mutant(
        "B3: a topic's throttle is known by its name alone",
        f"{THROTTLE}.clear:_Clearing._leave_other_topics",
        returns(None),
        CONFIGS,
    ),
    Mutant(
        "B5: no throttle is left, by a ledger that does not know",
        f"{EXECUTION}.control.controller:_left_of_throttles",
        returns(ThrottlesLeft()),
        frozenset({Kind.FALSE_CLAIM}),
    ),
    Mutant(
        "B5: moves that were never sent are called on their way",
        f"{EXECUTION}.advance:_on_their_way",
        lambda _original: lambda plan, _seen: len(plan.moves),
        frozenset({Kind.FALSE_CLAIM}),
    ),
    Mutant(
        "B11: what needs no moving any more has failed",
        f"{EXECUTION}.decide:_finish",
        _fails_what_is_gone,
        frozenset({Kind.FAILED_FOR_NOTHING}),
    ),
    Mutant(
        "the journal is written after the cluster",
        f"{THROTTLE}.configs:put",
        _journals_late,
        CONFIGS,
        (f"{THROTTLE}.plan_throttle", f"{THROTTLE}.cordon"),
    ),
    Mutant(
        "lists are deleted with what others have on them",
        f"{THROTTLE}.keys:_subtract",
        _deletes_lists,
        CONFIGS,
    ),
    Mutant(
        "rates are deleted whatever was there before",
        f"{THROTTLE}.ownership.marks:Held.before",
        returns(None),
        CONFIGS,
    ),
    Mutant(
        "what is owed is called cleared",
        "rehome.ledger.stores.throttles:ThrottleStore.mark_throttles",
        _clears_unread,
        CONFIGS,
    ),
    Mutant(
        "nothing looks whether what is in flight is throttled still",
        f"{THROTTLE}.coverage:look_at_throttles",
        returns(Coverage()),
        frozenset({Kind.UNTHROTTLED}),
        (f"{EXECUTION}.poll",),
    ),
    Mutant(
        "a cancel loses the order of replicas",
        f"{EXECUTION}.control.cancel:restore_order",
        returns(({}, {})),
        frozenset({Kind.MISPLACED}),
    ),
    Mutant(
        "B16: no poll compares high watermarks",
        f"{EXECUTION}.observation.data_loss:later",
        returns({}),
        frozenset({Kind.LOST_UNSAID}),
        (f"{EXECUTION}.poll", f"{EXECUTION}.completion.verify"),
    ),
    Mutant(
        "B9: an estimate where producers outrun the copy",
        f"{EXECUTION}.progress.outpaced:find_outpaced",
        returns(()),
        frozenset({Kind.FALSE_CLAIM}),
        (f"{EXECUTION}.progress.eta",),
    ),
    Mutant(
        "B10: sizes on disk are taken for what is to be copied",
        f"{EXECUTION}.observation.bytes_to_copy:to_copy",
        lambda _: lambda moves, seen, starts: seen.sizes,
        frozenset({Kind.FALSE_CLAIM}),
        (f"{EXECUTION}.poll",),
    ),
    Mutant(
        "a map that is not total",
        f"{EXECUTION}.observation.observe:observe",
        _raises_key_error,
        frozenset({Kind.CRASH}),
        (f"{EXECUTION}.poll",),
    ),
)
MUTANTS += (
    Mutant(
        "B6: a cancel that is refused is asked for at every poll, for ever",
        f"{EXECUTION}.decide:_stop",
        _asks_at_every_poll,
        frozenset({Kind.NEVER_ENDS, Kind.ASKS_ON}),
    ),
    Mutant(
        "B6: a cancel that is refused for good is waited for, for ever",
        "rehome.domain.run.ledger_view:RefusedCancel.given_up",
        returns(False),
        frozenset({Kind.NEVER_ENDS}),
    ),
    Mutant(
        "B7: a window's end waits for a worker",
        f"{EXECUTION}.decide:is_stop",
        returns(False),
        frozenset({Kind.PAST_WINDOW}),
    ),
    Mutant(
        "B7: the sweep leaves a plan that no run drives to its window",
        f"{EXECUTION}.without_worker:keep_window",
        returns(None),
        frozenset({Kind.PAST_WINDOW}),
    ),
    Mutant(
        "B7: resume says that a run goes on which stays queued",
        f"{EXECUTION}.control.controller:Controller._is_paused",
        returns(False),
        frozenset({Kind.FALSE_CLAIM}),
    ),
)

DELETED = tuple(Do(22.0, "admin", What.DELETE_LIST, ("t", key)) for key in LISTS)
LARGE = replace(cases.ONE, size_bytes=20_000_000_000)
FAST = replace(cases.PLAN, rate=50_000_000)
FOUND_BY = {
    "B1: another Rehome's rate is taken for another client's": cases.TWO_REHOMES,
    "B4: what a restored ledger does not know is not looked for": cases.LEDGER_FROM_BEFORE,
    "B17: a cordon that another plan has set is not held": cases.TWO_CORDONS,
    "B2: what an owner deletes in mid-run is put back": cases.RATE_DELETED,
    "B2: a list that its owner has deleted stays empty": cases.LIST_DELETED,
    "B3: a topic's throttle is known by its name alone": cases.TOPIC_CREATED_AGAIN,
    "B5: no throttle is left, by a ledger that does not know": played(
        Do(45.0, "A", What.DELETE_RUN),
        Do(190.0, "fate", What.RIGHTS_REVOKED, ("", "ALTER_CONFIGS")),
        Do(200.0, "A", What.CANCEL),
    ),
    "B5: moves that were never sent are called on their way": played(
        plans=(replace(cases.PLAN, slots=1),)
    ),
    "B11: what needs no moving any more has failed": cases.TOPIC_DELETED,
    "the journal is written after the cluster": played(
        strikes=(Strike("A", 1, Blow.DEATH, after="IncrementalAlterConfigs"),)
    ),
    "lists are deleted with what others have on them": played(
        configs=(Config(True, "t", LISTS[0], "0:4"),)
    ),
    "rates are deleted whatever was there before": played(
        configs=(Config(False, "", RATES[0], "5000000"),)
    ),
    "nothing looks whether what is in flight is throttled still": played(
        *DELETED, topics=(LARGE,), plans=(FAST,)
    ),
    "a cancel loses the order of replicas": played(Do(20.0, "A", What.CANCEL)),
    "B16: no poll compares high watermarks": cases.SOURCE_LOST,
    "B9: an estimate where producers outrun the copy": cases.OUTPACED,
    "a map that is not total": played(),
    "B10: sizes on disk are taken for what is to be copied": cases.RECORDS_DELETED,
    "B6: a cancel that is refused is asked for at every poll, for ever": cases.NEVER_CANCELLED,
    "B6: a cancel that is refused for good is waited for, for ever": cases.NEVER_CANCELLED,
    "B7: a window's end waits for a worker": cases.PAUSED_AT_WINDOW_END,
    "B7: the sweep leaves a plan that no run drives to its window": cases.PAUSED_BEFORE_WINDOW_END,
    "B7: resume says that a run goes on which stays queued": cases.PAUSED_AT_WINDOW_END,
    "what is owed is called cleared": cases_of_rare_seeds.HIDDEN_BETWEEN_TWO_STEPS,
}
"""The script that finds each, as short as it is."""
