"""Causes of moves are codes: stored as such, and worded where a person reads them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.causes.cause_columns import CAUSE_LIST, cause_column_of, causes_of
from rehome.domain.plan.causes.cause_text import why_text
from rehome.domain.plan.causes.move_cause import CauseCode, HeldLoad, MoveCause
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.plan.move_table import moves_table
from rehome.domain.resources import Resource
from rehome.warehouse import PlanDirectory

FULL = HeldLoad(Resource.BYTES, 4e9, 2e9)
EMPTY = HeldLoad(Resource.BYTES_IN, 0, 5e6)
brokers = st.none() | st.integers(0, 2**31 - 1)
amounts = st.builds(HeldLoad, st.sampled_from(Resource), st.floats(0, 1e18), st.floats(0, 1e18))
single = st.builds(
    MoveCause,
    *(st.sampled_from(CauseCode), brokers, brokers, st.text(), st.text()),
    *(st.none() | amounts, st.none() | amounts),
)


def moved(*causes: MoveCause, reason: MoveReason = MoveReason.BALANCE) -> Move:
    return Move(TopicPartition("t", 0), (1, 2), (3, 2), 10, reason, causes, in_sync=1)


@pytest.mark.slow
@given(st.lists(st.lists(single, max_size=3).map(tuple), max_size=5))
def test_causes_come_back_from_their_column_as_they_were(
    made: list[tuple[MoveCause, ...]],
) -> None:
    column = cause_column_of(made)
    assert column.type == CAUSE_LIST
    assert causes_of(column) == made
    assert causes_of(pa.chunked_array([column[:1], column[1:]], CAUSE_LIST)) == made
    assert causes_of(column[1:]) == made[1:], "a slice of a column"


@pytest.mark.parametrize("code", CauseCode)
def test_each_code_has_a_sentence(code: CauseCode) -> None:
    cause = MoveCause(code, 1, 3, "/a", "/b", FULL, EMPTY)
    text = why_text(moved(cause))
    assert text[0] in "/B" or text[0].isupper()
    assert text.endswith(".") or code is CauseCode.STORED_SENTENCE


@pytest.mark.parametrize(
    ("causes", "text"),
    [
        (
            (MoveCause(CauseCode.OVER_SHARE, 1, 3, held=FULL, takes_held=EMPTY),),
            "Broker 1 held 4 GB of a share of 2 GB; broker 3, which held 0 B/s taken in of a "
            "share of 5 MB/s, takes its place.",
        ),
        (
            (MoveCause(CauseCode.UNDER_SHARE, 1, 3, takes_held=EMPTY),),
            "Broker 3, which held 0 B/s taken in of a share of 5 MB/s, takes the place of broker "
            "1, which can spare it.",
        ),
        (
            (
                MoveCause(
                    *(CauseCode.TOPIC_SPREAD, 1, 3, "", ""),
                    *(HeldLoad(Resource.REPLICAS, 6), HeldLoad(Resource.REPLICAS, 1)),
                ),
                MoveCause(CauseCode.RACKS_OF_MOVED, 2, 4),
            ),
            "Broker 1 held 6 replicas of t and broker 3 1: it takes one over; broker 4 takes the "
            "place of broker 2 for the racks of this partition.",
        ),
        (
            (MoveCause(CauseCode.NOT_LIVE, 2), MoveCause(CauseCode.DRAINED, 1)),
            "Broker 1 is drained, and broker 2 not live; broker 3, the least loaded that the "
            "racks allow, takes its place.",
        ),
        (
            (MoveCause(CauseCode.NOT_LIVE, 2), MoveCause(CauseCode.LOG_DIR_FAILED, 1)),
            "Broker 2 is not live and a log dir of broker 1 has failed, 1 of its replicas in "
            "sync; broker 3, the least loaded that the racks allow, takes its place.",
        ),
    ],
)
def test_a_sentence_says_what_both_brokers_held(causes: tuple[MoveCause, ...], text: str) -> None:
    assert why_text(moved(*causes)) == text


def test_a_stored_plan_with_sentences_is_read(tmp_path: Path) -> None:
    now = moves_table([moved(MoveCause(CauseCode.DRAINED, 1)), moved()])
    at = now.column_names.index("causes")
    sentences = pa.array(["Broker 1 is drained.", " "])
    pq.write_table(now.set_column(at, "why", sentences), tmp_path / "moves.parquet")
    first, second = PlanDirectory(str(tmp_path)).moves()
    assert (why_text(first), why_text(second)) == ("Broker 1 is drained.", "")
    (again, _) = causes_of(moves_table([first, second]).column("causes"))
    assert again == first.causes, "written again as it was read"
