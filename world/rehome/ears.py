"""What operators and triggers tell people, heard where the real code has found it.

Each wraps a function of the engine as operators call it: what it returns goes to logs, reports and
answers as it is.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rehome import alerting, packaging
from rehome.domain.claims import (
    AsFound,
    ConfigSetting,
    Emptied,
    EndsIn,
    InFlight,
    NotOwedHere,
    Owed,
    Placed,
)
from rehome.domain.clock import utc_now
from rehome.domain.run.paused.paused_plan import GoesOn
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.dry_run.result import DryRunResult
from rehome.execution.foreign.in_flight import EVERYTHING
from rehome.execution.observation.move_status import Fate
from rehome.execution.policy_from_request import rate_for
from rehome.execution.throttle.ownership.marks import DEFAULT
from rehome.fleet import paused_plan
from rehome.ledger.base.records import ThrottleEntry
from rehome.notifiers import delivery
from rehome.operators.completion import drained
from rehome.triggers import watch
from world.history import METADATA_LAG_S
from world.judge.accounts import Accounts
from world.judge.described import Described, Listed
from world.judge.promises import TakenUp
from world.rehome.installation import Installation, Spent
from world.running.outside import EPOCH

APART = ("rehome.quality", "rehome.cluster.clients")
"""Packages that no simulated process imports."""
LEFT_OUT = "left out"
"""The only check of a dry run that is to refuse nothing: the world changes after it."""


def import_all() -> None:
    """Import all that operators import when they run: what is first imported while something is
    replaced would keep the replacement.
    """
    for module in pkgutil.walk_packages([str(Path(packaging.__file__).parent)], "rehome."):
        if not module.name.startswith((*APART, "rehome.ledger.migrations")):
            importlib.import_module(module.name)


import_all()


class Ears:
    """Hears what the actor that runs now finds.

    :param site: of that actor; ``where``: what of it runs: a task, or ``poll``.
    :param accounts: judges what can be read after a poll.
    """

    def __init__(
        self,
        site: Callable[[], Installation],
        where: Callable[[], str],
        accounts: Accounts,
    ) -> None:
        self._site = site
        self._accounts = accounts
        self._where = where

    def _wrappers(self) -> Sequence[tuple[Any, str, Callable[[Any], Any]]]:
        execution: Any = importlib.import_module("rehome.execution")
        return (
            (execution.advance, "advance", self._advance),
            (execution.poll, "poll", self._poll),
            (execution.throttle.set_up, "clear_throttle", self._clear),
            (execution.throttle.set_up, "sweep", self._sweep),
            (execution.throttle.foreign, "foreign_throttles", self._foreign),
            (execution.foreign.read_flights, "describe_reassignments", self._described),
            (watch, "fates", self._followed),
            (execution.completion.verify, "verify", self._verify),
            (drained, "wait_until_drained", self._drained),
            (execution.control.controller.Controller, "control", self._control),
            (execution.dry_run.dry_run, "dry_run", self._dry_run),
            (paused_plan, "next_window", self._next_window),
            (alerting, "send", self._send),
            (delivery, "deliver_all", self._deliver),
        )

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Meanwhile, hear."""
        wrappers = [
            (where, name, getattr(where, name), wrap) for where, name, wrap in self._wrappers()
        ]
        for where, name, original, wrap in wrappers:
            setattr(where, name, wrap(original))
        try:
            yield
        finally:
            for where, name, original, _ in wrappers:
                setattr(where, name, original)

    def _advance(self, original: Any) -> Any:
        def advance(plan: Any, ledger: Any, *args: Any, **options: Any) -> Any:
            site = self._site()
            began = site.true_time()
            with site.counted(Spent.DECISION):
                done = original(plan, ledger, *args, **options)
            if done.on_their_way is not None:
                site.tell(plan.plan_id, self._where(), InFlight(done.on_their_way), since=began)
            if done.finished is PlanState.DONE:
                moved = ledger.planned_moves(plan.plan_id, MoveState.DONE)
                arrived = Placed({move.partition: move.target for move in moved})
                site.tell(plan.plan_id, self._where(), arrived, since=0.0)
            return done

        return advance

    def _poll(self, original: Any) -> Any:
        def poll(
            plan: Any, ledger: Any, cluster: Any, policy: Any, *args: Any, **options: Any
        ) -> Any:
            site = self._site()
            began = site.true_time()

            def made() -> Any:
                with site.counted(Spent.POLL):
                    return original(plan, ledger, cluster, policy, *args, **options)

            found = self._accounts.around(site, plan, ledger, made)
            sample = None if found is None else found.progress.sample
            if sample is not None and sample.ends_at(policy.window_end) is not None:
                site.tell(plan.plan_id, "poll", EndsIn(sample.eta_s), since=began)
            return found

        return poll

    def _clear(self, original: Any) -> Any:
        def clear_throttle(plan_id: str, *args: Any, **options: Any) -> Any:
            site = self._site()
            began = site.true_time()
            done = original(plan_id, *args, **options)
            self._tell_cleared(site, plan_id, done, began)
            return done

        return clear_throttle

    def _sweep(self, original: Any) -> Any:
        def sweep(*args: Any, **options: Any) -> Any:
            site = self._site()
            began = site.true_time()
            done = original(*args, **options)
            self._tell_cleared(site, "", done, began)
            return done

        return sweep

    def _tell_cleared(self, site: Installation, plan_id: str, done: Any, began: float) -> None:
        """So many settings are as they were found; and what is owed."""
        others = done.changed_by_others
        as_before = [entry for entry in done.cleared if entry not in others]
        if as_before:
            site.tell(plan_id, self._where(), AsFound(_settings(as_before)), since=began)
        if done.owed:
            site.tell(plan_id, self._where(), Owed(_settings(done.owed)), since=began)

    def _foreign(self, original: Any) -> Any:
        def foreign_throttles(*args: Any, **options: Any) -> Any:
            site = self._site()
            began = site.true_time()
            found = original(*args, **options)
            others = tuple(((each.resource, each.key), each.value) for each in found.throttles)
            site.tell("", self._where(), NotOwedHere(others, found.idle), since=began)
            names = [mark.name for mark in (*found.needs, *found.lists, *found.marks.befores)]
            marked = {(DEFAULT, name) for name in names}
            site.named = frozenset(setting for setting, _ in others) | marked
            return found

        return foreign_throttles

    def _described(self, original: Any) -> Any:
        def describe_reassignments(*args: Any, **options: Any) -> Any:
            site = self._site()
            began = site.true_time()
            found = original(*args, **options)
            flights = tuple(
                Listed(
                    each.partition,
                    tuple(each.entry.adding),
                    tuple(each.entry.removing),
                    each.plan_id is not None,
                    each.hindrance,
                    bool(each.unread),
                )
                for each in found.reassignments
            )
            chosen = args[3] if len(args) > 3 else options.get("chosen", EVERYTHING)
            said = Described(flights, found.others, chosen == EVERYTHING)
            site.tell("", self._where(), said, since=began)
            return found

        return describe_reassignments

    def _followed(self, original: Any) -> Any:
        def fates(watched: Any, seen: Any) -> Any:
            site = self._site()
            found = original(watched, seen)
            since = site.true_time() - (utc_now() - seen.taken_at).total_seconds()
            targets = {each.move.partition: each.move.target for each in watched}
            done = {part: targets[part] for part, (what, _) in found.items() if what is Fate.DONE}
            site.tell("", self._where(), Placed(done), since=since - METADATA_LAG_S)
            return found

        return fates

    def _next_window(self, original: Any) -> Any:
        def next_window(ledger: Any, plan: Any, *args: Any, **options: Any) -> Any:
            site = self._site()
            began = site.true_time()
            found = original(ledger, plan, *args, **options)
            if isinstance(found, GoesOn) and found.sure:
                opens = TakenUp((found.opens_at - EPOCH).total_seconds())
                site.tell(plan.plan_id, self._where(), opens, since=began)
            return found

        return next_window

    def _verify(self, original: Any) -> Any:
        def verify(plan: Any, *args: Any, **options: Any) -> Any:
            site = self._site()
            began = site.true_time()
            found = original(plan, *args, **options)
            elsewhere = {*found.problems, *found.gone}
            there = {m.partition: m.target for m in plan.moves if m.partition not in elsewhere}
            site.tell(plan.plan_id, self._where(), Placed(there), since=began)
            return found

        return verify

    def _drained(self, original: Any) -> Any:
        def wait_until_drained(*args: Any, **options: Any) -> Any:
            site = self._site()
            began = site.true_time()
            found = original(*args, **options)
            if not found.left and not found.unread:
                site.tell("", self._where(), Emptied(found.brokers), since=began)
            return found

        return wait_until_drained

    def _send(self, original: Any) -> Any:
        def send(due: Any) -> None:
            site = self._site()
            if site.receiver is not None:
                site.receiver.about_to_send(site.site, due)
            original(due)

        return send

    def _deliver(self, original: Any) -> Any:
        def deliver_all(items: Any) -> Any:
            receiver = self._site().receiver
            if receiver is None:
                return original(items)
            with receiver.timed():
                return original(items)

        return deliver_all

    def _control(self, original: Any) -> Any:
        def control(controller: Any, what: Any, plan_id: str, *args: Any, **options: Any) -> Any:
            site = self._site()
            began = site.true_time()
            answer = original(controller, what, plan_id, *args, **options)
            site.tell(plan_id, what, *answer.claims, since=began)
            return answer

        return control

    def _dry_run(self, original: Any) -> Any:
        def dry_run(plan: Any, request: Any, *args: Any, **options: Any) -> Any:
            asked = self._site().scripts.get(plan.plan_id)
            if asked is None or asked.tried_out:
                return original(plan, request, *args, **options)
            rate = options.get("rate_bytes_per_s") or rate_for(request, args[2])
            return DryRunResult(
                plan.plan_id,
                plan.plan_hash,
                (LEFT_OUT,),
                (),
                partitions=len(plan.moves),
                bytes_to_move=plan.summary.bytes_to_move,
                rate_bytes_per_s=rate,
                own_rates=request.own_rates(rate),
                unthrottled=request.unthrottled,
            )

        return dry_run


def _settings(entries: Sequence[ThrottleEntry]) -> tuple[ConfigSetting, ...]:
    return tuple((entry.resource, entry.key) for entry in entries)
