"""What is wrong with copies, their sizes and their time, in words."""

from __future__ import annotations

from collections.abc import Mapping

from rehome.domain.text import bytes_text, duration_text
from rehome.execution.admission.slots import Direction
from rehome.execution.dry_run.typed_finding import FoundKind as Kind
from rehome.execution.dry_run.typed_finding import Texts, TypedFinding

_DOES: Mapping[Direction, str] = {
    Direction.IN: "receive",
    Direction.OUT: "send",
    Direction.ACROSS: "copy between its log dirs",
}


def _inflow(finding: TypedFinding) -> str:
    return (
        f"the partitions it is to {_DOES[finding.direction]} at once grow by "
        f"{bytes_text(finding.rate_bytes_per_s)}/s, of {bytes_text(finding.delivered)}/s "
        "that the throttle delivers"
    )


COPY_TEXTS: Texts = {
    Kind.INFLOW_SLOWS: lambda finding: f"{_inflow(finding)}: more than half is lost on them",
    Kind.INFLOW_OUTPACES: lambda finding: f"{_inflow(finding)}: the copies would never end",
    Kind.PAST_WINDOW: "may take longer than the window has left: what does not fit goes on in "
    "the next one",
    Kind.FITS_NO_WINDOW: "takes longer to copy than the window has left, and is not started in it",
    Kind.GROWN: "has grown since the snapshot",
}
COPY_DETAILS: Texts = {
    Kind.PAST_WINDOW: lambda finding: (
        f"{finding.takes}, and the window has {duration_text(finding.left_s)} left"
    ),
    Kind.FITS_NO_WINDOW: lambda finding: (
        f"at least {duration_text(finding.least_s)}, and the window has "
        f"{duration_text(finding.left_s)} left"
    ),
    Kind.GROWN: lambda finding: (
        f"from {bytes_text(finding.before_bytes)} to {bytes_text(finding.size_bytes)}"
    ),
}
_RAISE = "Raise the throttle or lower max_moves_per_broker."
COPY_STEPS: Texts = {
    Kind.INFLOW_SLOWS: _RAISE,
    Kind.INFLOW_OUTPACES: _RAISE,
    Kind.PAST_WINDOW: "",
    Kind.FITS_NO_WINDOW: "Raise the throttle, give the cluster a longer window, or run the "
    "plan without a window.",
    Kind.GROWN: "Its copy takes longer than predicted; trigger a new run for a plan with the "
    "new size.",
}
