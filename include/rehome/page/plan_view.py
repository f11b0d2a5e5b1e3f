"""A plan as its page shows it, followed from poll to poll without reading it all again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from threading import Lock

import numpy as np

from rehome.account.account import PlanAccount, account_of
from rehome.account.evidence import EvidenceFollower
from rehome.account.hurts import covered_by
from rehome.account.known import Fact, Known
from rehome.account.pace import PlanPace, copied_by_broker
from rehome.account.words.standing_words import StatusText, not_reached_of, status_of
from rehome.alerts.alert import Alert
from rehome.alerts.plan_alerts import Patience, alerts_of
from rehome.domain.kafka import BrokerId
from rehome.domain.plan.infeasible_lines import limit_lines, misses_of
from rehome.domain.plan.move import Move
from rehome.domain.plan.summary import BrokerLoad
from rehome.domain.run.flows import RateChange, silence_s
from rehome.domain.run.paused.paused_plan import Outlook
from rehome.domain.run.progress import PACE_WINDOW
from rehome.domain.run.states import PlanState
from rehome.ledger.base.paging import BusiestRate, Mark
from rehome.ledger.base.records import PlanRecord
from rehome.ledger.store import Ledger
from rehome.page.files import PlanFiles, files_of
from rehome.reporting.titles import title_of

BROKERS_SHOWN = 40

_SMOOTHED_S = 30.0
"""Rates are means over so many seconds: single polls see single fetches."""
POINTS = 600
"""As many as a chart shows apart; more samples are averaged."""


@dataclass(frozen=True, slots=True)
class BrokerLine:
    """One broker. Bytes, and bytes per second; None where it is not known.

    :param moves_in, moves_out: moves in flight that copy to it, or from it.
    :param bytes_now: before, and what finished moves have added and taken away since, by the
        sizes that were planned with.
    """

    broker: BrokerId
    bytes_before: int
    bytes_now: int
    bytes_after: int
    in_bytes_per_s: float | None = None
    out_bytes_per_s: float | None = None
    moves_in: int = 0
    moves_out: int = 0


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
        facts = self._ask()
        with self._lock:
            return self._view(facts, now)

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

    def _view(self, facts: _Asked, now: datetime) -> PlanView:
        files = self._files_in(facts.record)
        _ = files.read  # from the warehouse, which may be slow: not while the ledger is read
        with self._ledger.reading():
            return self._view_with(files, facts, now)

    def _view_with(self, files: PlanFiles, facts: _Asked, now: datetime) -> PlanView:
        plan_evidence = self._evidence.read()
        outlook = facts.outlook if plan_evidence.record.state is facts.record.state else None
        evidence = replace(
            plan_evidence,
            files=files.read,
            outlook=outlook,
            dag_paused=facts.dag_paused,
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


def shift_by_broker(moves: Iterable[Move]) -> Counter[BrokerId]:
    """What finished moves have brought each broker, less what they took away."""
    shifts: Counter[BrokerId] = Counter()
    for move in moves:
        shifts.update(dict.fromkeys(move.adding, move.size_bytes))
        shifts.subtract(dict.fromkeys(move.removing, move.size_bytes))
    return shifts


def broker_lines(
    loads: Sequence[BrokerLoad],
    gained: Mapping[BrokerId, int],
    pace: Fact[PlanPace],
    flying: Collection[tuple[Move, BrokerId | None]],
) -> tuple[list[BrokerLine], int]:
    """The brokers that the plan concerns, and how many of them are left out.

    :param gained: what each has gained since the plan was made.
    :param pace: of the account.
    :param flying: moves in flight, each with the leader that it copies from, where that is known.
    """
    into = pace.value.into if isinstance(pace, Known) else {}
    out_of = pace.value.out_of if isinstance(pace, Known) else {}
    nothing = 0.0 if isinstance(pace, Known) else None
    moves_in, moves_out = copied_by_broker(flying)
    concerned = [load for load in loads if load.change_bytes]
    by_change = sorted(concerned, key=lambda load: (-load.change_bytes, load.broker))
    shown = sorted(by_change[:BROKERS_SHOWN], key=lambda load: load.broker)
    lines = [
        BrokerLine(
            load.broker,
            load.size_bytes_before,
            max(0, load.size_bytes_before + gained.get(load.broker, 0)),
            load.size_bytes_after,
            into.get(load.broker, nothing),
            out_of.get(load.broker, nothing),
            moves_in[load.broker],
            moves_out[load.broker],
        )
        for load in shown
    ]
    return lines, len(concerned) - len(shown)


@dataclass(frozen=True, slots=True)
class Throughput:
    """Columns of a chart, aligned. Unix seconds, bytes per second; None = not known then.

    :param delivered: by the broker and direction that copied most.
    :param target: what brokers were to deliver.
    :param limit: what was asked for.
    """

    at: list[float]
    delivered: list[float | None]
    target: list[float | None]
    limit: list[float | None]


def throughput(samples: Sequence[BusiestRate], rates: Sequence[RateChange]) -> Throughput:
    """The chart's columns: one row for each span of samples, one at each change of rate, and one
    without a value in each gap: where nothing has polled, nothing is known.

    :param samples, rates: oldest first.
    """
    rate_at = {each.at.timestamp(): each.busiest_bytes_per_s for each in _points(samples)}
    gaps = set(_gaps(samples))
    at = sorted({*rate_at, *gaps, *(change.at.timestamp() for change in rates)})
    changes = [(change.at.timestamp(), change) for change in rates]
    rate_then: RateChange | None = None
    target: list[float | None] = []
    limit: list[float | None] = []
    upcoming = 0
    for moment in at:
        while upcoming < len(changes) and changes[upcoming][0] <= moment:
            rate_then = changes[upcoming][1]
            upcoming += 1
        target.append(rate_then.target_bytes_per_s if rate_then else None)
        limit.append(rate_then.limit_bytes_per_s if rate_then else None)
    return Throughput(at, _values_between(at, rate_at, gaps), target, limit)


def _values_between(
    at: Sequence[float], value_at: Mapping[float, float], gaps: Set[float]
) -> list[float | None]:
    """A value for each row that lies between two that are known, with no gap between them."""
    stretches: list[list[float]] = [[]]
    for moment in sorted({*value_at, *gaps}):
        if moment in gaps:
            stretches.append([])
        else:
            stretches[-1].append(moment)
    interpolation: dict[float, float] = {}
    for moments in filter(None, stretches):
        within = [moment for moment in at if moments[0] <= moment <= moments[-1]]
        values = np.interp(within, moments, [value_at[moment] for moment in moments])
        interpolation |= dict(zip(within, values.tolist(), strict=True))
    return [interpolation.get(moment) for moment in at]


def _gaps(samples: Sequence[BusiestRate]) -> Iterator[float]:
    """A moment in each time without a poll: the mean over that time says nothing of it."""
    for sample in samples:
        if sample.since is not None and sample.at - sample.since > PACE_WINDOW:
            yield (sample.since + (sample.at - sample.since) / 2).timestamp()


def _points(samples: Sequence[BusiestRate]) -> Iterator[BusiestRate]:
    """What is drawn: smoothed and averaged, over no gap."""
    polled = [s for s in samples if s.since is None or s.at - s.since <= PACE_WINDOW]
    yield from _smooth(_averages(polled))


def _smooth(samples: Sequence[BusiestRate]) -> list[BusiestRate]:
    """Each as the mean of the last half minute: single polls see single fetches."""
    means: list[BusiestRate] = []
    first, total = 0, 0.0
    within = timedelta(seconds=_SMOOTHED_S)
    for at, sample in enumerate(samples):
        total += sample.busiest_bytes_per_s
        while sample.at - samples[first].at >= within:
            total -= samples[first].busiest_bytes_per_s
            first += 1
        means.append(BusiestRate(sample.at, total / (at - first + 1)))
    return means


def _averages(samples: Sequence[BusiestRate]) -> list[BusiestRate]:
    """Means of equally many samples each, at the last one's time."""
    together = -(-len(samples) // POINTS) or 1
    spans = [samples[at : at + together] for at in range(0, len(samples), together)]
    return [
        BusiestRate(span[-1].at, sum([each.busiest_bytes_per_s for each in span]) / len(span))
        for span in spans
    ]
