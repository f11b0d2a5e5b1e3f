"""How much brokers' disks may still take, from DescribeLogDirs. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rehome.domain.kafka import BrokerId, LogDir


@dataclass(frozen=True, slots=True)
class Disk:
    """A log dir that takes new replicas, and the volume below it. Bytes."""

    path: str
    total_bytes: int
    usable_bytes: int

    def headroom_bytes(self, min_free_fraction: float) -> int:
        """What may still be written if that part of the volume is to stay free."""
        return max(0, int(self.usable_bytes - min_free_fraction * self.total_bytes))


def open_disks(log_dirs: Iterable[LogDir]) -> dict[BrokerId, tuple[Disk, ...]]:
    """Log dirs that take new replicas, by broker.

    Brokers that do not report sizes (before 3.3) are left out.
    """
    disks: dict[BrokerId, tuple[Disk, ...]] = {}
    for log_dir in log_dirs:
        if log_dir.total_bytes is None or log_dir.usable_bytes is None:
            continue
        disks_so_far = disks.setdefault(log_dir.broker, ())
        if log_dir.error is None and not log_dir.cordoned:
            disk = Disk(log_dir.path, log_dir.total_bytes, log_dir.usable_bytes)
            disks[log_dir.broker] = (*disks_so_far, disk)
    return disks


def broker_room_bytes(disks: Iterable[Disk], min_free_fraction: float) -> int:
    """Bytes that copies may take on a broker. Log dirs of equal size and free bytes count once."""
    volumes = {(disk.total_bytes, disk.usable_bytes): disk for disk in disks}
    return sum(disk.headroom_bytes(min_free_fraction) for disk in volumes.values())
