"""What an operator asks for: the parameters of `reassign_partitions`, validated as a whole."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from include.cluster.model import BrokerId


class Action(enum.StrEnum):
    """What `reassign_partitions` can be asked to do."""

    REBALANCE = "rebalance"
    DRAIN = "drain"
    SET_REPLICATION_FACTOR = "set_replication_factor"
    REPAIR_RACKS = "repair_racks"
    BALANCE_LEADERS = "balance_leaders"
    REASSIGN = "reassign"
    MOVE_LOG_DIRS = "move_log_dirs"
    ROLLBACK = "rollback"


class OnWindowEnd(enum.StrEnum):
    """What happens to moves that a window's end finds in flight."""

    DRAIN = "drain"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class ReassignmentRequest:
    """A validated request. See design: "Params of `reassign_partitions`".

    :param brokers: ids the action is about (drain: to empty; rebalance: empty = all).
    :param topics: names or glob patterns; empty = all but internal topics.
    :param reassignment: Kafka's reassignment JSON, parsed, for ``reassign``.
    :param throttle_bytes_per_s: per broker; None = "auto".
    :param window_end: aware UTC time at which nothing may be in flight; None = no window.
    :param max_moves_per_broker: slots per broker and direction.
    :param tolerance: rebalance: allowed deviation from a broker's share of bytes (0.02 = 2 %).
    :param seed: breaks ties; same snapshot, request and seed give the same plan.
    """

    action: Action
    brokers: tuple[BrokerId, ...] = ()
    topics: tuple[str, ...] = ()
    replication_factor: int | None = None
    reassignment: Mapping[str, Any] | None = None
    plan_id: str | None = None
    throttle_bytes_per_s: int | None = None
    window_end: datetime | None = None
    on_window_end: OnWindowEnd = OnWindowEnd.DRAIN
    max_moves_per_broker: int = 4
    dry_run: bool = False
    approval: bool = False
    additional: bool = False
    tolerance: float = 0.02
    seed: int = 0
