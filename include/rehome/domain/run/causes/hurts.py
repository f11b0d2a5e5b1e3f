"""What keeps a plan that runs from going on as it should, as its newest poll has found it."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from rehome.domain.kafka import BrokerId

PARTITIONS_NAMED = 5


class HurtKind(enum.StrEnum):
    """What hurts, in the order of what to do about it."""

    NOT_POLLED = "not_polled"
    """No poll has read the cluster of late: what else hurts is as it was then."""
    DEAD_BROKERS = "dead_brokers"
    """Brokers that its moves need are not alive."""
    SILENT_BROKERS = "silent_brokers"
    """Brokers are alive, and have not answered."""
    NOT_CANCELLED = "not_cancelled"
    """Moves in flight could not be cancelled."""
    NOT_THROTTLED = "not_throttled"
    """What throttles moves in flight is gone, or was changed by another client."""
    THROTTLES_UNREAD = "throttles_unread"
    """Whether moves in flight are throttled could not be read."""
    TAKEN_OVER = "taken_over"
    """Another client has reassigned partitions of the plan otherwise."""
    FOREIGN = "foreign"
    """Another client reassigns other partitions of the cluster."""
    WAITS_FOR_ROOM = "waits_for_room"
    """Moves wait for free space on disks."""
    WAITS_FOR_LEADER = "waits_for_leader"
    """Moves wait, for their partitions have no leader."""
    WAITS_UNREAD = "waits_unread"
    """Moves wait, for a broker or a topic cannot be read."""
    WAITS_FOR_WINDOW = "waits_for_window"
    """Moves wait, for they would not end before the window does."""
    OUTPACED = "outpaced"
    """Producers write more to what is copied than the throttle lets through."""
    ALERT = "alert"
    """An alert is open that none of the others is about."""


@dataclass(frozen=True, slots=True)
class Hurt:
    """One thing that hurts.

    :param moves: of the plan that it concerns; 0 = not known, or none.
    :param partitions: some that it is about; ``more``: how many others.
    :param why: a broker's own words; "" = none.
    :param holds: nothing of the plan starts as long as it lasts.
    :param hangs: it does not end by itself.
    :param since: when it was first found; None = at this poll.
    :param known_at: when it was last found, where no poll has come since; None = of late.
    :param alert: the kind of the alert, of ``ALERT``.
    """

    kind: HurtKind
    brokers: tuple[BrokerId, ...] = ()
    moves: int = 0
    partitions: tuple[str, ...] = ()
    more: int = 0
    why: str = ""
    holds: bool = False
    hangs: bool = False
    since: datetime | None = None
    alert: str = ""
    known_at: datetime | None = None

    @property
    def place(self) -> int:
        """In the order of what to do about it."""
        return list(HurtKind).index(self.kind)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types."""
        since = None if self.since is None else self.since.isoformat()
        content = {**asdict(self), "kind": self.kind.value, "since": since}
        del content["known_at"]  # by the account, when it is read
        return content

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Hurt:
        """The inverse of :meth:`to_json`."""
        since = content["since"]
        parsed = {
            **content,
            "kind": HurtKind(content["kind"]),
            "brokers": tuple(content["brokers"]),
            "partitions": tuple(content["partitions"]),
            "since": None if since is None else datetime.fromisoformat(since),
        }
        return cls(**parsed)


def some(partitions: Iterable[object]) -> tuple[tuple[str, ...], int]:
    """The first of these partitions by name, and how many others there are."""
    names = sorted(map(str, partitions))
    return tuple(names[:PARTITIONS_NAMED]), max(0, len(names) - PARTITIONS_NAMED)


def lasting(hurts: Iterable[Hurt], before: Iterable[Hurt], at: datetime) -> tuple[Hurt, ...]:
    """What a poll has found, by what to do about it: each since when it was first found.

    :param before: what the poll before had found.
    """
    since = {(each.kind, each.alert): each.since for each in before}
    dated = (replace(each, since=since.get((each.kind, each.alert)) or at) for each in hurts)
    return tuple(sorted(dated, key=lambda each: each.place))
