"""What goes wrong at a poll or a step, and does not end it."""

from __future__ import annotations

from enum import StrEnum


class ErrorKind(StrEnum):
    """What can go wrong at a poll or a step, as the label ``kind`` of a metric."""

    REFUSED = "refused"
    CLUSTER_AWAY = "cluster_away"
    LEDGER_AWAY = "ledger_away"
    THROTTLE_UNREAD = "throttle_unread"
