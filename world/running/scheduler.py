"""One greenlet for each actor; the seed says which one runs next, and time is virtual.

Code that runs in an actor is synchronous and knows nothing of this. It comes here at each call to a
cluster, before and after each transaction of a ledger, and whenever it waits (:meth:`point`,
:meth:`wait`): there others may run, faults strike, or its process may die.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet

from world.running.trace import Trace

NEVER = float("inf")


class Abandoned(BaseException):
    """Raised into what a dead process left behind: it is never resumed, and may touch nothing."""


class Ended(enum.Enum):
    """How an actor has ended."""

    RETURNED = "returned"
    RAISED = "raised"
    DIED = "died"


class Point(enum.StrEnum):
    """Where an actor may be struck."""

    CALL = "call"
    ANSWER = "answer"
    BEGIN = "begin"
    COMMITTED = "committed"
    WAIT = "wait"


@dataclass(eq=False)
class Actor:
    """Something that acts: a task's process, a trigger, a person, a broker's fate.

    :param process: the machine that it runs on dies and lives as one; named in faults.
    :ivar points: how many points it has come to.
    """

    name: str
    thread: greenlet
    ready_at: float
    number: int
    points: int = 0
    began_at: float = 0.0
    ended_at: float = NEVER
    ended: Ended | None = None
    result: Any = None
    error: BaseException | None = None
    waiting_for: Actor | None = None
    faults: dict[int, Callable[[], None]] = field(default_factory=dict)

    @property
    def alive(self) -> bool:
        """Whether it goes on."""
        return self.ended is None


class Stuck(Exception):
    """An actor goes on for ever without time passing."""


MOST_POINTS = 60_000
"""Points of all actors in one run; more is a loop in which nothing passes."""


class Scheduler:
    """Runs actors.

    :param seed: of the order in which they run, and nothing else.
    :ivar current: who runs now; None = nobody: the world is being set up, or judged.
    """

    def __init__(self, seed: int, trace: Trace | None = None) -> None:
        self.rng = Random(f"order {seed}")
        self.trace = trace or Trace()
        self.at_s = 0.0
        self.current: Actor | None = None
        self.on_time: Callable[[float], None] = lambda _: None
        self.on_point: Callable[[Actor, Point, str], None] = lambda *_: None
        self._hub = getcurrent()
        self._actors: dict[greenlet, Actor] = {}
        self._live: list[Actor] = []
        self._count = 0
        self._points = 0
        self._some_ended = False
        self._until_s, self._over = 0.0, True
        self._is_over: Callable[[], bool] = lambda: False

    # -- of actors ------------------------------------------------------------------------------

    def spawn(self, name: str, what: Callable[[], Any], in_s: float = 0.0) -> Actor:
        """Have something run, after a while."""

        def body() -> None:
            actor = self._actors[getcurrent()]
            try:
                actor.result = what()
                actor.ended = Ended.RETURNED
            except (GreenletExit, Abandoned):
                actor.ended = actor.ended or Ended.DIED
            except Exception as error:  # noqa: BLE001 - whoever waits for it reads it
                actor.error, actor.ended = error, Ended.RAISED
            self.trace.note(self.at_s, name, "end", f"{actor.ended} {type(actor.error).__name__}")
            self._wake(actor)

        thread = greenlet(body, parent=self._hub)
        self._count += 1
        actor = Actor(name, thread, self.at_s + in_s, self._count, began_at=self.at_s + in_s)
        self._actors[thread] = actor
        self._live.append(actor)
        return actor

    def kill(self, actor: Actor) -> None:
        """End it as SIGKILL does: nothing of it runs any more, no ``finally`` and no ``except``."""
        if actor.alive:
            actor.ended = Ended.DIED
            self.trace.note(self.at_s, actor.name, "death", "")
            self._wake(actor)
            if self.current is actor:
                self._hub.switch()

    # -- for what runs --------------------------------------------------------------------------

    def wait(self, seconds: float) -> None:
        """Let time pass; others run meanwhile."""
        actor = self._require()
        if actor is None:
            self._pass_to(self.at_s + seconds)
            return
        actor.ready_at = self.at_s + max(0.0, seconds)
        self._give_way(actor)

    def point(self, kind: Point, text: str, takes_s: float = 0.0) -> None:
        """Say what is about to happen, or has; here others may run, and faults strike.

        :param takes_s: so much time passes.
        """
        actor = self._require()
        if actor is None:
            return
        self._points += 1
        if self._points > MOST_POINTS:
            raise Stuck(f"{self._points} points by {self.at_s:.0f} s; {actor.name}: {text}")
        actor.points += 1
        self.trace.note(self.at_s, actor.name, kind, text)
        self.on_point(actor, kind, text)
        if strike := actor.faults.get(actor.points):
            strike()
        actor.ready_at = self.at_s + takes_s
        self._give_way(actor)

    def join(
        self,
        other: Actor,
        patience_s: float | None = None,
        unless: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Wait until another one has ended; False when it has not in time.

        :param unless: it is not waited for any more.
        """
        until = None if patience_s is None else self.at_s + patience_s
        me = self._require()
        assert me is not None
        while other.alive and not unless():
            if until is not None and self.at_s >= until:
                return False
            me.waiting_for = other
            me.ready_at = NEVER if until is None else until
            self._give_way(me)
            me.waiting_for = None
        return True

    def idle(self, until_s: float) -> None:
        """Wait until a time, or until somebody wakes this actor."""
        me = self._require()
        assert me is not None
        me.ready_at = until_s
        self._give_way(me)

    def wake(self, actor: Actor) -> None:
        """End its wait, where it is idle."""
        actor.ready_at = min(actor.ready_at, self.at_s)

    def wake_who_joins(self, other: Actor) -> None:
        """Have those that wait for the end of an actor look again."""
        for actor in self._live:
            if actor.waiting_for is other:
                actor.ready_at = self.at_s

    # -- for who drives it ------------------------------------------------------------------------

    def run(self, until_s: float, ended: Callable[[], bool] = lambda: False) -> None:
        """Run actors until a time, until all have ended, or until ``ended``."""
        self._until_s, self._is_over = until_s, ended
        self._over = False
        while not self._over:
            chosen = self._choose()
            if chosen is not None:
                chosen.thread.switch()  # back when one has ended, or nobody is next
                self.current = None

    def raised(self) -> Iterator[tuple[Actor, BaseException]]:
        """Actors that an error has ended."""
        return ((each, each.error) for each in self._actors.values() if each.error is not None)

    def abandon(self) -> None:
        """Drop every actor that has not ended: the run is over."""
        for actor in self._actors.values():
            actor.ended = actor.ended or Ended.DIED
        for thread, actor in list(self._actors.items()):
            if thread and not thread.dead:
                self.current = actor
                thread.throw(Abandoned)
        self.current = None

    def _pass_to(self, at_s: float) -> None:
        if at_s > self.at_s:
            self.at_s = at_s
            self.on_time(at_s)

    def _wake(self, ended: Actor) -> None:
        ended.ended_at = self.at_s
        self._some_ended = True
        self.wake_who_joins(ended)

    def _require(self) -> Actor | None:
        actor = self.current
        if actor is not None and actor.ended is not None:
            raise Abandoned
        return actor

    def _choose(self) -> Actor | None:
        """Who runs next, from now on; None = this run is over."""
        self.current = None
        if self._is_over():
            self._over = True
            return None
        if self._some_ended:
            self._live = [actor for actor in self._live if actor.ended is None]
            self._some_ended = False
        if self._points > MOST_POINTS:
            raise Stuck(f"{self._points} points by {self.at_s:.0f} s")
        soonest = min([actor.ready_at for actor in self._live], default=NEVER)
        if soonest > self._until_s or not self._live:
            self._pass_to(self._until_s)
            self._over = True
            return None
        self._pass_to(soonest)
        self.current = self.rng.choice([each for each in self._live if each.ready_at <= self.at_s])
        return self.current

    def _give_way(self, actor: Actor) -> None:
        """Let the next one run: without a way through the hub, which takes as long again."""
        try:
            chosen = self._choose()
        except Exception as error:  # noqa: BLE001 - it is the world's, not this actor's
            self._hub.throw(error)
        else:
            if chosen is not actor:
                (self._hub if chosen is None else chosen.thread).switch()
        if actor.ended is not None:
            raise Abandoned
