"""An event loop in virtual time: what a trigger awaits, the scheduler decides.

It runs in one actor. Nothing in it switches to another actor but the wait for the next timer, or
for a thread: each blocking call that is handed to a thread is an actor of its own.
"""

from __future__ import annotations

import asyncio
import heapq
import sys
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from world.running.scheduler import NEVER, Actor, Scheduler

Spawn = Callable[[Callable[[], Any]], Actor]
TIMER_S = 1e-9


class VirtualLoop:
    """As much of a loop as ``sleep``, ``to_thread``, ``create_task``, ``gather``, ``shield`` need.

    :param spawn: starts a thread.
    """

    def __init__(self, scheduler: Scheduler, spawn: Spawn) -> None:
        self._scheduler = scheduler
        self._spawn = spawn
        self._as_loop: Any = self
        self._me: Actor | None = None
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._count = 0
        self._over = False
        self._task: asyncio.Task[Any] | None = None

    def run_until_complete(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run it to its end in the actor that calls this."""
        self._me = self._scheduler.current
        task = self._task = self.create_task(coroutine)
        try:
            while not task.done():
                self._fire()
                if self._ready:
                    self._turn()
                else:
                    self._scheduler.idle(self._timers[0][0] if self._timers else NEVER)
        except BaseException:
            self._give_up(coroutine)
            raise
        self._over = True
        return None if task.cancelled() else task.result()

    def _fire(self) -> None:
        while self._timers and self._timers[0][0] <= self.time() + TIMER_S:
            _, _, handle = heapq.heappop(self._timers)
            if not handle.cancelled():
                self._ready.append(handle)

    def _turn(self) -> None:
        """One turn. Outside of it, no loop runs: other actors have loops of their own."""
        before = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=None, finalizer=lambda _: None)
        asyncio._set_running_loop(self._as_loop)
        try:
            for _ in range(len(self._ready)):
                handle = self._ready.popleft()
                if not handle.cancelled():
                    handle._run()
        finally:
            asyncio._set_running_loop(None)
            sys.set_asyncgen_hooks(*before)

    def _give_up(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Its process is dead: what was awaited is dropped, and starts nothing more."""
        self._over = True
        asyncio._set_running_loop(self._as_loop)
        try:
            with suppress(BaseException):
                coroutine.close()
        finally:
            asyncio._set_running_loop(None)

    def cancel(self) -> None:
        """Have what it runs end early."""
        if self._task is not None and not self._over:
            self.call_soon_threadsafe(self._task.cancel)

    def wake(self) -> None:
        """Have it look again."""
        if self._me is not None:
            self._scheduler.wake(self._me)

    # -- what asyncio asks of a loop --------------------------------------------------------------

    def time(self) -> float:
        """Virtual seconds."""
        return self._scheduler.at_s

    def get_debug(self) -> bool:
        """Never."""
        return False

    def is_running(self) -> bool:
        """Whether something may still run."""
        return not self._over

    def is_closed(self) -> bool:
        """Whether nothing will run any more."""
        return self._over

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """What a task of a dead process leaves is of no interest."""

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Any = None) -> Any:
        """In the next turn."""
        handle = asyncio.Handle(callback, args, self._as_loop, context)
        self._ready.append(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> Any:
        """The same, from another actor."""
        handle = self.call_soon(callback, *args, context=context)
        self.wake()
        return handle

    def call_later(
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        """After a while."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        """At a time."""
        handle = asyncio.TimerHandle(when, callback, args, self._as_loop, context)
        self._count += 1
        heapq.heappush(self._timers, (when, self._count, handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is dropped when it is due."""

    def create_future(self) -> asyncio.Future[Any]:
        """Of this loop."""
        return asyncio.Future(loop=self._as_loop)

    def create_task(self, coro: Any, *, name: str | None = None, context: Any = None) -> Any:
        """Of this loop; a dead one starts none."""
        if self._over:
            coro.close()
            return self.create_future()
        return asyncio.Task(coro, loop=self._as_loop, name=name, context=context)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        """In a thread, which goes on where its future is cancelled."""
        future = self.create_future()

        def thread() -> None:
            try:
                result = func(*args)
            except Exception as error:  # noqa: BLE001 - whoever awaits it is told
                self.call_soon_threadsafe(_fail, future, error)
            else:
                self.call_soon_threadsafe(_end, future, result)

        self._spawn(thread)
        return future


def _end(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
