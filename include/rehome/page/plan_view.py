"""A plan as its page shows it, followed from poll to poll without reading it all again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from threading import Lock
from typing import Any

from rehome.account.account import PlanAccount, account_of
from rehome.account.evidence import EvidenceFollower
from rehome.account.hurts import covered_by
from rehome.alerts.alert import Alert
from rehome.alerts.plan_alerts import Signs, alerts_of
from rehome.domain.broker_rates import BrokerRates, RateKey
from rehome.domain.kafka import BrokerId
from rehome.domain.plan.infeasible_lines import infeasible_lines, limit_lines, missed
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.flows import OwnRate, RateChange, silence_s
from rehome.domain.run.ledger_view import MoveSums
from rehome.domain.run.states import MoveState, PlanState
from rehome.ledger.base.paging import BusiestRate, Mark
from rehome.ledger.base.records import PlanRecord
from rehome.ledger.store import Ledger
from rehome.page.brokers import BrokerLine, broker_lines, shifted
from rehome.page.files import PlanFiles, files_of
from rehome.page.throughput import Throughput, throughput
from rehome.reporting.plan_text import lines_not_reached
from rehome.reporting.status_facts import StatusFacts, StatusSummary
from rehome.reporting.status_summary import summarize_status
from rehome.reporting.titles import title_of

_FINISHING = timedelta(minutes=2)
"""So long after its end a plan's run may still prove the result."""


@dataclass(frozen=True, slots=True)
class PlanView:
    """A plan at one moment. Bytes, seconds, aware UTC times.

    :param seen_at: when the newest poll was; None = there was none.
    :param account: what is known of it: the page shows its fields.
    :param alerts: the worst first, but for what the account's hurts say already.
    :param window_end: when nothing may be in flight any more; None = there is no window.
    :param brokers_left_out: brokers of the plan that are not among ``brokers``.
    :param not_reached: what was asked for, and the plan does not reach: a line for each cause.
    :param not_reached_in_all: how many targets these are.
    :param limits: what racks and sizes of the cluster limit, though the plan reaches the best that
        is possible: a line for each cause.
    :param files_problem: why the plan's files could not be read; "" = they could.
    """

    record: PlanRecord
    title: str
    status: StatusSummary
    alerts: tuple[Alert, ...]
    sums: Mapping[MoveState, MoveSums]
    account: PlanAccount
    seen_at: datetime | None
    window_end: datetime | None
    rates: tuple[RateChange, ...]
    brokers: tuple[BrokerLine, ...]
    brokers_left_out: int
    files_problem: str
    not_reached: tuple[str, ...]
    not_reached_in_all: int
    limits: tuple[str, ...]

    @property
    def moves(self) -> int:
        """How many moves the plan has."""
        return sum(each.moves for each in self.sums.values())

    def count(self, *states: MoveState) -> int:
        """How many moves are in one of these states."""
        return sum(self.sums.get(state, MoveSums()).moves for state in states)

    @property
    def in_flight(self) -> int:
        """Moves at the controller."""
        return self.count(MoveState.ADMITTED)

    @property
    def throttle_bytes_per_s(self) -> int | None:
        """What was asked for: at the start, or in mid-run; None = no throttle was set."""
        asked = self.rates[-1].limit_bytes_per_s if self.rates else self.record.rate_bytes_per_s
        return self.record.requested_rate_bytes_per_s or asked

    @property
    def own_throttles(self) -> BrokerRates:
        """Throttles of single brokers that were asked for: at the start, or in mid-run."""
        return self.record.asked_rates_by_broker

    @property
    def own_rates(self) -> Mapping[RateKey, OwnRate]:
        """Rates of brokers that have one of their own now, by direction and broker."""
        return {each.key: each for each in (self.rates[-1].own if self.rates else ())}

    @property
    def count_open(self) -> int:
        """Moves that have not ended."""
        return self.count(MoveState.PENDING, MoveState.ADMITTED)


class PlanFollower:
    """Keeps what it has read of one plan. Threads may share it.

    :param patience_s: how long nothing may move before that is an alert (``stall_alert_s``).
    :param gives_up_s: how long before the plan is ended for it (``stall_timeout_s``).
    :param dag_paused: whether a DAG is paused in Airflow.
    """

    def __init__(
        self,
        ledger: Ledger,
        plan_id: str,
        patience_s: float,
        gives_up_s: float = 600.0,
        dag_paused: Callable[[str], bool] = lambda _dag_id: False,
    ) -> None:
        self._ledger = ledger
        self._plan_id = plan_id
        self._patience_s = patience_s
        self._gives_up_s = gives_up_s
        self._dag_paused = dag_paused
        self._lock = Lock()
        self._mark: Mark | None = None
        self._evidence = EvidenceFollower(ledger, plan_id)
        self._gained: Counter[BrokerId] = Counter()
        self._delivered: list[BusiestRate] = []
        self._files: PlanFiles | None = None
        self._files_of: PlanState | None = None

    def mark(self) -> Mark | None:
        """A cheap mark of whether there is anything new; None = there is no such plan."""
        return self._ledger.mark(self._plan_id)

    def view(self, now: datetime) -> PlanView:
        """The plan as it is now.

        :raises PlanConflictError: there is no such plan.
        """
        with self._lock:
            return self._view(now)

    def throughput(self, rates: Sequence[RateChange]) -> Throughput:
        """The chart's columns up to now.

        :param rates: the plan's changes of rate, oldest first.
        """
        with self._lock:
            after = self._delivered[-1].at if self._delivered else None
            self._delivered += self._ledger.delivered(self._plan_id, after)
            return throughput(self._delivered, rates)

    @property
    def files(self) -> PlanFiles:
        """The plan's files as they were when its state last changed."""
        with self._lock:
            return self._files_in(self._ledger.plan(self._plan_id))

    def _view(self, now: datetime) -> PlanView:
        record = self._ledger.plan(self._plan_id)
        files = self._files_in(record)
        # From the warehouse, which may be slow: not while the ledger is read.
        _ = files.summary, files.dry_run, files.gates
        proofs = _proofs(files) if record.ended_at is not None else {}
        with self._ledger.reading():
            return self._view_with(files, proofs, now)

    def _view_with(self, files: PlanFiles, proofs: Mapping[str, Any], now: datetime) -> PlanView:
        ledger, plan_id = self._ledger, self._plan_id
        evidence = replace(self._evidence.read(), tried=files.dry_run, gates=files.gates)
        self._gained.update(shifted(self._evidence.newly_done))
        record, sums, sample = evidence.record, evidence.sums, evidence.sample
        account = account_of(evidence, now)
        rates = tuple(ledger.rate_changes(plan_id))
        active = record.state is PlanState.RUNNING
        throttles = ledger.throttle_counts(plan_id)
        owed = sum(count for state, count in throttles.items() if state.open)
        finishing = self._finishing(record, now)
        at_this_pace = sample.at_this_pace if active and sample is not None else None
        window_end = record.window_end
        brokers, left_out = self._brokers(files, account)
        signs = Signs(
            record=record,
            now=now,
            sums=sums,
            rates=rates,
            window_end=window_end,
            ends_at=at_this_pace,
            orphaned=evidence.orphaned,
            owed=0 if finishing else owed,
            patience_s=self._patience(record),
            gives_up_s=self._gives_up_s,
            lost=ledger.lost_data(plan_id),
            raised=evidence.alerts,
            hurts=evidence.hurts,
            dag_paused=active and record.dag_id is not None and self._dag_paused(record.dag_id),
        )
        covered, elapsed = covered_by(account.hurts), account.elapsed
        facts = self._facts(
            record,
            files,
            proofs,
            sums,
            account,
            elapsed_s=None if elapsed is None else elapsed.total.total_seconds(),
            throttles=sum(throttles.values()),
            owed=owed,
            finishing=finishing,
        )
        infeasible = files.summary.infeasible if files.summary is not None else ()
        return PlanView(
            record=record,
            title=title_of(record),
            status=summarize_status(facts),
            alerts=tuple(alert for alert in alerts_of(signs) if alert.kind not in covered),
            sums=sums,
            account=account,
            seen_at=sample.sampled_at if sample else None,
            window_end=window_end,
            rates=rates,
            brokers=tuple(brokers),
            brokers_left_out=left_out,
            files_problem=files.problem,
            not_reached=infeasible_lines(infeasible),
            not_reached_in_all=len(missed(infeasible)),
            limits=limit_lines(infeasible),
        )

    def _finishing(self, record: PlanRecord, now: datetime) -> bool:
        """Whether the plan has ended, and its run may still be at work: it holds the cluster until
        throttles are taken back, and then proves the result.
        """
        if record.ended_at is None or record.started_at is None:
            return False
        holder = self._ledger.holder(record.cluster_id)
        driven = holder is not None and holder.owner == record.driver
        return driven or now - record.ended_at < _FINISHING

    def _patience(self, record: PlanRecord) -> float:
        rate = record.rate_bytes_per_s
        return max(self._patience_s, silence_s(rate)) if rate else self._patience_s

    def _files_in(self, record: PlanRecord) -> PlanFiles:
        """Read anew when the plan's state has changed: each step of a run writes some.

        A plan that waits to start has some still to come, one that has ended, its proof, and one
        that is paused, the dry run of the next run.
        """
        state = record.state
        if self._files is None or self._files_of is not state or state is not PlanState.RUNNING:
            self._files, self._files_of = files_of(self._ledger, record), state
        return self._files

    def _brokers(self, files: PlanFiles, account: PlanAccount) -> tuple[list[BrokerLine], int]:
        if files.summary is None:
            return [], 0
        flying = self._evidence.flying
        return broker_lines(files.summary.brokers, self._gained, account.pace, flying)

    def _facts(
        self,
        record: PlanRecord,
        files: PlanFiles,
        proofs: Mapping[str, Any],
        sums: Mapping[MoveState, MoveSums],
        account: PlanAccount,
        *,
        elapsed_s: float | None,
        throttles: int,
        owed: int,
        finishing: bool,
    ) -> StatusFacts:
        by_state = {state: each.moves for state, each in sums.items()}
        return StatusFacts(
            plan_id=record.plan_id,
            plan_hash=record.plan_hash,
            state=record.state,
            cause=record.cause,
            moves=sum(by_state.values()),
            by_state=by_state,
            started=record.started_at is not None,
            elapsed_s=elapsed_s,
            throttles=throttles,
            owed=owed,
            finishing=finishing,
            cancelled_by=self._ledger.last_actor(record.plan_id, EventKind.CANCELLED) or "",
            end_reason=record.end_reason,
            request=record.request,
            for_window=record.for_window_at is not None,
            not_reached=() if files.summary is None else lines_not_reached(files.summary),
            dry_run=files.dry_run,
            verification=proofs.get("verification.json"),
            drained=proofs.get("drained.json"),
            demoted=proofs.get("demoted.json"),
            leaders=proofs.get("leaders.json"),
            account=account,
            findings=account.findings,
        )


def _proofs(files: PlanFiles) -> dict[str, Any]:
    """Written at the end: until then each view would ask a far warehouse for them in vain."""
    names = ("verification.json", "drained.json", "demoted.json", "leaders.json")
    return {name: files.json(name) for name in names}
