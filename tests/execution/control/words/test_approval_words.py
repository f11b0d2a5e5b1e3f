"""Why an approval does not hold: each reason in its words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rehome.execution.control.approval import Lapse
from rehome.execution.control.words.approval_words import lapsed_text, reason_of
from tests.execution.control.approved_terms import CHANGES, GIVEN, NOW, TERMS

ANEW = "Trigger a new run: what is to run is then put up for approval anew."


@pytest.mark.parametrize(("change", "lapse", "said"), CHANGES)
def test_what_differs_is_named_with_what_was_approved(
    change: dict[str, Any], lapse: Lapse, said: str
) -> None:
    what, next_step = lapsed_text("p1", GIVEN, replace(TERMS, **change), [lapse])
    assert what.startswith("The approval of plan p1 by ann (id 7) does not hold any more: ")
    assert said in what
    assert next_step == ANEW


@pytest.mark.parametrize(
    ("lapse", "said"),
    [
        (Lapse.EXPIRED, "it expired at 2030-01-01 03:00:00 UTC"),
        (Lapse.NEVER_GIVEN, "it was never given"),
        (Lapse.NO_PERSON, "a person has to approve it, and no person was asked"),
        (
            Lapse.BEFORE_UPGRADE,
            "it was given under an earlier version of Rehome, which did not record what the "
            "approver was shown",
        ),
    ],
)
def test_what_does_not_hold_by_itself_is_named(lapse: Lapse, said: str) -> None:
    assert reason_of(lapse, TERMS, TERMS, GIVEN.expires_at) == said


def test_every_lapse_has_its_words() -> None:
    for lapse in Lapse:
        assert reason_of(lapse, TERMS, TERMS, NOW) or lapse is Lapse.SETTINGS


def test_several_reasons_and_an_approval_that_is_none() -> None:
    parameters = replace(GIVEN, by="", by_person=False, by_id=None, question_id=None)
    what, _ = lapsed_text("p1", parameters, TERMS, [Lapse.NO_PERSON, Lapse.NEVER_GIVEN])
    assert "by the run's own parameters does not hold any more: a person has to approve" in what
    assert what.endswith("no person was asked; it was never given")
    assert lapsed_text("p1", None, TERMS, [Lapse.NEVER_GIVEN]) == (
        "The ledger does not say at which rate and until when plan p1 was approved",
        ANEW,
    )
