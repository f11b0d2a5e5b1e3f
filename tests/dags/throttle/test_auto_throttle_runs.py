"""throttle="auto" in whole runs: measured under load, reported with its cause, removed."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local.process.waiting import wait_until
from local.workload import Workload
from rehome.domain.run.flows import RateReason
from rehome.domain.run.states import PlanState
from rehome.execution.throttle.keys import FOLLOWER_RATE, LEADER_RATE
from rehome.operators.dry_run import DryRunOperator
from rehome.operators.snapshot import SnapshotClusterOperator
from rehome.operators.throttle import SetThrottleOperator
from rehome.warehouse import PlanDirectory
from tests.dags.clusters import no_throttles, throttles_become, throttles_of, to
from tests.dags.site import Site

CAPACITY, USABLE = 4_000_000, 3_200_000
PRODUCED_PER_S = 100
MESSAGE_BYTES = 5_000
MOST_ON_DISK = 1.1 * MESSAGE_BYTES
"""What a message takes in the log, the header of a batch of its own included."""
SPARE = re.compile(r"broker 1 can spare ([\d.]+) MB/s \(out\) of 4 MB/s; (.*)")


@dataclass(frozen=True)
class Moment:
    """How many messages there were, at what time in seconds."""

    acknowledged: int
    sent: int
    at_s: float = field(default_factory=time.monotonic)


@dataclass
class Traffic:
    """A producer, and how far it was before and after each task read the brokers."""

    workload: Workload
    read: dict[str, tuple[Moment, Moment]] = field(default_factory=dict)

    def now(self) -> Moment:
        return Moment(self.workload.acknowledged, self.workload.sent)

    def between_readings(self) -> tuple[float, float]:
        """Least and most that can have been measured, in bytes/s: what a machine keeps up with."""
        (before, begun), (ended, after) = self.read["snapshot"], self.read["dry run"]
        least = (ended.acknowledged - begun.sent) * MESSAGE_BYTES / (after.at_s - before.at_s)
        most = (after.sent - before.acknowledged) * MOST_ON_DISK / (ended.at_s - begun.at_s)
        return least, most


@pytest.fixture
def traffic(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Traffic]:
    """Half a megabyte per second that broker 1 leads and broker 2 follows; known to the dry run."""
    monkeypatch.setenv("REHOME_BROKER_CAPACITY_BYTES_PER_S", str(CAPACITY))
    topic = site.topics.create([[1, 2]])
    workload = Workload(
        site.cluster.client_settings(),
        {topic: 1},
        message_bytes=MESSAGE_BYTES,
        messages_per_s=PRODUCED_PER_S,
        consume=False,
    )
    found = Traffic(workload)
    snapshot, check = SnapshotClusterOperator.step, DryRunOperator.step

    def noted(operator: SnapshotClusterOperator, context: Any) -> Any:
        before = found.now()
        done = snapshot(operator, context)
        found.read["snapshot"] = before, found.now()
        return done

    def after_some_seconds_of_it(operator: DryRunOperator, context: Any) -> Any:
        """Planning without Spark takes no time, and in none nothing can be measured."""
        enough = workload.acknowledged + 6 * PRODUCED_PER_S
        wait_until(lambda: workload.acknowledged >= enough, "messages between both readings", 240)
        before = found.now()
        done = check(operator, context)
        found.read["dry run"] = before, found.now()
        return done

    monkeypatch.setattr(SnapshotClusterOperator, "step", noted)
    monkeypatch.setattr(DryRunOperator, "step", after_some_seconds_of_it)
    with workload:
        wait_until(lambda: workload.acknowledged > PRODUCED_PER_S, "the producer to run", 240)
        yield found


@pytest.fixture
def reported(site: Site, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The pair of rates on the cluster once the throttle was set up."""
    found: list[tuple[str, str]] = []
    set_up = SetThrottleOperator.step

    def and_look(operator: SetThrottleOperator, context: Any) -> Any:
        done = set_up(operator, context)
        default = wait_until(lambda: throttles_of(site.gateway, [])["broker "], "the rates")
        found.append((default[LEADER_RATE], default[FOLLOWER_RATE]))
        return done

    monkeypatch.setattr(SetThrottleOperator, "step", and_look)
    return found


def test_auto_gives_what_is_left_by_the_measured_traffic_and_says_so(
    site: Site, traffic: Traffic, reported: list[tuple[str, str]]
) -> None:
    topic = site.topics.create([[1]])
    site.topics.fill(topic, 800, size_bytes=10_000)
    before = no_throttles(site.gateway, [topic])
    wanted = {"action": "reassign", "reassignment": to(topic, {0: [3]}), "throttle": "auto"}
    run = site.run(**wanted)
    assert run.state == "success", run.log
    (plan,) = site.ledger.plans()
    assert plan.state is PlanState.DONE

    tried = PlanDirectory(plan.plan_dir).read_json("dry_run.json")
    found = SPARE.fullmatch(tried["rate_cause"])
    assert found is not None, tried["rate_cause"]
    assert found[2] == "half of that, for there is no deadline"
    sent = USABLE - 2 * tried["rate_bytes_per_s"]
    least, most = traffic.between_readings()
    assert 0 < least <= sent <= most, tried
    assert float(found[1]) == pytest.approx(2 * tried["rate_bytes_per_s"] / 1e6, abs=0.06)
    assert f"throttle auto: {tried['rate_cause']}" in run.log

    first = site.ledger.rate_changes(plan.plan_id)[0]
    assert (first.reason, first.cause) == (RateReason.SET_UP, f"auto: {tried['rate_cause']}")
    assert first.target_bytes_per_s == first.limit_bytes_per_s == tried["rate_bytes_per_s"]
    report = PlanDirectory(plan.plan_dir).read_text("report.html")
    assert f"set up: auto: {tried['rate_cause']}" in report
    assert reported == [(str(first.rate_bytes_per_s),) * 2]
    throttles_become(site.gateway, [topic], before)

    ends = datetime.now(UTC) + timedelta(hours=1)
    back = wanted | {"reassignment": to(topic, {0: [1]}), "window_end": ends.isoformat()}
    hurried = site.run(**back, dry_run=True)
    assert "; the window needs " in hurried.log, hurried.log
