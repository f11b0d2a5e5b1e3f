"""Offsets and bytes of one replica's log."""

from __future__ import annotations

from world.kafka.log import EpochStart, Log


def filled(messages: int = 1000, size: float = 100.0) -> Log:
    log = Log(epochs=[EpochStart(0, 0)])
    log.append(messages * size, size)
    return log


def test_a_follower_takes_over_messages_with_their_sizes() -> None:
    leader = filled()
    leader.append(5000, 50)
    follower = Log()
    follower.follow(leader, 1050)
    assert (follower.end, follower.size) == (1050, 100_000 + 2500)
    assert leader.after(1000, 2500) == 1050
    assert leader.bytes_between(990, 1010) == 1500


def test_deleted_records_stay_on_disk_until_their_segment_goes() -> None:
    log = filled()
    log.roll(30_000)
    log.start = 700
    assert log.size == 100_000
    log.drop_segments_before(log.start)
    assert (log.base, log.size) == (600, 40_000)


def test_a_follower_keeps_what_its_epoch_has_at_the_leader() -> None:
    leader = filled(500)
    leader.epochs.append(EpochStart(3, 500))
    leader.append(100, 100)
    follower = filled(1000)
    follower.truncate(leader.end_of_epoch(follower.epochs[-1].epoch))
    assert follower.end == 500


def test_a_log_that_begins_anew_is_empty() -> None:
    log = filled()
    log.begin_at(700)
    assert (log.base, log.start, log.end, log.size) == (700, 700, 700, 0)
