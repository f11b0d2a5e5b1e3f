"""What keeps a move from starting: a kind that code decides by, and a sentence for people."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from rehome.domain.kafka import BrokerError, BrokerId


class WaitKind(enum.StrEnum):
    """What a move waits for."""

    SLOT = "slot"  # of a broker, in one direction
    IN_FLIGHT_LIMIT = "in_flight_limit"  # as many partitions in flight as the policy allows
    LEADER = "leader"  # the partition has none
    WINDOW = "window"  # it would not end before the window does
    BROKER_ALIVE = "broker_alive"
    BROKER_READ = "broker_read"
    TOPIC_READ = "topic_read"
    DISK_ROOM = "disk_room"  # on any log dir of a broker
    LOG_DIR_ROOM = "log_dir_room"


@dataclass(frozen=True, slots=True)
class Wait:
    """One reason why moves do not start.

    :param broker: of kinds that are about one.
    :param name: the topic, or the log dir, of kinds that are about one.
    :param error: why a broker or a topic cannot be read.
    """

    kind: WaitKind
    broker: BrokerId | None = None
    name: str = ""
    error: BrokerError | None = None

    def __str__(self) -> str:
        match self.kind:
            case WaitKind.SLOT:
                return "no free slot"
            case WaitKind.IN_FLIGHT_LIMIT:
                return "as many partitions in flight as allowed"
            case WaitKind.LEADER:
                return "the partition has no leader"
            case WaitKind.WINDOW:
                return "would not end before the window does"
            case WaitKind.BROKER_ALIVE:
                return f"broker {self.broker} is not alive"
            case WaitKind.BROKER_READ:
                return f"broker {self.broker} cannot be read: {self.error}"
            case WaitKind.TOPIC_READ:
                return f"topic {self.name} cannot be read: {self.error}"
            case WaitKind.DISK_ROOM:
                return f"broker {self.broker} has too little free space on its disks"
            case WaitKind.LOG_DIR_ROOM:
                return f"broker {self.broker} has too little free space in {self.name}"


FOR_SLOT = Wait(WaitKind.SLOT)
FOR_IN_FLIGHT_LIMIT = Wait(WaitKind.IN_FLIGHT_LIMIT)
FOR_LEADER = Wait(WaitKind.LEADER)
FOR_WINDOW = Wait(WaitKind.WINDOW)
