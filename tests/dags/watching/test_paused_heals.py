"""Heals that the end of a window has paused, on real brokers: the next window resumes them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.domain.run.states import PlanState
from rehome.ledger.base.records import PlanRecord
from tests.conftest import Topics
from tests.dags.watching.healed import EMPTY, Healed, held_by
from tests.plugins.mailbox import Reported

pytestmark = pytest.mark.long  # each run of the DAG takes 10 s, and the next window a minute

CRAWL, FAST = 10_000, 20_000_000


@pytest.fixture
def paused(
    private_cluster: Callable[..., LocalCluster],
    watch: Callable[..., Healed],
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[Healed, PlanRecord, str]:
    """A heal of which nothing fits into its window, its plan, and its topic."""
    cluster = private_cluster(brokers=4)
    seen = watch(cluster, policies={"empty_broker": "heal"}, largest_throttle=CRAWL)
    topics = Topics(cluster)
    topic = topics.create([[1, 2], [2, 3], [3, 1]] * 2)
    topics.fill(topic, 3000, size_bytes=10_000)
    opens(monkeypatch, datetime.now(UTC))
    (start,) = seen.at(0, 10, 20)
    run = seen.carry_out(start)
    assert run.state == "success", run.log
    (plan,) = seen.ledger.plans()
    assert plan.state is PlanState.PAUSED, run.log
    return seen, plan, topic


def opens(patch: pytest.MonkeyPatch, at: datetime) -> None:
    """One window of ten minutes, from the minute of this time on."""
    patch.setenv("REHOME_WINDOW_CRON", f"{at.minute} {at.hour} * * *")
    patch.setenv("REHOME_WINDOW_DURATION_S", "600")


def open_the_next(patch: pytest.MonkeyPatch) -> None:
    now = datetime.now(UTC)
    following = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
    wait_until(lambda: datetime.now(UTC) >= following, "the next minute to begin", 120)
    opens(patch, following)


def test_the_next_window_goes_on_with_a_paused_heal_as_with_any_plan(
    reported: Reported, paused: tuple[Healed, PlanRecord, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, plan, topic = paused
    assert "when the next window opens, at " in reported.only("paused_at_window_end")["next_step"]
    seen.rules(policies={"empty_broker": "heal"}, largest_throttle=FAST)
    open_the_next(monkeypatch)
    assert seen.at(30) == [], "its window resumes it"

    run = seen.rehome(seen.cluster, dag="rebalance_in_window", throttle=FAST)
    assert run.state == "success", run.log
    (healed,) = seen.ledger.plans()
    assert (healed.plan_id, healed.state) == (plan.plan_id, PlanState.DONE)
    assert held_by(seen, topic, 4) >= 2
    assert not seen.ledger.throttles(open_only=True)
    assert seen.at(40) == []
    assert EMPTY not in seen.open()
