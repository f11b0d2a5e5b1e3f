"""Quotas between events: bursts and pauses of KIP-73's windows."""

from __future__ import annotations

from world.kafka.quota import UNLIMITED, Quota


def used(quota: Quota, traffic: float, seconds: float, now: float = 100.0) -> Quota:
    quota.traffic = traffic
    quota.pass_by(seconds, now)
    return quota


def test_without_a_rate_nothing_is_limited() -> None:
    assert used(Quota(), 5e6, 60).limit(0) == UNLIMITED


def test_from_quiet_there_is_neither_burst_nor_pause() -> None:
    quota = Quota(rate=1e6)
    assert quota.limit(0) == 1e6
    assert used(quota, 1e6, 60).limit(0) == 1e6
    assert quota.until_next() == UNLIMITED


def test_traffic_of_in_sync_followers_is_taken_off() -> None:
    assert Quota(rate=1e6).limit(4e5) == 6e5
    assert Quota(rate=1e6).limit(2e6) == 0


def test_after_traffic_below_the_rate_a_burst_passes_and_then_nothing() -> None:
    quota = used(Quota(rate=1e6), 2e5, 60)
    assert quota.limit(2e5) == UNLIMITED
    quota.traffic = 50e6
    burst_s = quota.until_next()
    assert 0.1 < burst_s < 0.3
    used(quota, 50e6, burst_s)
    assert quota.limit(2e5) == 0
    pause_s = quota.until_next()
    assert 6 < pause_s < 12
    assert used(quota, 2e5, pause_s).limit(2e5) == 8e5


def test_after_the_rate_was_lowered_nothing_passes_until_the_windows_forget() -> None:
    quota = used(Quota(rate=20e6), 20e6, 60)
    quota.set_rate(2e6)
    assert quota.limit(0) == 0
    assert 8 <= quota.until_next() <= 10
    assert used(quota, 0, quota.until_next()).limit(0) == 2e6


def test_one_fetch_passes_every_eleven_seconds_however_low_the_rate() -> None:
    quota = Quota(rate=1.0)
    quota.fetch(1e6)
    quota.traffic = 1e8
    used(quota, 1e8, quota.until_next())
    assert quota.limit(0) == 0
    assert quota.until_next() == 11
