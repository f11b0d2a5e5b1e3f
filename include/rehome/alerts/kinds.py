"""What an alert can be about."""

from __future__ import annotations

import enum


class AlertKind(enum.StrEnum):
    """What an alert is about; the worst first. The catalog says of each what it means."""

    DATA_LOST = "data_lost"
    FAILED = "failed"
    ORPHANED = "orphaned"
    DAG_PAUSED = "dag_paused"
    OWED = "owed"
    WRONG_CLUSTER = "wrong_cluster"
    FAILED_MOVES = "failed_moves"
    NOT_CANCELLED = "not_cancelled"
    STALLED = "stalled"
    OUTPACED = "outpaced"
    HEALING_STOPPED = "healing_stopped"
    THROTTLE_RESTORED = "throttle_restored"
    THROTTLE_LOWERED = "throttle_lowered"
    SILENT_BROKERS = "silent_brokers"
    WINDOW_WILL_BE_MISSED = "window_will_be_missed"
    PAUSED_AT_WINDOW_END = "paused_at_window_end"
    HELD = "held"
    DISK_FORECAST = "disk_forecast"
    FINDING = "finding"
    FOREIGN_LEFTOVERS = "foreign_leftovers"
    CHANNEL_FAILED = "channel_failed"
    APPROVAL_WAITING = "approval_waiting"
    PAUSED = "paused"
    DONE = "done"
    SEVERAL = "several"


AlertKey = tuple[AlertKind, str]
"""A kind, and what it is about: a plan, a cluster, a finding."""


class Repeats(enum.StrEnum):
    """How often the same alert is sent while it lasts."""

    ONCE = "once"
    AGAIN = "again"  # every alert_again_s
    DAILY = "daily"
    ON_THE_PAGE = "on_the_page"  # it is shown as long as it lasts, and never sent
