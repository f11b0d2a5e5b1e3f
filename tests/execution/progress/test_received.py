"""What copies have received from poll to poll."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from rehome.domain.kafka import BrokerId, PartitionState, ReplicaId
from rehome.domain.run.observation import Observation
from rehome.domain.run.progress import Gain, ProgressSample
from rehome.execution.progress.progress import replica_statuses
from rehome.execution.progress.received import gains_of, received_bytes, received_per_s
from tests.execution.observed import T0
from tests.ledger.small_plans import move

COPY = move("t", 0, (1, 2), (3, 2), 1000)
ACROSS = move("u", 0, (1, 2), (1, 2), 1000, ("/a", "/a"), ("/b", "/a"))
FIRST = ProgressSample(T0, 0, 2000, 0, 2, 2, received_bytes=70)


def seen(
    sizes: Mapping[BrokerId, int], future: int | None = None, log_dir: str = "/a"
) -> Observation:
    whole = ReplicaId(*ACROSS.partition, 1)
    isr = frozenset({1, 2})
    return Observation(
        T0,
        {m.partition: PartitionState(1, (1, 2), isr) for m in (COPY, ACROSS)},
        {},
        frozenset({1, 2, 3}),
        sizes={**{ReplicaId(*COPY.partition, b): size for b, size in sizes.items()}, whole: 1000},
        future_sizes={} if future is None else {whole: future},
        log_dirs={whole: log_dir},
    )


def received(before: Observation, now: Observation, sample: ProgressSample = FIRST) -> int | None:
    statuses = {each.replica: each for each in replica_statuses([COPY, ACROSS], before)}
    later = replace(now, taken_at=T0 + timedelta(seconds=5))
    return received_bytes([sample], gains_of([COPY, ACROSS], later, statuses))


def test_it_is_what_copies_have_grown_by() -> None:
    assert received(seen({3: 100}), seen({3: 250})) == 70 + 150
    assert received(seen({}), seen({3: 250})) == 70 + 250
    assert received(seen({3: 250}), seen({3: 100})) == 70  # cut, or begun anew
    assert received(seen({3: 250}), seen({})) == 70  # the broker is silent


def test_a_copy_between_log_dirs_counts_from_its_begin_to_its_end() -> None:
    """Until it begins, and once it has ended, the same replica has one log."""
    assert received(seen({}), seen({}, 30)) == 70 + 30
    assert received(seen({}, 30), seen({}, 400)) == 70 + 370
    assert received(seen({}, 400), seen({}, None, "/b")) == 70 + 600
    assert received(seen({}), seen({})) == 70


def test_it_is_not_known_where_an_earlier_version_has_polled() -> None:
    assert received(seen({}), seen({3: 250}), replace(FIRST, received_bytes=None)) is None
    assert received_bytes([], gains_of([COPY], seen({3: 250}), {})) == 250


def test_a_gain_names_the_broker_that_is_read_from_and_one_that_is_silent_now() -> None:
    new, own = ReplicaId(*COPY.partition, 3), ReplicaId(*ACROSS.partition, 1)
    assert gains_of([COPY], seen({}), {}) == ()  # nothing has been seen of it yet
    before = {each.replica: each for each in replica_statuses([COPY], seen({3: 100}))}
    assert gains_of([COPY], seen({3: 250}), before) == (Gain(new, 1, 150),)
    assert gains_of([COPY], seen({}), before) == (Gain(new, 1, None),)
    assert gains_of([ACROSS], seen({}, 30), {}) == (Gain(own, 1, 30),)


def test_a_rate_is_what_was_received_between_the_first_and_the_last_poll_of_a_minute() -> None:
    samples = [
        replace(FIRST, sampled_at=T0 + timedelta(seconds=at), received_bytes=received)
        for at, received in ((0, 0), (100, 5000), (130, 5300), (160, 6200))
    ]
    assert received_per_s(samples) == (6200 - 5000) / 60
    assert received_per_s(samples[:2]) is None
    assert received_per_s([replace(samples[1], received_bytes=None), *samples[2:]]) is None
