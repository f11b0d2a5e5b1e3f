"""What is wrong with copies, their sizes and their time, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rehome.domain.run.findings import Finding, FoundKind
from rehome.domain.text import bytes_text, duration_text
from rehome.execution.admission.slots import Direction
from rehome.execution.dry_run.inflow import CopyFound, CopyKind

_DOES: Mapping[Direction, str] = {
    Direction.IN: "receive",
    Direction.OUT: "send",
    Direction.ACROSS: "copy between its log dirs",
}


def copy_finding(found: CopyFound) -> Finding:
    """What was found of copies, as people read it."""
    detail = _DETAILS[found.kind](found) if found.kind in _DETAILS else ""
    return found.said(_TEXTS[found.kind](found), _STEPS[found.kind], detail)


def _inflow(found: CopyFound) -> str:
    return (
        f"the partitions it is to {_DOES[found.direction]} at once grow by "
        f"{bytes_text(found.grows_bytes_per_s)}/s, of {bytes_text(found.delivered_bytes_per_s)}/s "
        "that the throttle delivers"
    )


_TEXTS: Mapping[FoundKind, Callable[[CopyFound], str]] = {
    CopyKind.SLOWED: lambda found: f"{_inflow(found)}: more than half is lost on them",
    CopyKind.OUTGROWN: lambda found: f"{_inflow(found)}: the copies would never end",
    CopyKind.PAST_WINDOW: lambda _: (
        "may take longer than the window has left: what does not fit goes on in the next one"
    ),
    CopyKind.FITS_NO_WINDOW: lambda _: (
        "takes longer to copy than the window has left, and is not started in it"
    ),
    CopyKind.GROWN: lambda _: "has grown since the snapshot",
}
_DETAILS: Mapping[FoundKind, Callable[[CopyFound], str]] = {
    CopyKind.PAST_WINDOW: lambda found: (
        f"{found.predicted}, and the window has {duration_text(found.left_s)} left"
    ),
    CopyKind.FITS_NO_WINDOW: lambda found: (
        f"at least {duration_text(found.least_s)}, and the window has "
        f"{duration_text(found.left_s)} left"
    ),
    CopyKind.GROWN: lambda found: (
        f"from {bytes_text(found.was_bytes)} to {bytes_text(found.now_bytes)}"
    ),
}
_RAISE = "Raise the throttle or lower max_moves_per_broker."
_STEPS: Mapping[FoundKind, str] = {
    CopyKind.SLOWED: _RAISE,
    CopyKind.OUTGROWN: _RAISE,
    CopyKind.PAST_WINDOW: "",
    CopyKind.FITS_NO_WINDOW: "Raise the throttle, give the cluster a longer window, or run the "
    "plan without a window.",
    CopyKind.GROWN: "Its copy takes longer than predicted; trigger a new run for a plan with the "
    "new size.",
}
