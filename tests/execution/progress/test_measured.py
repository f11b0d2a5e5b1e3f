"""Bytes of a whole plan, by what a poll has seen and what was recorded of moves that are done."""

from __future__ import annotations

from dataclasses import replace

from rehome.domain.kafka import BrokerError, ReplicaId, TopicPartition
from rehome.domain.run.ledger_view import LedgerView, MoveSums
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.progress.measured import measure
from rehome.execution.progress.progress import replica_statuses
from tests.execution.progress.one_copy import MOVE, SEEN, TP
from tests.ledger.small_plans import make_plan, move

SILENT = BrokerError(7, "REQUEST_TIMED_OUT", "no answer")
COPY = ReplicaId(*TP, 4)
PLAN = make_plan("p", MOVE, move("a", 0, (1,), (2,), 300), move("b", 0, (1,), (2,), 700))
VIEW = LedgerView(
    PlanState.RUNNING,
    {
        TP: MoveState.ADMITTED,
        TopicPartition("a", 0): MoveState.DONE,
        TopicPartition("b", 0): MoveState.PENDING,
    },
    done=MoveSums(1, 300, 300, 350, 50),
)


def test_bytes_come_from_what_is_on_disk() -> None:
    sample = measure(PLAN, VIEW, SEEN, replica_statuses([MOVE], SEEN))
    assert (sample.bytes_done, sample.bytes_total) == (350 + 500, 350 + 2000 + 700)
    assert (sample.grown_bytes, sample.shrunk_bytes) == (50 + 1000, 0)
    assert sample.bytes_total == PLAN.bytes_to_copy + 1050
    assert (sample.moves_done, sample.moves_total, sample.in_flight) == (1, 3, 1)


def test_moves_that_an_earlier_version_has_settled_count_as_planned() -> None:
    """How much has grown is then not known."""
    earlier = replace(VIEW, done=MoveSums(1, 300))
    sample = measure(PLAN, earlier, SEEN, replica_statuses([MOVE], SEEN))
    assert (sample.bytes_done, sample.bytes_total) == (300 + 500, 300 + 2000 + 700)
    assert (sample.grown_bytes, sample.shrunk_bytes) == (None, None)


def test_what_is_in_place_does_not_fall_while_the_source_is_silent() -> None:
    """Its size is not known then: what the copy has beyond the plan is still there."""
    before = {
        status.replica: replace(status, size_bytes=1500)
        for status in replica_statuses([MOVE], SEEN)
    }
    silent = replace(SEEN, sizes={}, missing=dict.fromkeys((1, 2, 4), SILENT))
    sample = measure(PLAN, VIEW, silent, replica_statuses([MOVE], silent, before))
    assert (sample.bytes_done, sample.bytes_total) == (350 + 1500, 350 + 1500 + 700)


def test_what_is_gone_with_its_topic_or_its_log_dir_is_not_in_place() -> None:
    before = {
        status.replica: replace(status, size_bytes=1500)
        for status in replica_statuses([MOVE], SEEN)
    }
    offline = replace(SEEN, sizes={r: size for r, size in SEEN.sizes.items() if r != COPY})
    deleted = replace(SEEN, topics_missing=frozenset({TP.topic}))
    for seen in (offline, deleted):
        sample = measure(PLAN, VIEW, seen, replica_statuses([MOVE], seen, before))
        assert sample.bytes_done == 350


def test_what_others_copy_between_log_dirs_is_no_part_of_a_new_replica() -> None:
    across = replace(SEEN, future_sizes={COPY: 200}, future_lags={COPY: 90})
    sample = measure(PLAN, VIEW, across, replica_statuses([MOVE], across))
    assert sample == measure(PLAN, VIEW, SEEN, replica_statuses([MOVE], SEEN))
