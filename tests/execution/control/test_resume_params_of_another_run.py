"""Parameters of a plan as another run takes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rehome.execution.control.resume import in_time

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_a_preset_that_has_filled_parameters_in_is_not_handed_on() -> None:
    """Else the run that carries a checked plan out would be a dry run once more."""
    later = (NOW + timedelta(hours=1)).isoformat()
    params = {"preset": "check_only", "dry_run": True, "window_end": later}
    assert in_time(params, NOW) == {"dry_run": True, "window_end": later}


def test_a_window_that_has_closed_is_not_handed_on() -> None:
    params = {"preset": "rebalance_tonight", "window_end": NOW.isoformat(), "tolerance": 0.05}
    assert in_time(params, NOW) == {"tolerance": 0.05}
