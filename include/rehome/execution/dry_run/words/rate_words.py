"""Why an automatic rate is what it is, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rehome.domain.text import bytes_text
from rehome.execution.dry_run.rates.auto_rate import RateCause, RateWhy


def rate_cause_text(cause: RateCause) -> str:
    """As the ledger keeps it, and dry runs and logs show it."""
    return _CAUSES[cause.why](cause)


def _spare(cause: RateCause) -> str:
    assert cause.tightest is not None
    spare, whole = bytes_text(cause.spare_bytes_per_s), bytes_text(cause.capacity_bytes_per_s)
    side = cause.tightest.direction.value
    return f"broker {cause.tightest.broker} can spare {spare}/s ({side}) of {whole}/s"


_CAUSES: Mapping[RateWhy, Callable[[RateCause], str]] = {
    RateWhy.NOTHING_COPIED: lambda _: "nothing is copied",
    RateWhy.TRAFFIC_NOT_KNOWN: lambda _: "the traffic is not known yet: the setting",
    RateWhy.NO_DEADLINE: lambda cause: f"{_spare(cause)}; half of that, for there is no deadline",
    RateWhy.WINDOW: lambda cause: (
        f"{_spare(cause)}; the window needs {bytes_text(cause.needed_bytes_per_s)}/s"
    ),
}
