"""Copies share limits fairly."""

from __future__ import annotations

from typing import Any, cast

from world.kafka.flows import Pair, share


def copies(*limits: list[str]) -> list[Pair]:
    nothing = cast(Any, None)
    return [Pair(nothing, nothing, nothing, nothing, True, 0.0, limits=[*own]) for own in limits]


def test_what_one_copy_cannot_use_others_get() -> None:
    pairs = copies(["wide", "narrow"], ["wide"], ["wide"])
    share(pairs, {"wide": 100.0, "narrow": 10.0})
    assert [pair.rate for pair in pairs] == [10.0, 45.0, 45.0]


def test_a_limit_of_nothing_stops_its_copies_only() -> None:
    pairs = copies(["wide", "none"], ["wide"])
    share(pairs, {"wide": 100.0, "none": 0.0})
    assert [pair.rate for pair in pairs] == [0.0, 100.0]
