"""A drain as an operator sees it: after every poll all places say the same, and Kafka's tools.

Real brokers, and the page in a browser. The topic grows; the plan is paused, goes on, loses a
target and is cancelled. Airflow is not needed for what is shown: polls and steps are made here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.account.account import PlanAccount, account_of
from rehome.account.evidence import read_evidence
from rehome.account.hurts import covered_by
from rehome.account.known import Known
from rehome.account.plan_bytes import byte_facts
from rehome.account.words.figure_words import bytes_sentence, in_place_text
from rehome.account.words.hurt_words import hurt_text
from rehome.account.words.standing_words import status_of
from rehome.alerts.due_alerts import at_poll
from rehome.alerts.kinds import AlertKind
from rehome.alerts.plan_alerts import Patience, alerts_of
from rehome.alerts.run_end import Ended, RunEnd
from rehome.domain.clock import utc_now
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.kafka_json import reassignment_json
from rehome.domain.plan.plan import Plan
from rehome.domain.plan.summary import BrokerLoad
from rehome.domain.run.causes.hurts import HurtKind
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState
from rehome.domain.text import bytes_text
from rehome.execution.admission.backlog import Backlog
from rehome.execution.advance import advance
from rehome.execution.poll import Poll, poll
from rehome.execution.throttle.set_up import clear_throttle, set_up_throttle
from rehome.ledger.store import Ledger
from rehome.reporting.collect import report_data
from rehome.reporting.plan_text import ended_note
from rehome.warehouse import PlanDirectory
from tests.conftest import Topics, impatient_gateway
from tests.execution.access.own_gateway import OwnGateway
from tests.ledger.set_clock import SetClock
from tests.ledger.small_plans import move
from tests.session.browser import Watched, opened
from tests.ui.site import Site, served, token_of
from tests.versions.since import class_of_tool

if TYPE_CHECKING:
    from fastapi import FastAPI
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.slow, pytest.mark.long]

REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
RATE = 400_000
POLICY = Policy(RATE, metadata_grace_s=1, max_moves_per_broker=2, stall_alert_s=15.0)
DAG, PLAN_ID = "reassign_partitions", "20301121T010000Z-drain-1"
RATES = {"B/s": 1, "kB/s": 1e3, "MB/s": 1e6}


@dataclass
class Drain:
    """A drain of broker 1, and everybody who says something of it."""

    cluster: LocalCluster
    gateway: OwnGateway
    ledger: Ledger
    plan: Plan
    directory: PlanDirectory
    tab: Watched
    url: str
    topics: Topics
    topic: str
    backlog: Backlog = field(default_factory=Backlog)
    seen: list[str] = field(default_factory=list)
    received: int = 0
    alerted: set[AlertKind] = field(default_factory=set)

    def step(self) -> PlanState:
        advance(self.plan, self.ledger, self.gateway, POLICY)
        return self.ledger.plan(PLAN_ID).state

    def polled(self) -> PlanAccount:
        """Make a poll; then read every place, and compare."""
        found = poll(self.plan, self.ledger, self.gateway, POLICY, self.backlog)
        return self.compared(found)

    def tool(self, name: str, *args: str) -> str:
        done = self.cluster.run_tool(name, *args)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def listed(self) -> set[TopicPartition]:
        """What the controller moves, by kafka-reassign-partitions."""
        said = self.tool(REASSIGN, "--list")
        found = re.findall(rf"^({self.topic})-(\d+):", said, re.MULTILINE)
        return {TopicPartition(topic, int(number)) for topic, number in found}

    def on_disk(self) -> dict[tuple[int, str], int]:
        """Bytes of each replica, by kafka-log-dirs."""
        said = self.tool(LOG_DIRS, "--describe", "--topic-list", self.topic)
        content = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
        return {
            (broker["broker"], each["partition"]): each["size"]
            for broker in content["brokers"]
            for log_dir in broker["logDirs"]
            for each in log_dir["partitions"]
        }

    def compared(self, found: Poll | None) -> PlanAccount:
        evidence = read_evidence(self.ledger, PLAN_ID)
        account = account_of(evidence, utc_now())
        page = self.tab.page
        state = evidence.record.state
        wait_until(lambda: self._is_shown(account), "the page to have read the same poll", 30)
        head = page.inner_text("#plan-head")
        data = report_data(self.ledger, self.directory)
        report = status_of(data.account)
        note = ended_note(data, report.label, report.next_step)
        self._bytes(account, head, note)
        self._told(account, data.account)
        if state is PlanState.RUNNING:
            self._rates(account, head)
            self._hurts(account, head, report.headline, found)
        self._kafka(account, evidence.record.state, page.inner_text("#tab-rows"))
        self.seen.append(f"{state} {in_place_text(account.bytes)}")
        return account

    def _is_shown(self, account: PlanAccount) -> bool:
        """What was read less than a second ago is new enough for the page's next viewer."""
        page = self.tab.page
        page.goto(self.url)
        if account.state is not PlanState.RUNNING or account.seen_at is None:
            return page.locator(f"#plan-head .state.{account.state.value}").count() > 0
        read = page.locator("#plan-head .age").get_attribute("data-at")
        return read is not None and abs(float(read) - account.seen_at.timestamp()) < 0.001

    def _bytes(self, account: PlanAccount, head: str, note: str) -> None:
        assert in_place_text(account.bytes) in head, head
        assert bytes_sentence(account.bytes) in note
        received = account.bytes.received
        if isinstance(received, Known):
            assert received.value >= self.received, self.seen
            self.received = received.value

    def _rates(self, account: PlanAccount, head: str) -> None:
        """Head, rows (with those that have just ended) and brokers' table sum up to the same."""
        page = self.tab.page
        rows = page.locator("#tab-rows td[data-label=Rate]").all_inner_texts()
        into = page.locator("#brokers tbody tr td:nth-of-type(1) .small").all_inner_texts()
        shown = page.inner_text(".pace")
        if not isinstance(account.pace, Known):
            assert shown == "–"
            assert {row.strip() for row in rows} == {"–"}
            assert all(text.startswith("–") for text in into)
            return
        total = account.pace.value.total
        assert shown == f"{bytes_text(total)}/s"
        assert sum(map(rate_in, rows)) == pytest.approx(total, rel=0.02, abs=1e3)
        assert sum(map(rate_in, into)) == pytest.approx(total, rel=0.02, abs=1e3)

    def _hurts(self, account: PlanAccount, head: str, headline: str, found: Poll | None) -> None:
        for hurt in account.hurts:
            if hurt.kind is not HurtKind.ALERT:
                assert hurt_text(hurt)[0] in head
        worst = next((h for h in account.hurts if h.kind is not HurtKind.ALERT), None)
        if worst is not None:
            assert hurt_text(worst)[0] in headline
        if found is not None:
            assert tuple(h.kind for h in found.hurts) == tuple(
                h.kind for h in account.hurts if h.kind is not HurtKind.ALERT
            )
            record = self.ledger.plan(PLAN_ID)
            raised = self.ledger.alerts(PLAN_ID)
            alerts = at_poll(record, found, POLICY, raised)
            assert {alert.kind for alert in alerts} <= covered_by(account.hurts) | STALLS
            self.alerted |= {alert.kind for alert in alerts}
            patience = Patience(POLICY.stall_alert_s, POLICY.stall_timeout_s)
            then = account_of(read_evidence(self.ledger, PLAN_ID), found.observation.taken_at)
            on_page = {alert.kind: alert.text for alert in alerts_of(then, patience)}
            assert {alert.kind: alert.text for alert in alerts}.items() <= on_page.items()

    def _told(self, account: PlanAccount, reported: PlanAccount) -> None:
        """The message of a run that ends now has the same figures as the page and the report."""
        if account.state is PlanState.RUNNING:
            return
        sent = RunEnd(DAG, "run-1", Ended.SUCCEEDED, plan=reported).alert()
        assert bytes_sentence(account.bytes) in sent.text
        assert sent.facts["bytes"] == byte_facts(account.bytes)
        assert sent.facts["throttles_owed"] == list(account.throttles.names)
        assert sent.state == account.state.value

    def _kafka(self, account: PlanAccount, state: PlanState, rows: str) -> None:
        """Kafka's own tools, a few seconds later: what has ended since is in place by them."""
        listed = self.listed()
        moves = self.ledger.moves(PLAN_ID)
        flying = {p for p, known in moves.items() if known.state is MoveState.ADMITTED}
        assert listed <= flying, (state, listed, flying)
        if flying - listed:
            said = self.verified()
            for partition in flying - listed:
                assert f"Reassignment of partition {partition} is completed." in said
        assert rows.count("copying") <= len(flying)
        if state is not PlanState.RUNNING:
            assert not listed
        copying = account.bytes.copying
        if isinstance(copying, Known):
            disks = self.on_disk()
            there = sum(
                disks.get((broker, str(each.partition)), 0)
                for each in self.plan.moves
                for broker in each.adding
            )
            if state is PlanState.RUNNING and not account.hurts:
                assert copying.value.in_place <= there * 1.02 + 4096

    def verified(self) -> str:
        file = Path(self.cluster.directory) / "verify.json"
        file.write_text(json.dumps(reassignment_json(self.plan.moves)))
        said = self.cluster.run_tool(
            REASSIGN, "--reassignment-json-file", str(file), "--verify", "--preserve-throttles"
        )
        return said.stdout

    def throttled(self) -> bool:
        """Whether brokers have a rate, by kafka-configs."""
        asked = ("--describe", "--entity-type", "brokers", "--entity-default")
        said = self.tool(class_of_tool("ConfigCommand"), *asked)
        return f"replication.throttled.rate={RATE}" in said


STALLS = {AlertKind.STALLED}


def rate_in(text: str) -> float:
    """``1.2 MB/s`` in bytes per second; – is nothing."""
    found = re.match(r"\s*([\d.]+) (\w+/s)", text)
    return float(found[1]) * RATES[found[2]] if found else 0.0


@pytest.fixture
def drain(
    mortal: LocalCluster,
    page: FastAPI,
    browser: Browser,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Drain]:
    url = f"sqlite:///{tmp_path}/ledger.db"
    monkeypatch.setenv("REHOME_LEDGER_URL", url)
    monkeypatch.setenv("REHOME_WAREHOUSE", (tmp_path / "warehouse").as_uri())
    topics = Topics(mortal)
    topic = topics.create([[1, 2], [1, 3], [1, 2], [1, 2]])
    topics.fill(topic, 16_000)
    with (
        impatient_gateway(mortal) as gateway,
        Ledger.open(url) as ledger,
        served(page) as address,
        opened(browser, address, token=token_of("admin")) as tab,
    ):
        sizes = {each.partition: size for each, size in _sizes(gateway, topic).items()}
        moves = [
            move(topic, number, current, target, sizes[number])
            for number, (current, target) in enumerate(
                [((1, 2), (3, 2)), ((1, 3), (4, 3)), ((1, 2), (4, 2)), ((1, 2), (3, 2))]
            )
        ]
        site = Site(ledger, SetClock(), tmp_path / "warehouse")
        into = {b: sum(m.size_bytes for m in moves if b in m.adding) for b in (3, 4)}
        loads = (
            BrokerLoad(1, sum(into.values()), 0, 4, 0, 4, 0, 0, sum(into.values())),
            *(BrokerLoad(b, 0, size, 0, 2, 0, 2, size, 0) for b, size in into.items()),
        )
        plan = site.plan(
            PLAN_ID, *moves, cluster_id=mortal.cluster_id, brokers=[1], figures={"brokers": loads}
        )
        ledger.approve(PLAN_ID, plan.plan_hash, "bob")
        driver = ledger.plan(PLAN_ID).driver
        ledger.acquire_lease(mortal.cluster_id, driver, 1800)  # as the run does that drives it
        directory = PlanDirectory((tmp_path / "warehouse" / "plans" / PLAN_ID).as_uri())
        yield Drain(
            *(mortal, gateway, ledger, plan, directory, tab),
            url=f"{address}/rehome/plans/{PLAN_ID}",
            topics=topics,
            topic=topic,
        )


def _sizes(gateway: OwnGateway, topic: str) -> dict[TopicPartition, int]:
    return {
        partition: replica.size_bytes
        for log_dir in gateway.describe_log_dirs().value
        for partition, replica in log_dir.replicas.items()
        if partition.topic == topic
    }


def test_at_no_moment_do_two_places_disagree(drain: Drain) -> None:
    ledger, plan = drain.ledger, drain.plan
    ledger.claim(PLAN_ID)
    set_up_throttle(plan, ledger, drain.gateway, RATE)
    drain.step()
    for _ in range(3):
        assert drain.polled().state is PlanState.RUNNING
        drain.topics.fill(drain.topic, 800)  # it grows
    assert drain.throttled()
    grown = drain.polled().bytes.copying
    assert isinstance(grown, Known)
    assert grown.value.grown > 0

    ledger.request_pause(PLAN_ID, "ann")
    wait_until(lambda: drain.step() is PlanState.PAUSED, "pause", 240)
    clear_throttle(PLAN_ID, ledger, drain.gateway)
    paused = drain.compared(None)
    assert paused.state is PlanState.PAUSED
    assert not drain.throttled()

    ledger.claim(PLAN_ID)
    set_up_throttle(plan, ledger, drain.gateway, RATE)
    drain.step()
    gone_on = drain.polled()
    assert gone_on.elapsed is not None
    assert gone_on.elapsed.pauses == 1

    drain.cluster.kill(4)
    wait_until(lambda: 4 not in drain.gateway.describe_cluster().brokers, "broker 4 to go", 240)
    hurt = drain.polled()
    assert [(h.kind, h.brokers) for h in hurt.hurts][:1] == [(HurtKind.DEAD_BROKERS, (4,))]
    assert not isinstance(hurt.ends, Known)
    assert "not alive" in drain.tab.page.inner_text("#plan-head")
    wait_until(lambda: drain.polled() and drain.alerted, "an alert of a poll", 240)

    ledger.request_cancel(PLAN_ID, "ann")
    wait_until(lambda: drain.step() is PlanState.CANCELLED, "cancel", 240)
    clear_throttle(PLAN_ID, ledger, drain.gateway)
    over = drain.compared(None)
    assert over.state is PlanState.CANCELLED
    assert "copying" not in drain.tab.page.inner_text("#tab-rows")
    assert drain.tab.faults == []
