"""Room on disks for the copies, at every moment of a plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from include.cluster.model import BrokerId
from include.execution.disks import Disk, broker_room_bytes, open_disks
from include.execution.findings import Finding, Severity
from include.execution.reading import Reading
from include.planning.explanation import bytes_text
from include.planning.plan import ANY_LOG_DIR, Plan


def disk_findings(plan: Plan, now: Reading, min_free_fraction: float) -> Iterator[Finding]:
    """Brokers, and log dirs that the plan names, that cannot hold what comes.

    The worst moment is assumed, whatever the order of moves and the number of slots: every
    incoming copy is complete and no outgoing one is deleted yet. Log dirs that look like one
    volume (same size, same free bytes) each report all of it; counting it once is a warning,
    for two disks may be alike.
    """
    incoming, named = _incoming(plan, now)
    by_broker = open_disks(now.log_dirs.value)
    for broker, needed in sorted(named.items()):
        yield from _named_dirs(broker, needed, by_broker.get(broker, ()), min_free_fraction)
    for broker, sizes in sorted(incoming.items()):
        if by_broker.get(broker):  # the check of brokers tells of those without an open log dir
            yield from _whole_broker(broker, sizes, by_broker[broker], min_free_fraction)


def _incoming(
    plan: Plan, now: Reading
) -> tuple[dict[BrokerId, list[int]], dict[BrokerId, dict[str, int]]]:
    """Sizes of the copies each broker receives; and bytes into each log dir named for one."""
    incoming: dict[BrokerId, list[int]] = {}
    named: dict[BrokerId, dict[str, int]] = {}
    for move in plan.moves:
        wanted = move.target_log_dirs or (ANY_LOG_DIR,) * len(move.target)
        before = dict(zip(move.current, move.current_log_dirs, strict=False))
        for broker, path in zip(move.target, wanted, strict=True):
            moves_dir = path not in (ANY_LOG_DIR, before.get(broker))
            if broker in move.adding or moves_dir:
                incoming.setdefault(broker, []).append(now.size_bytes(move))
            if path != ANY_LOG_DIR and (broker in move.adding or moves_dir):
                dirs = named.setdefault(broker, {})
                dirs[path] = dirs.get(path, 0) + now.size_bytes(move)
    return incoming, named


def _named_dirs(
    broker: BrokerId, needed: dict[str, int], disks: Sequence[Disk], min_free: float
) -> Iterator[Finding]:
    for disk in disks:
        room = disk.room_bytes(min_free)
        bytes_needed = needed.get(disk.path, 0)
        if bytes_needed > room:
            subject = f"broker {broker}, {disk.path}"
            yield _too_little(Severity.ERROR, subject, bytes_needed, room)


def _whole_broker(
    broker: BrokerId, sizes: Sequence[int], disks: Sequence[Disk], min_free: float
) -> Iterator[Finding]:
    rooms = [disk.room_bytes(min_free) for disk in disks]
    room_once = broker_room_bytes(disks, min_free)
    needed, subject = sum(sizes), f"broker {broker}"
    if needed > sum(rooms):
        yield _too_little(Severity.ERROR, subject, needed, sum(rooms))
    elif needed > room_once:
        where = "if its log dirs share a volume"
        yield _too_little(Severity.WARNING, subject, needed, room_once, where)
    elif max(sizes) > min(rooms):
        where = "in the fullest log dir, which the broker may choose"
        yield _too_little(Severity.WARNING, subject, max(sizes), min(rooms), where)


def _too_little(
    severity: Severity, subject: str, needed: int, room: int, where: str = ""
) -> Finding:
    there = f" {where}" if where else ""
    return Finding(
        severity,
        "disk",
        subject,
        f"{bytes_text(needed)} would come before anything leaves, {bytes_text(room)} may be "
        f"used{there}",
        "Free disk, or move less at a time.",
    )
