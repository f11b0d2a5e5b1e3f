"""Watches a reassignment while no worker is held. It only ever looks: triggers may run twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

if TYPE_CHECKING:
    from include.cluster.gateway import ClusterGateway
    from include.execution.model import Policy
    from include.ledger.store import Ledger


class ReassignmentTrigger(BaseTrigger):
    """Polls a plan, writes its progress to the ledger, prints KIP-179's table.

    Fires when the worker has something to do: a slot is free, the window is near, an operator
    asked for something, nothing moves any more, everything has ended.

    :param plan_id: the plan, which runs; None = watch what anybody has started.
    :param poll_interval_s: time between two polls.
    :param first_poll_s: time until the first one: a deferral that fires too soon is taken by
        the scheduler for a failure, since its worker may not have been seen to end.
    """

    def __init__(
        self,
        kafka_config_id: str,
        plan_id: str | None,
        poll_interval_s: float,
        first_poll_s: float = 5.0,
    ) -> None:
        super().__init__()
        self.kafka_config_id = kafka_config_id
        self.plan_id = plan_id
        self.poll_interval_s = poll_interval_s
        self.first_poll_s = first_poll_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Where Airflow finds the class, and its arguments."""
        return (
            "rehome.triggers.progress.ReassignmentTrigger",
            {
                "kafka_config_id": self.kafka_config_id,
                "plan_id": self.plan_id,
                "poll_interval_s": self.poll_interval_s,
                "first_poll_s": self.first_poll_s,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Poll until the worker is needed."""
        watch = await asyncio.to_thread(_Watch, self.kafka_config_id, self.plan_id)
        try:
            await asyncio.sleep(max(self.first_poll_s, self.poll_interval_s))
            while True:
                reason = await asyncio.to_thread(watch.poll)
                if reason:
                    yield TriggerEvent({"reason": reason})
                    return
                await asyncio.sleep(self.poll_interval_s)
        finally:
            await asyncio.to_thread(watch.close)


class _Watch:
    """The blocking side of the trigger."""

    def __init__(self, kafka_config_id: str, plan_id: str | None) -> None:
        from rehome import runtime
        from rehome.hooks.cluster import KafkaClusterHook

        settings = runtime.settings()
        self._cluster: ClusterGateway = KafkaClusterHook(kafka_config_id).gateway(settings)
        self._ledger: Ledger = runtime.open_ledger()
        self._watched = None
        if plan_id is not None:
            self._watched = self._load(plan_id, settings)

    def _load(self, plan_id: str, settings: Any) -> Any:
        from datetime import UTC, datetime

        from include.execution.policy import policy_for
        from include.planning.request import parse_request
        from include.warehouse import PlanDirectory

        record = self._ledger.plan(plan_id)
        plan = PlanDirectory(record.plan_dir).load()
        request = parse_request(record.request, now=datetime.min.replace(tzinfo=UTC))
        return plan, policy_for(plan, request, settings)

    def poll(self) -> str:
        """One look; the reason to wake the worker, or ""."""
        from include.cluster.errors import ClusterError

        try:
            return self._look_at_all() if self._watched is None else self._look(*self._watched)
        except ClusterError as error:
            # The cluster may be away for a while; what it copies goes on. The stall timeout
            # bounds how long this is borne.
            print(f"Nothing seen this time: {error}")  # noqa: T201 - a trigger's own log
            return self._overdue()

    def _look(self, plan: Any, policy: Policy) -> str:
        from include.execution.decide import needs_worker
        from include.execution.observe import observe
        from include.execution.progress import admitted, moves_to_watch, record_progress
        from include.execution.stall import STALL_ALERT, stall_alert_due
        from include.ledger.database import utc_now

        view = self._ledger.view(plan.plan_id)
        in_flight = {move.partition for move in admitted(plan, view)}
        seen = observe(self._cluster, moves_to_watch(plan, view), utc_now(), in_flight=in_flight)
        progress = record_progress(plan, view, self._ledger, seen)
        print(progress.table())  # noqa: T201 - a trigger's own log
        view = self._ledger.view(plan.plan_id)
        if view.state.value != "running":
            return f"the plan is {view.state}"
        if needs_worker(plan, view, seen, policy):
            return "there is something to do"
        alerts = [e.at for e in self._ledger.events(plan.plan_id) if e.kind == STALL_ALERT]
        if stall_alert_due(view, max(alerts, default=None), seen.taken_at, policy):
            return "stalled"
        return ""

    def _overdue(self) -> str:
        from datetime import timedelta

        from include.ledger.database import utc_now

        if self._watched is None:
            return ""
        plan, policy = self._watched
        last = self._ledger.view(plan.plan_id).last_progress_at
        limit = timedelta(seconds=policy.stall_timeout_s)
        return "the cluster is away" if last is not None and utc_now() - last > limit else ""

    def _look_at_all(self) -> str:
        from include.execution.observe import moves_of, observe
        from include.execution.progress import replica_statuses, status_table
        from include.ledger.database import utc_now

        moves = moves_of(self._cluster.list_reassignments())
        if not moves:
            return "no reassignment is in flight"
        print(status_table(replica_statuses(moves, observe(self._cluster, moves, utc_now()))))  # noqa: T201
        return ""

    def close(self) -> None:
        """Give connections back."""
        self._cluster.close()
        self._ledger.close()
