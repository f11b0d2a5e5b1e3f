"""throttle="auto": what is measured, what is spare, what the window needs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rehome.domain.kafka import (
    ClusterDescription,
    LogDir,
    Partial,
    PartitionState,
    ReplicaId,
    ReplicaOnDisk,
    TopicDescription,
    TopicPartition,
)
from rehome.domain.request.parse_request import parse_request
from rehome.execution.admission.slots import Direction, Slot
from rehome.execution.dry_run.cluster_state import ClusterState
from rehome.execution.dry_run.rates.auto_rate import (
    RateCause,
    RateWhy,
    auto_rate,
    traffic_bytes_per_s,
)
from rehome.execution.dry_run.words.rate_words import rate_cause_text
from rehome.execution.policy_from_request import rate_for
from rehome.settings import Settings
from tests.ledger.small_plans import make_plan, move
from tests.planning.clusters import TAKEN_AT, Cluster

TP = TopicPartition("t", 0)
CAPACITY = 100
PLAN = make_plan("p", move("t", 0, (1, 2), (3, 2), 1000))


def reading(sizes: dict[int, int], after_s: float = 10) -> ClusterState:
    """Partition t-0, led by broker 1, as large as given by broker."""
    on_disk = {broker: {TP: ReplicaOnDisk(size, 0, False)} for broker, size in sizes.items()}
    dirs = [LogDir(b, "/d", None, None, None, None, rows) for b, rows in on_disk.items()]
    state = PartitionState(1, (1, 2), frozenset({1, 2}))
    return ClusterState(
        taken_at=TAKEN_AT + timedelta(seconds=after_s),
        cluster=ClusterDescription("c", None, {}, None),
        topics={"t": TopicDescription("t", "t", False, {0: state})},
        ongoing={},
        log_dirs=Partial(dirs),
        missing_rights=(),
        min_isr={},
        sizes={ReplicaId(*TP, broker): size for broker, size in sizes.items()},
    )


def test_traffic_is_what_replicas_have_grown_by_and_what_leaders_sent_for_it() -> None:
    racks = {1: "/a", 2: "/b", 3: "/c"}
    snapshot = Cluster(racks, {TP: (1, 2)}, {TP: 1000}).snapshot()
    assert traffic_bytes_per_s(snapshot, reading({1: 1200, 2: 1100})) == {
        Slot(Direction.IN, 1): 20.0,
        Slot(Direction.IN, 2): 10.0,
        Slot(Direction.OUT, 1): 20.0,
    }
    assert traffic_bytes_per_s(snapshot, reading({1: 1200}, after_s=0.5)) is None


@pytest.mark.parametrize(
    ("left_s", "rate", "why", "needed"),
    [
        (None, 20, RateWhy.NO_DEADLINE, 0),  # half of 80 % less 40
        (60, 20, RateWhy.WINDOW, 20),  # 1.2 times what 1000 bytes in a minute need
        (40, 30, RateWhy.WINDOW, 30),
        (10, 40, RateWhy.WINDOW, 120),  # all that is spare, though the window needs more
        (
            6000,
            10,
            RateWhy.WINDOW,
            1.2 * 1000 / 6000,
        ),  # a quarter of it: it needs less
    ],
)
def test_the_rate_is_what_the_tightest_broker_can_spare_as_far_as_the_window_needs_it(
    left_s: float | None, rate: int, why: RateWhy, needed: float
) -> None:
    traffic = {Slot(Direction.OUT, 1): 40.0, Slot(Direction.IN, 2): 79.0}
    found = auto_rate(PLAN, reading({1: 1000}), traffic, CAPACITY, window_left_s=left_s)
    assert found.rate_bytes_per_s == rate
    assert found.cause == RateCause(why, Slot(Direction.OUT, 1), 40, CAPACITY, needed)


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        (RateCause(RateWhy.NOTHING_COPIED), "nothing is copied"),
        (RateCause(RateWhy.TRAFFIC_NOT_KNOWN), "the traffic is not known yet: the setting"),
        (
            RateCause(RateWhy.NO_DEADLINE, Slot(Direction.OUT, 1), 40, 100),
            "broker 1 can spare 40 B/s (out) of 100 B/s; half of that, for there is no deadline",
        ),
        (
            RateCause(RateWhy.WINDOW, Slot(Direction.IN, 2), 40_000, 100_000, 20_000),
            "broker 2 can spare 40 kB/s (in) of 100 kB/s; the window needs 20 kB/s",
        ),
    ],
)
def test_a_rates_cause_in_words(cause: RateCause, text: str) -> None:
    assert rate_cause_text(cause) == text


def test_the_users_bounds_hold_unless_nothing_is_spare() -> None:
    now = reading({1: 1000})
    assert auto_rate(PLAN, now, {}, 100, window_left_s=None, at_most=7).rate_bytes_per_s == 7
    assert auto_rate(PLAN, now, {}, 100, window_left_s=None, at_least=70).rate_bytes_per_s == 70
    full = {Slot(Direction.IN, 3): 80.0}
    assert auto_rate(PLAN, now, full, 100, window_left_s=None, at_least=9).rate_bytes_per_s == 0


@pytest.mark.parametrize(
    ("bounds", "rate"),
    [
        ({}, 5_000),
        ({"throttle_max": 1_000}, 1_000),
        ({"throttle_min": 7_000}, 7_000),
        ({"throttle": 9_000}, 9_000),
    ],
)
def test_before_the_traffic_is_known_the_setting_is_within_the_bounds_of_the_request(
    bounds: dict[str, int], rate: int
) -> None:
    request = parse_request({"action": "rebalance", **bounds})
    assert rate_for(request, Settings(auto_throttle_bytes_per_s=5_000)) == rate
