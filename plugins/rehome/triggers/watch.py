"""One poll of a reassignment: the blocking side of the trigger, and of the sensor without one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rehome import alerting, installation
from rehome.alerts.alert_text import END_IT
from rehome.cluster.interface.errors import ClusterError, MissingRightError
from rehome.domain.clock import monotonic_s, utc_now
from rehome.domain.kafka import TopicPartition
from rehome.domain.run.causes.error_kind import ErrorKind
from rehome.errors import InvalidRequestError, RehomeError
from rehome.execution.access.own_cluster import OwnCluster, WrongClusterError
from rehome.execution.control.words.cancel_words import taken_back_text
from rehome.execution.governor.cluster_health import bystanders
from rehome.execution.observation.foreign_reassignments import cannot_end, fates, follow, in_flight
from rehome.execution.observation.move_status import Fate
from rehome.execution.observation.observe import observe
from rehome.execution.policy_from_request import policy_for
from rehome.execution.stall import overdue
from rehome.run import recorded_plans
from rehome.run.ports import extras

if TYPE_CHECKING:
    from rehome.cluster.gateway import ClusterGateway
    from rehome.execution.observation.foreign_reassignments import Watched
    from rehome.execution.poll import Poll
    from rehome.ledger.base.alert_records import DueAlert
    from rehome.settings import Settings

SOMETHING_TO_DO = "there is something to do"
WRONG_CLUSTER = "the connection leads to another cluster"
_SHOWN = 10
"""Partitions that one line of the log names."""


@dataclass(frozen=True, slots=True)
class PollOutcome:
    """What one poll found.

    :param reason: why the worker is needed; "" = it is not.
    :param text: for the log.
    :param due: alerts that are due by this poll.
    """

    reason: str
    text: str
    due: tuple[DueAlert, ...] = ()


class PlanWatch:
    """Polls a plan that runs, and writes what it reads to the ledger.

    Each poll renews the run's lease, for no worker may be there to renew it. What is started, a
    worker starts. A stop waits for none: a window's end, a cancel, a stall.
    """

    def __init__(self, gateway: ClusterGateway, plan_id: str, settings: Settings) -> None:
        from rehome.account.evidence import PaceFollower
        from rehome.execution.access.lease import ttl_s
        from rehome.execution.admission.backlog import Backlog

        self._gateway = gateway
        self._ledger = installation.open_ledger()
        record = self._ledger.plan(plan_id)
        self._cluster = OwnCluster.of_plan(gateway, record)
        self._driver = record.driver
        self._lease_s = ttl_s(settings)
        self._plan = recorded_plans.recorded_moves(self._ledger, record)
        self._policy = policy_for(recorded_plans.recorded_request(record), settings)
        self._metrics = extras().metrics.of_plan(self._plan, self._policy, settings)
        self._pace = PaceFollower(self._ledger, plan_id)
        self._backlog = Backlog()
        self._bystanders: tuple[TopicPartition, ...] | None = None
        self._ledger_away_since: float | None = None
        self._first_poll = True

    def poll(self) -> PollOutcome:
        """Observe once. A cluster or ledger that is away is tolerated as long as a stall is."""
        from rehome.ledger.base.database import LedgerUnavailableError

        try:
            outcome = self._poll_under_lease()
        except LedgerUnavailableError as error:
            self._count(ErrorKind.LEDGER_AWAY)
            now = monotonic_s()
            self._ledger_away_since = self._ledger_away_since or now
            overdue = now - self._ledger_away_since > self._policy.stall_timeout_s
            return PollOutcome("the ledger is away" if overdue else "", str(error))
        self._ledger_away_since = None
        return outcome

    def _poll_under_lease(self) -> PollOutcome:

        if not self._ledger.heartbeat(self._plan.cluster_id, self._driver, self._lease_s):
            return PollOutcome("another run has taken the lease over", "")
        try:
            return self._poll()
        except WrongClusterError as error:
            return PollOutcome(WRONG_CLUSTER, str(error))
        except ClusterError as error:
            self._count(ErrorKind.CLUSTER_AWAY)
            text = f"Nothing could be seen this time: {error}"
            return PollOutcome("the cluster is away" if self._overdue() else "", text)

    def _poll(self) -> PollOutcome:
        from rehome.execution.decide import is_stop, needs_worker, waits_for
        from rehome.execution.poll import poll

        plan, ledger = self._plan, self._ledger
        if self._bystanders is None:
            self._bystanders = bystanders(plan, self._cluster.describe_topics())
        last_poll = poll(
            plan, ledger, self._cluster, self._policy, self._backlog, bystanders=self._bystanders
        )
        if last_poll is None:
            return PollOutcome(f"the plan is {ledger.plan(plan.plan_id).state}", "")
        self._metrics.note_poll(last_poll)
        self._metrics.note_copies(ledger, self._pace)
        observation, text = last_poll.observation, last_poll.progress.table()
        if holds := waits_for(last_poll.actions):
            text = f"{text}\nHeld back: {holds}"
        for resource, error in observation.throttles_unread.items():
            text = f"{text}\nThe throttle of {resource} could not be read this time: {error}"
        if observation.unthrottled:
            text = (
                f"{text}\nWhat throttles them is gone or changed: {_some(observation.unthrottled)}"
            )
        due = self._due(last_poll)
        if is_stop(last_poll.actions):
            return replace(self._stop(text), due=due)
        reason = SOMETHING_TO_DO if needs_worker(last_poll.actions) else ""
        return PollOutcome(reason, text, due)

    def _stop(self, text: str) -> PollOutcome:
        """Stop the plan from here, and wake the worker when that is done, or where it cannot be."""
        from rehome.execution.without_worker import stop_now
        from rehome.ledger.base.database import LedgerUnavailableError

        plan, ledger, policy = self._plan, self._ledger, self._policy
        try:
            done = stop_now(plan, ledger, self._cluster, policy, self._driver, self._lease_s)
        except MissingRightError as error:
            return PollOutcome(SOMETHING_TO_DO, f"{text}\n{error}")
        except (ClusterError, LedgerUnavailableError):
            raise
        except RehomeError as error:
            return PollOutcome(SOMETHING_TO_DO, f"{text}\n{error}")
        text = "\n".join([text, *(f"Held back: {cause}" for cause in done.holds)])
        if done.finished is None:
            return PollOutcome("", text)
        extras().metrics.plan_ended(ledger, plan.cluster_id, plan.plan_id)
        reason = f"the plan is {done.finished}"
        back = f"{taken_back_text(len(done.cancelled))}, then its throttles: {done.cause}"
        return PollOutcome(reason, f"{text}\nPlan {plan.plan_id} is {done.finished}. {back}")

    def _due(self, last_poll: Poll) -> tuple[DueAlert, ...]:
        """Alerts of this poll that were not sent yet."""
        from rehome.alerts.due_alerts import (
            OVER_WHEN_IT_RUNS,
            QUIET_S,
            at_poll,
            data_lost,
            not_any_more,
        )

        plan_id, ledger = self._plan.plan_id, self._ledger
        if self._first_poll:
            ledger.close_alerts(plan_id, *OVER_WHEN_IT_RUNS)
            self._first_poll = False
        record = ledger.plan(plan_id)
        alerts = at_poll(record, last_poll, self._policy, ledger.alerts(plan_id))
        alerts += data_lost(record, ledger.lost_data(record.plan_id))
        return tuple(alerting.claim(ledger, alerts, not_any_more(plan_id, alerts), quiet_s=QUIET_S))

    def _count(self, kind: ErrorKind) -> None:
        extras().metrics.error(self._plan.cluster_id, kind)

    def _overdue(self) -> bool:
        view = self._ledger.view(self._plan.plan_id)
        return overdue(view, utc_now(), self._policy.stall_timeout_s)

    def close(self) -> None:
        """Give connections back."""
        self._gateway.close()
        self._ledger.close()


def _some(partitions: Collection[TopicPartition]) -> str:
    """The first few, and how many more there are."""
    shown = ", ".join(map(str, sorted(partitions)[:_SHOWN]))
    more = len(partitions) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


class ReassignmentWatch:
    """Polls reassignments of any client; knows no plan, keeps and changes nothing.

    :param watched: what to poll, each until it has ended; :meth:`begin` finds it out.
    """

    def __init__(self, gateway: ClusterGateway, watched: Collection[Watched] = ()) -> None:
        self._cluster = gateway
        self.watched = tuple(watched)
        self.ended_otherwise: dict[TopicPartition, str] = {}

    def begin(self, partitions: Collection[tuple[str, int]] | None) -> None:
        """Watch what is in flight now. What starts later is not waited for.

        :param partitions: (topic, partition) pairs; None = all that are in flight.
        :raises InvalidRequestError: a partition does not exist.
        """
        keys = None
        if partitions is not None:
            keys = {TopicPartition(*partition) for partition in partitions}
            _refuse_unknown(self._cluster, keys)
        self.watched = in_flight(self._cluster.list_reassignments(keys), utc_now())

    def poll(self) -> PollOutcome:
        """Observe once. Afterwards ``ended_otherwise`` names what did not end as it was begun."""
        from rehome.execution.progress.progress import replica_statuses, status_table

        try:
            moves = [item.move for item in self.watched]
            observation = observe(self._cluster, moves, utc_now())
        except MissingRightError:
            raise
        except ClusterError as error:
            return PollOutcome("", f"Nothing could be seen this time: {error}")
        self.watched = follow(self.watched, observation)
        goes_on = (Fate.IN_FLIGHT, Fate.UNREADABLE)
        fate_by_partition = fates(self.watched, observation)
        self.ended_otherwise = {
            partition: detail
            for partition, (what, detail) in fate_by_partition.items()
            if what not in (*goes_on, Fate.DONE)
        }
        text = status_table(replica_statuses(moves, observation))
        for partition in sorted(fate_by_partition.keys() & observation.ongoing.keys()):
            if why := cannot_end(observation.ongoing[partition], observation.live_brokers):
                text = f"{text}\n{partition} cannot end: {why}. {END_IT}"
        flying = any(what in goes_on for what, _ in fate_by_partition.values())
        return PollOutcome("" if flying else "no reassignment is in flight", text)

    def close(self) -> None:
        """Give connections back."""
        self._cluster.close()


def _refuse_unknown(gateway: ClusterGateway, partitions: Collection[TopicPartition]) -> None:
    topics = gateway.describe_topics({partition.topic for partition in partitions})
    unknown = [p for p in sorted(partitions) if p.partition not in topics[p.topic].partitions]
    if unknown:
        raise InvalidRequestError([f"There is no partition {p} to watch." for p in unknown])
