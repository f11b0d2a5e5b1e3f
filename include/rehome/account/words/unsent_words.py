"""An alert that has not reached every channel, in words."""

from __future__ import annotations

from collections.abc import Sequence

from rehome.domain.text import join_names

UNSENT_STEP = (
    "Check the channel's connection and its entry in the setting alert_channels. Rehome sends the "
    "alert again by itself."
)


def unsent_text(alert: str, channels: Sequence[str], why: str) -> str:
    """:param why: in the words of the first channel that has failed."""
    return f"The alert {alert} could not be sent through {join_names(list(channels))}: {why}"
