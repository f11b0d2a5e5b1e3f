"""Time within one day: histories are rolled up day by day, and midnight would part a test's."""

from __future__ import annotations

from datetime import timedelta

from rehome.domain.clock import Clock, utc_now


def clock_of_one_day() -> Clock:
    """Time that passes as it does, from noon of yesterday on."""
    began = utc_now()
    noon = (began - timedelta(days=1)).replace(hour=12, minute=0, second=0, microsecond=0)
    return lambda: noon + (utc_now() - began)
