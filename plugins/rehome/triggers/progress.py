"""Watches a reassignment while no worker is held. It starts nothing, and stops what is to end now:
triggers may run twice, and the lease fences one off from the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from rehome import alerting, installation
from rehome.domain.clock import monotonic_s
from rehome.execution.observation.foreign_reassignments import Watched
from rehome.settings import FIRST_POLL_S
from rehome.triggers.watch import PlanWatch, ReassignmentWatch

if TYPE_CHECKING:
    from rehome.settings import Settings


Result = TypeVar("Result")


class ReassignmentTrigger(BaseTrigger):
    """Polls a plan, writes its progress to the ledger, prints KIP-179's table.

    Fires when the worker has something to do: a slot is free, the window is near, an operator asked
    for something, everything has ended. Alerts are sent from here, apart from the polls: a channel
    that hangs delays no poll.

    :param plan_id: the plan, which runs; None = watch the reassignments of all clients.
    :param poll_interval_s: time between two polls.
    :param first_poll_s: time until the first one.
    :param watched: reassignments to watch without a plan, as ``Watched.to_json`` writes them.
    """

    def __init__(
        self,
        kafka_config_id: str,
        plan_id: str | None,
        poll_interval_s: float,
        first_poll_s: float = FIRST_POLL_S,
        watched: Sequence[dict[str, Any]] = (),
    ) -> None:
        super().__init__()
        self.kafka_config_id = kafka_config_id
        self.plan_id = plan_id
        self.poll_interval_s = poll_interval_s
        self.first_poll_s = first_poll_s
        self.watched = list(watched)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Where Airflow finds the class, and its arguments."""
        return (
            "rehome.triggers.progress.ReassignmentTrigger",
            {
                "kafka_config_id": self.kafka_config_id,
                "plan_id": self.plan_id,
                "poll_interval_s": self.poll_interval_s,
                "first_poll_s": self.first_poll_s,
                "watched": self.watched,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Poll until the worker is needed."""
        await asyncio.sleep(max(self.first_poll_s, self.poll_interval_s))
        watch = await self._open_watch()
        sending: set[asyncio.Task[None]] = set()
        try:
            while True:
                outcome = await in_thread(watch.poll)
                self.log.info("\n%s", outcome.text)
                if outcome.due:
                    sending.add(asyncio.create_task(in_thread(partial(alerting.send, outcome.due))))
                if outcome.reason:
                    yield TriggerEvent({"reason": outcome.reason, "watched": _as_json(watch)})
                    return
                await asyncio.sleep(self.poll_interval_s)
        finally:
            # Closing connections to brokers that hang takes long; all triggers share the event
            # loop.
            await asyncio.shield(asyncio.gather(in_thread(watch.close), *sending))

    async def _open_watch(self) -> PlanWatch | ReassignmentWatch:
        """The watch; a ledger that is away is tolerated as it is at a poll."""
        from rehome.ledger.base.database import LedgerNotOpenError, LedgerUnavailableError

        began = monotonic_s()
        while True:
            try:
                return await in_thread(self.open_watch)
            except (LedgerNotOpenError, LedgerUnavailableError) as error:
                settings = await in_thread(self._settings)
                if monotonic_s() - began > settings.stall_timeout_s:
                    raise
                self.log.warning("%s", error)
            await asyncio.sleep(self.poll_interval_s)

    def _settings(self) -> Settings:
        return installation.settings(self.kafka_config_id)

    def open_watch(self) -> PlanWatch | ReassignmentWatch:
        """The blocking side of the trigger, on a gateway of its own."""
        from rehome.hooks.cluster import KafkaClusterHook

        settings = self._settings()
        gateway = KafkaClusterHook(self.kafka_config_id).gateway(settings)
        if self.plan_id is None:
            return ReassignmentWatch(gateway, [Watched.from_json(item) for item in self.watched])
        try:
            return PlanWatch(gateway, self.plan_id, settings)
        except Exception:
            gateway.close()
            raise


def _as_json(watch: PlanWatch | ReassignmentWatch) -> list[dict[str, Any]]:
    watched = watch.watched if isinstance(watch, ReassignmentWatch) else ()
    return [item.to_json() for item in watched]


async def in_thread(call: Callable[[], Result]) -> Result:
    """Run a blocking call in a thread of its own, and wait for its end.

    Airflow 3.1 reads the answers to the SDK's questions in the event loop of the thread that asks.
    One of asyncio's threads has none: it gets a second loop, which reads from the same stream, and
    takes the answers of others ("Response read out of order"). A thread of asgiref's hands the
    question to the loop of the trigger.

    A trigger that is cancelled does not wait for the call, and the call goes on: half an answer
    left in the stream would be read as the beginning of the next one.
    """
    called = sync_to_async(call, thread_sensitive=False)()
    return await asyncio.shield(asyncio.ensure_future(called))
