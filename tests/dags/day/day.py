"""A watched cluster of real brokers, and a clock that is put forward: a day takes minutes.

Rehome's own operators take and judge the snapshots, and Rehome's DAGs carry out what is started.
"""

from __future__ import annotations

import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.domain.run.watched.finding import FindingRecord
from rehome.domain.run.watched.finding_kinds import FindingKind
from rehome.ledger.store import Ledger
from rehome.operators import assets
from rehome.operators.send_alerts import SendAlertsOperator
from rehome.operators.snapshot import SnapshotClusterOperator
from rehome.operators.watch import WatchClustersOperator
from rehome.watching import finding_text, last_attempt, respond
from tests.dags.day.happened import Act, Change, Happened, NotStarted, Started, Told
from tests.dags.runs import Run, started_by_a_task
from tests.e2e.webhook import Webhook
from tests.plugins.fleet.recorded import CONNECTION, WATCH_RUN, requested

EVERY = timedelta(minutes=10)
"""Between two snapshots, as `collect_snapshots` takes them."""
Key = tuple[FindingKind, str]


class DayClock:
    """Time that is put forward; in between it passes by itself."""

    def __init__(self) -> None:
        begun = datetime.now(UTC).replace(hour=6, minute=0, second=0, microsecond=0)
        self._ahead = begun - datetime.now(UTC)

    def utc_now(self) -> datetime:
        return datetime.now(UTC) + self._ahead

    def monotonic_s(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def new_id(self) -> str:
        return uuid.uuid4().hex

    def pass_until(self, moment: datetime) -> None:
        """Put it forward; what is over stays over."""
        self._ahead += max(moment - self.utc_now(), timedelta())


@dataclass
class Day:
    """What is watched, and the rows of the table so far."""

    cluster: LocalCluster
    ledger: Ledger
    rehome: Callable[..., Run]
    patch: pytest.MonkeyPatch
    clock: DayClock
    webhook: Webhook
    rows: list[Happened] = field(default_factory=list)
    judging_s: list[float] = field(default_factory=list)
    sending_s: list[float] = field(default_factory=list)
    _next: datetime | None = None
    _looks: int = 0
    _received: int = 0
    _deciding: list[tuple[respond.Response, respond.Facts]] = field(default_factory=list)

    @contextmanager
    def act(self, act: Act, what: str) -> Iterator[Happened]:
        """Something happens; what follows within the block is its row."""
        row = Happened(act, what, self._clock_time())
        self.rows.append(row)
        self._looks = 0
        self.judging_s.clear()
        self.sending_s.clear()
        yield row
        self._hear()

    def look(self, times: int = 1, *, act_on: bool = True) -> None:
        """Take and judge a snapshot, as often, and carry out what is started."""
        for _ in range(times):
            self._pass()
            before = self._open()
            start = self.judge()
            self._note(before, self._open())
            self._hear()
            if start is not None and act_on:
                self.carry_out(start)

    def until(self, over: Callable[[], bool], most: int = 8) -> None:
        """Look until something is so, for so many snapshots at most: the row says how that was."""
        looks = 0
        while not over() and looks < most:
            self.look()
            looks += 1

    def is_open(self, kind: FindingKind, subject: str) -> bool:
        """Whether a finding is open."""
        return (kind, subject) in self._open()

    def snapshot(self) -> Any:
        """The event of a snapshot that is taken now, as Airflow hands it on."""
        events: Any = defaultdict(SimpleNamespace)
        task = SnapshotClusterOperator(task_id="snapshot", kafka_config_id=CONNECTION)
        run = SimpleNamespace(
            dag_id="collect_snapshots",
            run_id=f"scheduled__{self.clock.utc_now().isoformat()}",
            run_type="scheduled",
            triggering_user_name=None,
        )
        context: Any = {"task": task, "dag_run": run, "outlet_events": events, "params": {}}
        task.execute(context)
        return events[assets.SNAPSHOTS_ASSET]

    def judge(self) -> dict[str, Any] | None:
        """Take a snapshot, judge it, and send what is to be sent; the run that is to start."""
        event = self.snapshot()
        task = WatchClustersOperator(task_id="watch")
        context: Any = {
            "triggering_asset_events": {assets.SNAPSHOTS_ASSET: [event]},
            "task": task,
            "dag_run": WATCH_RUN,
        }
        self._deciding.clear()
        began = time.monotonic()
        with self._heard():
            run_ids = task.execute(context)
        self.judging_s.append(time.monotonic() - began)
        self._note_waits()
        began = time.monotonic()
        SendAlertsOperator(task_id="send_alerts").execute({})
        self.sending_s.append(time.monotonic() - began)
        return requested(self.ledger, run_ids[0]) if run_ids else None

    def carry_out(self, start: dict[str, Any]) -> Run:
        """The run that was started, to its end."""
        at, run_id, dag_id = self._clock_time(), start["trigger_run_id"], start["trigger_dag_id"]
        with self.patch.context() as patched:
            started_by_a_task(patched, run_id)
            run = self.rehome(self.cluster, dag=dag_id, **start["conf"])
        known = self.ledger.watch_start(dag_id, run_id)
        assert known is not None, run.log
        plan = self.ledger.plan(known.plan_id) if known.plan_id else None
        self.rows[-1].started.append(
            Started(
                known.kind,
                known.subject,
                known.policy,
                start["conf"]["action"],
                dag_id,
                at,
                None if plan is None else plan.state,
                "" if plan is None else plan.cause,
                0 if plan is None else len(self.ledger.moves(plan.plan_id)),
            )
        )
        self._hear()
        return run

    def kill(self, *brokers: int) -> None:
        """Until every other broker knows."""
        for broker in brokers:
            self.cluster.kill(broker)
        self._wait_for(brokers, there=False)

    def restart(self, *brokers: int) -> None:
        """Until every broker knows."""
        for broker in brokers:
            self.cluster.restart(broker)
        self._wait_for(brokers, there=True)

    def _wait_for(self, brokers: Sequence[int], *, there: bool) -> None:
        def known() -> bool:
            asked = self.cluster.answering_brokers - set(brokers)
            seen = [self.cluster.brokers_known_at(self.cluster.address(each)) for each in asked]
            return all(set(brokers) <= each if there else not set(brokers) & each for each in seen)

        wait_until(known, f"brokers {brokers} to be {'there' if there else 'gone'}", 240)

    def _pass(self) -> None:
        """Until the next snapshot is due."""
        now = self.clock.utc_now()
        if self._next is None or self._next < now:
            self._next = now
        self.clock.pass_until(self._next)
        self._next += EVERY
        self._looks += 1

    def _clock_time(self) -> str:
        return f"{self.clock.utc_now():%H:%M}"

    def _open(self) -> dict[Key, FindingRecord]:
        return {each.key: each for each in self.ledger.open_findings(self.cluster.cluster_id)}

    def _note(self, before: dict[Key, FindingRecord], after: dict[Key, FindingRecord]) -> None:
        at, row = self._clock_time(), self.rows[-1]
        row.opened += [
            Change(*key, at, self._looks, finding_text.text_of(found))
            for key, found in after.items()
            if key not in before
        ]
        row.closed += [Change(*key, at, self._looks) for key in before if key not in after]

    @contextmanager
    def _heard(self) -> Iterator[None]:
        """Keep what is decided, and by what."""
        really = respond.respond

        def heard(findings: Any, facts: respond.Facts, *more: Any) -> respond.Response:
            answer = really(findings, facts, *more)
            self._deciding.append((answer, facts))
            return answer

        with self.patch.context() as patched:
            patched.setattr("rehome.operators.watch.respond", heard)
            yield

    def _note_waits(self) -> None:
        row = self.rows[-1]
        for answer, facts in self._deciding:
            for (kind, subject), why in answer.waits.items():
                if (kind, subject, why) in row.why_not():
                    continue
                attempted = why is respond.NotNow.ATTEMPTED
                text = (
                    last_attempt.attempt_text(facts.attempts[kind, subject])
                    if attempted
                    else finding_text.wait_text(why)
                )
                row.not_started.append(NotStarted(kind, subject, why, text))

    def _hear(self) -> None:
        """What has come in since: one message may be about several alerts."""
        new = self.webhook.reported[self._received :]
        self._received += len(new)
        for message in new:
            for each in message.get("alerts", [message]):
                self.rows[-1].told.append(
                    Told(
                        each["kind"],
                        each["severity"],
                        each["subject"],
                        each["text"],
                        each["next_step"],
                        each["message_id"],
                    )
                )
