"""A plan as its page shows it, followed from poll to poll without reading it all again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock

from rehome.account.account import PlanAccount, account_of
from rehome.account.evidence import EvidenceFollower
from rehome.account.hurts import covered_by
from rehome.account.words.standing_words import StatusText, not_reached_of, status_of
from rehome.alerts.alert import Alert
from rehome.alerts.plan_alerts import Patience, alerts_of
from rehome.domain.kafka import BrokerId
from rehome.domain.plan.infeasible_lines import limit_lines, misses_of
from rehome.domain.run.flows import RateChange, silence_s
from rehome.domain.run.paused.paused_plan import Outlook
from rehome.domain.run.states import PlanState
from rehome.ledger.base.paging import BusiestRate, Mark
from rehome.ledger.base.records import PlanRecord
from rehome.ledger.store import Ledger
from rehome.page.brokers import BrokerLine, broker_lines, shift_by_broker
from rehome.page.files import PlanFiles, files_of
from rehome.page.throughput import Throughput, throughput
from rehome.reporting.titles import title_of


@dataclass(frozen=True, slots=True)
class PlanView:
    """A plan at one moment.

    :param account: what is known of it: the page shows its fields.
    :param status: where it stands, in words.
    :param alerts: the worst first, but for what the account's hurts say already.
    :param brokers_left_out: brokers of the plan that are not among ``brokers``.
    :param not_reached: what was asked for, and the plan does not reach: a line for each cause.
    :param not_reached_in_all: how many targets these are.
    :param limits: what racks and sizes of the cluster limit, though the plan reaches the best that
        is possible: a line for each cause.
    :param files_problem: why the plan's files could not be read; "" = they could.
    """

    title: str
    status: StatusText
    alerts: tuple[Alert, ...]
    account: PlanAccount
    brokers: tuple[BrokerLine, ...]
    brokers_left_out: int
    files_problem: str
    not_reached: tuple[str, ...]
    not_reached_in_all: int
    limits: tuple[str, ...]

    @property
    def record(self) -> PlanRecord:
        """The plan's row in the ledger."""
        return self.account.record


@dataclass(frozen=True, slots=True)
class _Asked:
    """What Airflow knows of a plan, that the ledger had so then."""

    record: PlanRecord
    outlook: Outlook | None
    dag_paused: bool


class PlanFollower:
    """Keeps what it has read of one plan. Threads may share it.

    :param patience_s: how long nothing may move before that is an alert (``stall_alert_s``).
    :param gives_up_s: how long before the plan is ended for it (``stall_timeout_s``).
    :param dag_paused: whether a DAG is paused in Airflow.
    :param outlook: what a plan waits for; None = for nothing.
    """

    def __init__(
        self,
        ledger: Ledger,
        plan_id: str,
        patience_s: float,
        gives_up_s: float = 600.0,
        dag_paused: Callable[[str], bool] = lambda _dag_id: False,
        outlook: Callable[[PlanRecord], Outlook | None] = lambda _record: None,
    ) -> None:
        self._ledger = ledger
        self._plan_id = plan_id
        self._patience_s = patience_s
        self._gives_up_s = gives_up_s
        self._dag_paused = dag_paused
        self._outlook = outlook
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
        asked = self._ask()
        with self._lock:
            return self._view(asked, now)

    def throughput(self, rates: Sequence[RateChange]) -> Throughput:
        """The chart's columns up to now.

        :param rates: the plan's changes of rate, oldest first.
        """
        with self._lock:
            after = self._delivered[-1].at if self._delivered else None
            self._delivered += self._ledger.delivered_rates(self._plan_id, after)
            return throughput(self._delivered, rates)

    @property
    def files(self) -> PlanFiles:
        """The plan's files as they were when its state last changed."""
        with self._lock:
            return self._files_in(self._ledger.plan(self._plan_id))

    def _ask(self) -> _Asked:
        """Of Airflow, whose database may be slow: other threads view the plan meanwhile."""
        record = self._ledger.plan(self._plan_id)
        runs = record.state is PlanState.RUNNING and record.dag_id is not None
        paused = runs and self._dag_paused(record.dag_id or "")
        return _Asked(record, self._outlook(record), dag_paused=paused)

    def _view(self, asked: _Asked, now: datetime) -> PlanView:
        files = self._files_in(asked.record)
        _ = files.read  # from the warehouse, which may be slow: not while the ledger is read
        with self._ledger.reading():
            return self._view_with(files, asked, now)

    def _view_with(self, files: PlanFiles, asked: _Asked, now: datetime) -> PlanView:
        found = self._evidence.read()
        outlook = asked.outlook if found.record.state is asked.record.state else None
        evidence = replace(
            found,
            files=files.read,
            outlook=outlook,
            dag_paused=asked.dag_paused,
        )
        self._gained.update(shift_by_broker(self._evidence.newly_done))
        account = account_of(evidence, now)
        brokers, left_out = self._brokers(files, account)
        patience = Patience(self._patience(account.record), self._gives_up_s)
        covered = covered_by(account.hurts)
        infeasible = files.summary.infeasible if files.summary is not None else ()
        return PlanView(
            title=title_of(account.record),
            status=status_of(account),
            alerts=tuple(
                alert for alert in alerts_of(account, patience) if alert.kind not in covered
            ),
            account=account,
            brokers=tuple(brokers),
            brokers_left_out=left_out,
            files_problem=files.problem,
            not_reached=not_reached_of(account),
            not_reached_in_all=len(misses_of(infeasible)),
            limits=limit_lines(infeasible),
        )

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
