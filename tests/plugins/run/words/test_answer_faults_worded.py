"""Why an answer approves nothing, in words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rehome.run.asking.answer_fault import AnswerFault, Fault
from rehome.run.words.answer_words import (
    asked_anew_text,
    fault_text,
    lapsed_approval_text,
    unanswered_text,
)


@pytest.mark.parametrize("kind", AnswerFault)
def test_each_fault_has_its_words_and_its_values(kind: AnswerFault) -> None:
    text = fault_text(Fault(kind, "20 MB/s", "It is refused"))
    assert text.endswith((".", "It is refused"))
    assert "{" not in text


def test_a_fault_says_what_it_is_about() -> None:
    assert fault_text(Fault(AnswerFault.NO_RATE, "soon")) == (
        "`soon` is no throttle: write 50 MB/s, or 50000000."
    )
    assert fault_text(Fault(AnswerFault.TO_BE_TRIED, "5 MB/s")) == "to be tried out with 5 MB/s."


def test_what_is_asked_again_says_why() -> None:
    text = asked_anew_text("p", "", "no.", sent_back=False)
    assert text.startswith("The answer of a person who is not known about p does not count: no. ")
    assert asked_anew_text("p", "ann", "to be tried", sent_back=True).startswith(
        "ann has sent p back: to be tried. Nothing is approved by it."
    )
    assert "the question of 2030-01-31 04:00:00 UTC has no" in unanswered_text(
        datetime(2030, 1, 31, 4, tzinfo=UTC)
    )
    assert (
        lapsed_approval_text("ann", "x")
        == "The approval by ann does not hold any more, so you are asked anew: x."
    )
