"""Bytes of a plan in words."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from rehome.account.known import Fact, Known, NotKnown, Source, Unknown
from rehome.account.plan_bytes import Copying, PlanBytes
from rehome.account.words.figure_words import (
    WHY_UNKNOWN,
    bytes_sentence,
    in_place_sentence,
    left_sentence,
    received_text,
    total_text,
)

MB = 1_000_000
AT = datetime(2030, 1, 1, tzinfo=UTC)


def size(value: int) -> Fact[int]:
    return Known(value, AT, Source.POLL)


PLANNED = PlanBytes(
    86 * MB, 0, Known(Copying(70 * MB, 0, 0, 86 * MB), AT, Source.POLL), size(0), size(0), 0.5
)
CHANGED = replace(
    PLANNED,
    dropped=6 * MB,
    copying=Known(Copying(70 * MB, 11 * MB, 2 * MB, 89 * MB), AT, Source.POLL),
    received=size(75 * MB),
    taken_back=size(5 * MB),
)


def test_a_plan_as_planned_needs_no_words_on_its_total() -> None:
    assert total_text(PLANNED) == ""
    assert received_text(PLANNED) == ""
    assert bytes_sentence(PLANNED) == "70 MB of 86 MB are in place."
    assert left_sentence(PLANNED) == "16 MB are left to copy."


def test_what_has_changed_is_named() -> None:
    assert bytes_sentence(CHANGED) == (
        "70 MB of 89 MB are in place (86 MB planned, 11 MB grown since, 2 MB less than planned: "
        "topics have shrunk, or replicas were there already, 6 MB not copied: the moves have ended "
        "otherwise); "
        "75 MB received, 5 MB of it taken back."
    )


def test_what_is_not_known_is_said_to_be() -> None:
    for why in NotKnown:
        unknown = replace(CHANGED, copying=Unknown(why), received=Unknown(why))
        assert in_place_sentence(unknown).endswith(f"not known: {WHY_UNKNOWN[why]}.")
        assert left_sentence(unknown).endswith(f"not known: {WHY_UNKNOWN[why]}.")
        assert (total_text(unknown), received_text(unknown)) == ("", "")
