"""Room on the brokers' disks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from include.cluster.model import BrokerId
from include.cluster.snapshot import Snapshot


@dataclass(frozen=True)
class Disks:
    """Log dirs by broker and path.

    :param room: bytes that may still be written to a log dir that takes replicas; None where
        the broker does not say.
    :param usable: log dirs that are neither offline nor cordoned.
    :param capacity: total bytes per broker of the log dirs that are not offline; a broker that
        does not tell them all is left out.
    :param closed: brokers whose log dirs take nothing.
    """

    room: dict[tuple[BrokerId, str], int | None]
    usable: frozenset[tuple[BrokerId, str]]
    capacity: dict[BrokerId, int]
    closed: frozenset[BrokerId]

    @classmethod
    def of(cls, snapshot: Snapshot, min_free: float) -> Disks:
        """The disks of a snapshot, with that part of each log dir kept free."""
        rows = snapshot.log_dirs.to_pylist()
        usable = [row for row in rows if not row["offline"] and not row["cordoned"]]
        capacity: Counter[BrokerId] = Counter()
        for row in rows:
            if not row["offline"]:
                capacity[row["broker"]] += row["total_bytes"] or 0
        silent = {row["broker"] for row in rows if not row["offline"] and not _tells(row)}
        return cls(
            room={_place(row): _room(row, min_free) for row in usable},
            usable=frozenset(_place(row) for row in usable),
            capacity={broker: size for broker, size in capacity.items() if broker not in silent},
            closed=frozenset(
                {row["broker"] for row in rows} - {row["broker"] for row in usable},
            ),
        )

    def room_of_brokers(self) -> dict[BrokerId, int | None]:
        """Bytes that may still be written to each broker; None where one does not say."""
        room: dict[BrokerId, int | None] = dict.fromkeys(self.closed, 0)
        for (broker, _), here in self.room.items():
            known = room.get(broker, 0)
            room[broker] = None if known is None or here is None else known + here
        return room


def _place(row: dict[str, Any]) -> tuple[BrokerId, str]:
    return row["broker"], row["log_dir"]


def _tells(row: dict[str, Any]) -> bool:
    return all(row[name] is not None and row[name] >= 0 for name in ("total_bytes", "usable_bytes"))


def _room(row: dict[str, Any], min_free: float) -> int | None:
    if not _tells(row):
        return None
    return max(0, int(row["usable_bytes"]) - int(row["total_bytes"] * min_free))
