"""What each task of a run does, by the functions that its operator calls, in the same order.

Each runs in a process of its own, which may die anywhere: state is in the ledger and the cluster.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from include.cluster.interface.errors import ClusterError, MissingRightError
from include.domain.claims import (
    AsBefore,
    ConfigSetting,
    Emptied,
    EndsIn,
    InFlight,
    NotOwedHere,
    Owed,
    Placed,
)
from include.domain.clock import sleep, utc_now
from include.domain.plan.plan import Plan
from include.domain.run.states import Control, MoveState, PlanState
from include.errors import PlanConflictError, RehomeError
from include.execution.access.lease import LeasedCluster, hold, orphaned
from include.execution.access.own_cluster import OwnCluster, WrongClusterError
from include.execution.admission.backlog import Backlog
from include.execution.advance import advance
from include.execution.completion.preferred_leaders import restore_preferred_leaders
from include.execution.completion.verify import record_losses, verify
from include.execution.control.cancel import abort
from include.execution.control.owed_log_dir_copies import stop_owed_copies
from include.execution.control.resume import check_continuable, not_started
from include.execution.decide import is_stop, needs_worker
from include.execution.governor.control_loop import first_rate
from include.execution.observation.drift import DriftError, refuse_drift
from include.execution.poll import poll
from include.execution.stall import overdue
from include.execution.throttle.cordon import cordon
from include.execution.throttle.foreign import foreign_throttles
from include.execution.throttle.ownership.marks import DEFAULT
from include.execution.throttle.set_up import (
    Cleared,
    begin_unthrottled,
    clear_throttle,
    set_up_throttle,
    sweep,
)
from include.ledger.base.database import LedgerUnavailableError
from include.ledger.base.fencing import LeaseHeldError
from include.ledger.base.records import PlanRecord, ThrottleEntry, driver_name
from include.ledger.store import Ledger
from include.settings import FIRST_POLL_S
from world.rehome import alerts, without_worker
from world.rehome.installation import DAG_ID, Installation, Spent
from world.rehome.planning import is_drain, look_whether_drained

SWEEP_EVERY_S = 600.0
SWEEP = "sweep"
EARLY_END = "the run ended before the plan did"


class Task(enum.StrEnum):
    """Tasks of a run, in order, from the one on that may change something."""

    TAKE_UP = "take_up"
    THROTTLE = "throttle"
    EXECUTE = "execute"
    PROGRESS = "progress"
    CLEAR_THROTTLE = "clear_throttle"
    VERIFY = "verify"
    RESTORE_LEADERS = "restore_leaders"
    DRAINED = "drained"

    @property
    def teardown(self) -> bool:
        """Whether it runs after a failure, too."""
        return self is Task.CLEAR_THROTTLE

    @property
    def retries(self) -> int:
        """As in the task graph."""
        return 5 if self.teardown else 2


class FailedForGood(Exception):
    """AirflowFailException: no retry."""


class Deferred(enum.Enum):
    """What a task returns that has handed over to its trigger."""

    TO_TRIGGER = "to_trigger"


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the DAG.

    :param continues: it takes up a plan that another run has begun.
    """

    installation: Installation
    plan_id: str
    run_id: str
    continues: bool = False

    @property
    def driver(self) -> str:
        """As the owner of the lease."""
        return driver_name(DAG_ID, self.run_id)

    @property
    def plan(self) -> Plan:
        """From its files."""
        return self.installation.plans[self.plan_id]

    def record(self, ledger: Ledger) -> PlanRecord:
        """As ``plan_of_run.required``.

        :raises PlanConflictError: another run has taken it up, or it has ended otherwise than done.
        """
        record = ledger.plan(self.plan_id)
        if record.driver != self.driver:
            raise PlanConflictError(f"Plan {self.plan_id} is in the hands of {record.driver}")
        if record.state.ended and record.state is not PlanState.DONE:
            raise PlanConflictError(f"Plan {self.plan_id} is {record.state}")
        return record

    @contextmanager
    def driving(
        self, ledger: Ledger, record: PlanRecord, *, release: bool = False
    ) -> Iterator[LeasedCluster]:
        """As ``drivers.driving``."""
        site = self.installation
        with hold(
            *(ledger, site.cluster_of(record), self.driver, site.lease_s(self.plan_id)),
            plan_id=self.plan_id,
            release=release,
        ) as held:
            yield held


def take_up(run: Run) -> None:
    """Go on with a plan: as the first task of a run that names one."""
    if not run.continues:
        return
    site, ledger = run.installation, run.installation.ledger()
    record = ledger.plan(run.plan_id)
    check_continuable(run.plan, ledger, site.cluster_of(record), run.driver, DAG_ID)
    ledger.take_up(
        *(run.plan_id, DAG_ID, run.run_id, {}, "alice"), lease_s=site.lease_s(run.plan_id)
    )


def throttle(run: Run) -> None:
    """Claims the cluster, and throttles what is about to move."""
    site, ledger = run.installation, run.installation.ledger()
    record = run.record(ledger)
    if record.state is PlanState.DONE:
        return
    bounds = site.bounds[run.plan_id]
    rate = record.requested_rate_bytes_per_s or bounds.rate_bytes_per_s
    with run.driving(ledger, record) as held:
        view = held.ledger.view(run.plan_id)
        try:
            if view.state is not PlanState.RUNNING:
                refuse_drift(not_started(run.plan, view), held.cluster)
        except DriftError as error:
            if view.state is PlanState.APPROVED:
                held.ledger.transition(run.plan_id, PlanState.FAILED, error.what)
            raise
        if bounds.unthrottled:
            begin_unthrottled(run.plan, held.ledger, held.cluster)
            return
        set_up_throttle(run.plan, held.ledger, held.cluster, first_rate(rate), rate)
        if run.plan_id in site.requests:
            cordon(run.plan, site.requests[run.plan_id], held.ledger, held.cluster)


def execute(run: Run) -> None:
    """The plan's first step."""
    ledger = run.installation.ledger()
    record = run.record(ledger)
    if record.state is PlanState.DONE:
        return
    if not record.state.active:
        raise PlanConflictError(f"Plan {run.plan_id} has no throttle yet")
    with run.driving(ledger, record) as held:
        advance(run.plan, held.ledger, held.cluster, run.installation.policy(run.plan_id))


def progress(run: Run) -> Deferred | None:
    """One step; then the trigger watches."""
    site, ledger = run.installation, run.installation.ledger()
    record = ledger.plan(run.plan_id)
    if record.state.ended:
        return _end(record.state, record.cause)
    policy = site.policy(run.plan_id)
    try:
        with run.driving(ledger, record) as held:
            sweep(held.ledger, held.cluster, record.cluster_id)
            began = site.true_time()
            with site.counted(Spent.DECISION):
                done = advance(run.plan, held.ledger, held.cluster, policy)
    except MissingRightError:
        raise
    except ClusterError:
        if overdue(ledger.view(run.plan_id), utc_now(), policy.stall_timeout_s):
            raise
        return Deferred.TO_TRIGGER
    site.tell(run.plan_id, Task.PROGRESS, InFlight(done.on_their_way), since=began)
    if done.finished is PlanState.DONE:
        moved = ledger.planned_moves(run.plan_id, MoveState.DONE)
        arrived = Placed({move.partition: move.target for move in moved})
        site.tell(run.plan_id, Task.PROGRESS, arrived, since=0.0)
    return Deferred.TO_TRIGGER if done.finished is None else _end(done.finished, done.cause)


def _end(state: PlanState, cause: str) -> Deferred | None:
    if state not in (PlanState.DONE, PlanState.PAUSED):
        raise FailedForGood(f"{state}: {cause}")
    return None


def trigger(run: Run) -> str:
    """Polls until the worker is needed; returns why. As ``PlanWatch`` does."""
    site, ledger = run.installation, run.installation.ledger()
    interval_s = site.bounds[run.plan_id].poll_interval_s
    sleep(max(FIRST_POLL_S, interval_s))
    record = ledger.plan(run.plan_id)
    cluster, backlog, policy = site.cluster_of(record), Backlog(), site.policy(run.plan_id)
    away_since: float | None = None
    while True:
        try:
            reason = _poll(run, ledger, cluster, backlog)
            away_since = None
        except LedgerUnavailableError:
            now = site.true_time()
            away_since = away_since or now
            reason = "the ledger is away" if now - away_since > policy.stall_timeout_s else ""
        if reason:
            return reason
        sleep(interval_s)


def _poll(run: Run, ledger: Ledger, cluster: OwnCluster, backlog: Backlog) -> str:
    site = run.installation
    policy = site.policy(run.plan_id)
    if not ledger.heartbeat(run.plan.cluster_id, run.driver, site.lease_s(run.plan_id)):
        return "another run has taken the lease over"
    began = site.true_time()
    try:
        with site.counted(Spent.POLL):
            found = poll(run.plan, ledger, cluster, policy, backlog)
    except WrongClusterError:
        return "the connection leads to another cluster"
    except ClusterError:
        view = ledger.view(run.plan_id)
        return "the cluster is away" if overdue(view, utc_now(), policy.stall_timeout_s) else ""
    if found is None:
        return "it does not run"
    alerts.after_poll(ledger, run.plan_id, found, policy)
    left_s = found.progress.sample.eta_s
    if left_s is not None:
        site.tell(run.plan_id, "poll", EndsIn(left_s), since=began)
    if is_stop(found.actions):
        return without_worker.stop(site, run.plan_id, run.driver, ledger, cluster)
    return "there is something to do" if needs_worker(found.actions) else ""


def clear(run: Run) -> None:
    """Stops what is left, takes throttles back, gives the lease back."""
    site, ledger = run.installation, run.installation.ledger()
    record = ledger.plan(run.plan_id)
    if record.driver != run.driver:
        return
    if not record.state.active and not ledger.throttles(run.plan_id, open_only=True):
        if not record.state.ended:
            ledger.transition(run.plan_id, PlanState.FAILED, EARLY_END)
        return
    began = site.true_time()
    with run.driving(ledger, record, release=True) as held:
        now = held.ledger.plan(run.plan_id)
        if not now.state.ended and now.state is not PlanState.PAUSED:
            end = PlanState.CANCELLED if now.cancel_requested else PlanState.FAILED
            abort(run.plan_id, held.ledger, held.cluster, EARLY_END, state=end)
        done = clear_throttle(run.plan_id, held.ledger, held.cluster)
    tell_cleared(site, run.plan_id, Task.CLEAR_THROTTLE, done, since=began)
    if done.owed:
        raise RehomeError("Throttles that could not be taken back yet")


def tell_cleared(
    site: Installation, plan_id: str, where: str, done: Cleared, *, since: float
) -> None:
    """So many settings are as they were before; and what is owed."""
    others = done.changed_by_others
    as_before = [entry for entry in done.cleared if entry not in others]
    if as_before:
        site.tell(plan_id, where, AsBefore(_settings(as_before)), since=since)
    if done.owed:
        site.tell(plan_id, where, Owed(_settings(done.owed)), since=since)


def _settings(entries: Sequence[ThrottleEntry]) -> tuple[ConfigSetting, ...]:
    return tuple((entry.resource, entry.key) for entry in entries)


def verify_moves(run: Run) -> None:
    """Proof from a fresh read."""
    site, ledger = run.installation, run.installation.ledger()
    record = run.record(ledger)
    if record.state is PlanState.PAUSED:
        return
    began = site.true_time()
    found = verify(run.plan, site.cluster_of(record), ledger.data_seen(run.plan_id))
    record_losses(ledger, found)
    elsewhere = {*found.problems, *found.gone}
    at_target = {m.partition: m.target for m in run.plan.moves if m.partition not in elsewhere}
    site.tell(run.plan_id, Task.VERIFY, Placed(at_target), since=began)
    if not found.ok:
        raise FailedForGood(found.text())


def restore_leaders(run: Run) -> None:
    """The preferred leaders lead again."""
    ledger = run.installation.ledger()
    record = run.record(ledger)
    if record.state is PlanState.DONE:
        with run.driving(ledger, record, release=True) as held:
            restore_preferred_leaders(run.plan, held.cluster)


def drained(run: Run) -> None:
    """What was drained is empty, or a plan follows up."""
    site, ledger = run.installation, run.installation.ledger()
    if not is_drain(site, run.plan_id) or run.record(ledger).state is not PlanState.DONE:
        return
    began = site.true_time()
    found, follow_up = look_whether_drained(site, run.plan_id)
    if not found.left and not found.unread:
        site.tell(run.plan_id, Task.DRAINED, Emptied(found.brokers), since=began)
    elif follow_up is not None and follow_up.moves:
        site.follows_up(run.plan_id, follow_up)


def sweep_throttles(site: Installation, owner: str, lease_s: float) -> None:
    """As ``SweepThrottlesOperator``."""
    ledger, port = site.ledger(), site.connect()
    own = OwnCluster.itself(port)
    plan = ledger.active_plan(own.cluster_id)
    if plan is not None and orphaned(plan, ledger) and plan.cancel_requested:
        controller = replace(site.controller("sweep", plan.plan_id), owner=owner)
        controller.control(Control.CANCEL, plan.plan_id)
    began = site.true_time()
    try:
        with hold(ledger, own, owner, lease_s, wait_s=0, release=True) as held:
            swept = sweep(held.ledger, held.cluster, own.cluster_id, site.moves_by_files)
            stop_owed_copies(held.ledger, held.cluster, own.cluster_id)
    except LeaseHeldError:
        pass
    else:
        tell_cleared(site, "", SWEEP, swept, since=began)
    alerts.after_sweep(ledger, own.cluster_id)
    began = site.true_time()
    found = foreign_throttles(ledger, port)
    others = tuple(((each.resource, each.key), each.value) for each in found.throttles)
    site.tell("", SWEEP, NotOwedHere(others, found.idle), since=began)
    names = [mark.name for mark in found.needs] + [mark.name for mark in found.lists]
    names += [mark.name for mark in found.marks.befores]
    site.named = frozenset((setting for setting, _ in others)) | {(DEFAULT, n) for n in names}
    without_worker.keep(site, ledger.active_plan(own.cluster_id), ledger, owner, SWEEP_EVERY_S)


STEPS = {
    Task.TAKE_UP: take_up,
    Task.THROTTLE: throttle,
    Task.EXECUTE: execute,
    Task.PROGRESS: progress,
    Task.CLEAR_THROTTLE: clear,
    Task.VERIFY: verify_moves,
    Task.RESTORE_LEADERS: restore_leaders,
    Task.DRAINED: drained,
}
