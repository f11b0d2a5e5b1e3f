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

from include.domain.configs import ConfigChange, ConfigOperation
from include.execution.throttle.coverage import Coverage
from include.execution.throttle.still_needed import NeededThrottles
from include.ledger.base.records import ThrottleState
from world.judge.violations import Kind
from world.known import new_ones
from world.luck import script_of
from world.outcome import run

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


def _returns(value: Any) -> Callable[[Original], Original]:
    return lambda _original: lambda *args, **options: value


def _journals_late(original: Original) -> Original:
    """The cluster is changed before the ledger is written."""

    def put(ledger: Any, cluster: Any, entries: Any, changes: Any, **options: Any) -> Any:
        if changes:
            cluster.alter_configs(changes)
        return original(ledger, cluster, entries, changes, **options)

    return put


def _deletes_lists(original: Original) -> Original:
    """Lists are deleted as a whole, with what others have on them."""

    def subtract(entry: Any, items: Any) -> ConfigChange:
        return ConfigChange(entry.resource, entry.key, ConfigOperation.DELETE)

    return subtract


def _forgets_prior(original: Original) -> Original:
    """Rates are deleted, whatever was there before."""

    def put_back(entry: Any) -> Any:
        return original(replace(entry, prior_value=None))

    return put_back


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


def _looks_at_none(original: Original) -> Original:
    """Whatever was idle counts as cancelled."""
    return lambda cluster, idle: original(cluster, [])


def _raises_key_error(original: Original) -> Original:
    """A map from an enum that is not total."""

    def table(*args: Any, **options: Any) -> Any:
        found = original(*args, **options)
        if found.ongoing:
            raise KeyError("unreadable")
        return found

    return table


EXECUTION = "include.execution"
THROTTLE = f"{EXECUTION}.throttle"
CONFIGS = frozenset({Kind.LEFT_BEHIND, Kind.NOT_AS_WANTED, Kind.TAKEN_AWAY, Kind.FALSE_CLAIM})
MUTANTS = (
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
        f"{THROTTLE}.keys:put_back",
        _forgets_prior,
        CONFIGS,
        (f"{THROTTLE}.clear",),
    ),
    Mutant(
        "what is owed is called cleared",
        "include.ledger.stores.throttles:ThrottleStore.mark_throttles",
        _clears_unread,
        CONFIGS,
    ),
    Mutant(
        "nothing looks whether what is in flight is throttled still",
        f"{THROTTLE}.coverage:look_at_throttles",
        _returns(Coverage()),
        frozenset({Kind.UNTHROTTLED}),
        (f"{EXECUTION}.poll",),
    ),
    Mutant(
        "a cancel loses the order of replicas",
        f"{EXECUTION}.control.cancel:_restore_order",
        _returns(({}, {})),
        frozenset({Kind.MISPLACED}),
    ),
    Mutant(
        "throttles are taken from copies in flight",
        f"{THROTTLE}.still_needed:needs",
        _returns(NeededThrottles()),
        frozenset({Kind.UNTHROTTLED}),
        (f"{THROTTLE}.clear",),
    ),
    Mutant(
        "what ended before its cancel is put back",
        f"{EXECUTION}.control.cancel:ended_before_cancel",
        _looks_at_none,
        frozenset({Kind.GOES_ON, Kind.MISPLACED}),
    ),
    Mutant(
        "a run that is dead is never noticed",
        f"{EXECUTION}.access.lease:orphaned",
        _returns(False),
        frozenset({Kind.CANCEL_FAILS}),
        (f"{EXECUTION}.control.controller", f"{EXECUTION}.control.resume", "world.rehome.tasks"),
    ),
    Mutant(
        "what has ended is not settled",
        "include.ledger.stores.moves:MoveStore.settle_all",
        _returns([]),
        frozenset({Kind.NEVER_ENDS, Kind.STUCK, Kind.CANCEL_FAILS}),
    ),
    Mutant(
        "a map that is not total",
        f"{EXECUTION}.observation.observe:observe",
        _raises_key_error,
        frozenset({Kind.CRASH}),
        (f"{EXECUTION}.poll",),
    ),
)

FOUND_WITHIN: dict[str, int] = {mutant.name: 0 for mutant in MUTANTS}
"""Seeds that it takes to find each."""


def found_by(mutant: Mutant, seeds: int) -> int | None:
    """The first seed that finds it as what it is; None = none of so many does."""
    with mutant.in_place():
        for seed in range(1, seeds + 1):
            outcome = run(script_of(seed))
            found = new_ones(outcome.script, outcome.violations)
            if mutant.kinds & {each.kind for each in found}:
                return seed
    return None
