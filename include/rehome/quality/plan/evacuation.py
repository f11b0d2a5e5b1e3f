"""Columns on evacuations: moves empty the log dirs of the request, and change nothing else."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

from rehome.domain.actions import Action
from rehome.domain.kafka import ANY_LOG_DIR, BrokerId, LogDirKey
from rehome.quality.facts.evacuated import evacuated_log_dirs
from rehome.quality.facts.gate_input import Checked

_BROKERS = pa.list_(pa.int32())


def evacuation_columns(checked: Checked) -> dict[str, pa.Array]:
    """Per move, lists of brokers, null if empty: that change although none of their log dirs is
    emptied; that keep a replica in an emptied log dir; that could put a copy into an emptied log
    dir; that lose a replica although another of their log dirs has space for it.
    """
    if checked.request.action is not Action.EVACUATE_LOG_DIRS:
        return {}
    gone, headroom = evacuated_log_dirs(checked), _headroom_left(checked)
    today = checked.moved.lies_in(np.arange(len(checked.moved.at)))
    columns = {name: list[list[BrokerId] | None]() for name in _NAMES}
    rows = (checked.moved.table.column(n).to_pylist() for n in ("current", "target"))
    named = checked.moved.table.column("target_log_dirs").to_pylist()
    for current, target, paths, lies, size in zip(
        *rows, named, today, checked.moved.size.tolist(), strict=True
    ):
        asked = dict(zip(target, paths or [ANY_LOG_DIR] * len(target), strict=False))
        inside = {broker for broker in current if (broker, lies.get(broker)) in gone}
        leaves = [broker for broker in current if broker not in asked]
        moved = [b for b, path in asked.items() if path not in (ANY_LOG_DIR, lies.get(b))]
        found = {
            "not_evacuated": [b for b in (*leaves, *moved) if b in current and b not in inside],
            "kept_inside": [b for b in inside if b in asked and b not in moved],
            "into_evacuated": [
                b
                for b, path in asked.items()
                if ((b, path) in gone and b in (*moved, *(set(asked) - set(current))))
                or (b not in current and path == ANY_LOG_DIR and _may_choose(b, gone, checked))
            ],
            "could_stay": [b for b in leaves if b in inside and headroom.get(b, -1) >= size],
        }
        for name, brokers in found.items():
            columns[name].append(sorted(brokers) or None)
    return {name: pa.array(values, _BROKERS) for name, values in columns.items()}


_NAMES = ("not_evacuated", "kept_inside", "into_evacuated", "could_stay")


def _may_choose(broker: BrokerId, gone: frozenset[LogDirKey], checked: Checked) -> bool:
    """Whether a broker could put a copy into an emptied log dir, because that takes replicas."""
    return any(place in gone for place in checked.disks.usable if place[0] == broker)


def _headroom_left(checked: Checked) -> dict[BrokerId, float]:
    """Headroom of the emptiest remaining log dir of each broker, after all copies that are sent
    there.
    """
    disks, gone = checked.disks, evacuated_log_dirs(checked)
    arriving: Counter[LogDirKey] = Counter()
    for item in checked.moved.named_log_dirs:
        place = item.broker, item.path
        arriving[disks.first.get(place, place)] += item.size_bytes
    left: dict[BrokerId, float] = {}
    for place, headroom in disks.headroom.items():
        if place not in gone:
            here = float("inf") if headroom is None else headroom - arriving[disks.first[place]]
            left[place[0]] = max(left.get(place[0], -1.0), here)
    return left
