"""Presets fill in what was left at its default, and nothing else."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from rehome.domain.actions import Action
from rehome.domain.request.parameters import ReassignmentParams
from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.presets import PRESETS, Filled, fill_in
from rehome.domain.request.request import Preset, request_to_params
from rehome.errors import InvalidRequestError

CLOSES = datetime(2030, 1, 2, 5, tzinfo=UTC)
NOW = datetime(2030, 1, 1, 22, tzinfo=UTC)
DEFAULTS = {
    "action": None,
    "throttle": "auto",
    "max_moves_per_broker": 4,
    "approval": False,
    "dry_run": False,
    "tolerance": 0.02,
    "window_end": None,
}


def fill(**given: Any) -> Filled:
    return fill_in({**DEFAULTS, **given}, DEFAULTS, lambda: CLOSES)


def test_a_preset_fills_what_was_left_alone_and_keeps_what_was_chosen() -> None:
    found = fill(preset="drain_gently", brokers=[3], max_moves_per_broker=1)
    request = parse_request(found.params, now=NOW)
    assert request.action is Action.DRAIN
    assert request.throttle_bytes_per_s == 20_000_000
    assert (request.max_moves_per_broker, request.approval) == (1, True)
    assert request.preset is Preset.DRAIN_GENTLY
    assert found.texts == (
        "Preset drain_gently sets action=drain, throttle=20000000, approval=True. "
        "It leaves max_moves_per_broker=1."
    )


def test_tonight_ends_when_the_window_closes_unless_another_time_was_given() -> None:
    assert parse_request(fill(preset="rebalance_tonight").params, now=NOW).window_end == CLOSES
    sooner = fill(preset="rebalance_tonight", window_end="2030-01-02T03:00:00Z")
    assert parse_request(sooner.params, now=NOW).window_end == CLOSES.replace(hour=3)


def test_without_a_preset_nothing_is_filled_in() -> None:
    for given in ({}, {"preset": ""}, {"preset": "none"}):
        found = fill(**given)
        assert not found.by_preset
        assert found.texts == ""


def test_a_preset_that_there_is_not_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="preset='fast' is not one of none, check_only"):
        parse_request(fill(preset="fast").params)


def test_a_request_that_was_filled_in_is_read_back_as_it_was() -> None:
    """Who carries a checked plan out has taken dry_run back: it is not set once more."""
    request = parse_request(fill(preset="check_only").params)
    written = json.loads(json.dumps(request_to_params(request)))
    assert written["preset"] == "check_only"
    assert parse_request(written) == request
    assert not parse_request(written | {"dry_run": False}).dry_run


@pytest.mark.parametrize("preset", list(PRESETS), ids=str)
def test_every_preset_sets_parameters_that_there_are(preset: Preset) -> None:
    assert set(PRESETS[preset].values) <= set(ReassignmentParams.model_fields)
    brokers = [1] if preset in (Preset.DRAIN_GENTLY, Preset.EXPAND) else []
    action = {"action": "rebalance"} if preset is Preset.NONE else {}
    parse_request(fill(preset=preset.value, brokers=brokers, **action).params, now=NOW)


def test_there_is_no_preset_without_contents() -> None:
    assert set(PRESETS) == set(Preset)
