"""Columns on replacements: each replica of a replaced broker goes to its replacement, and others
stay.
"""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from rehome.domain.actions import Action
from rehome.domain.kafka import BrokerId
from rehome.quality.facts.gate_input import Checked
from rehome.quality.facts.unmet_targets import Obstacles
from rehome.quality.facts.unplannable import at_caps

_BROKERS = pa.list_(pa.int32())


def replacement_columns(checked: Checked) -> dict[str, pa.Array]:
    """Per move, lists of brokers, null if empty: that got a replica instead of a replacement which
    could take it, or which is not reported as unable; and that change without need.
    """
    if checked.request.action is not Action.REPLACE:
        return {}
    pairs, able = checked.request.replacements, _Able(checked)
    excuses = Obstacles(checked.plan.summary.infeasible).partitions
    dead = {*checked.brokers[~checked.live].tolist()}
    not_to_replacement: list[list[BrokerId] | None] = []
    changed_unasked: list[list[BrokerId] | None] = []
    rows = (checked.moved.table.column(name).to_pylist() for name in ("current", "target"))
    for row, (partition, current, target) in enumerate(zip(checked.planned, *rows, strict=True)):
        places = list(zip(current, target, strict=False))
        excuse = str(partition) in excuses
        wrong = [
            new
            for old, new in places
            if old in pairs
            and new != pairs[old]
            and not (excuse and able.cannot(row, old, pairs[old], current))
        ]
        moved = [o for o, new in places if o not in pairs and o != new and o not in dead]
        not_to_replacement.append(wrong or None)
        changed_unasked.append(moved or None)
    return {
        "astray": pa.array(not_to_replacement, _BROKERS),
        "disturbed": pa.array(changed_unasked, _BROKERS),
    }


class _Able:
    """Which replacements could take which replicas, by simple checks."""

    def __init__(self, checked: Checked) -> None:
        self._size = checked.moved.size
        self._racks = dict(zip(checked.brokers.tolist(), checked.rack_paths, strict=True))
        if checked.request.ignore_racks:
            self._racks = dict.fromkeys(self._racks, ())
        adding = checked.moved.adding
        arriving: Counter[BrokerId] = Counter()
        for broker, size in zip(adding.values, checked.moved.size[adding.row], strict=True):
            arriving[int(broker)] += int(size)
        self._checked, self._full = checked, at_caps(checked)
        self._headroom: dict[BrokerId, float] = {}
        for (broker, _), headroom in checked.disks.headroom.items():
            here = float("inf") if headroom is None else float(headroom) - arriving[broker]
            self._headroom[broker] = max(self._headroom.get(broker, float("-inf")), here)

    def cannot(self, row: int, old: BrokerId, new: BrokerId, current: list[BrokerId]) -> bool:
        """Whether a replica may go elsewhere: the replacement has one already, is in another rack,
        has no log dir with space for it after all other copies, or may not have it by a cap or its
        set.
        """
        at, allowed_brokers = int(self._checked.moved.at[row]), self._checked.allowed_brokers
        may = (
            self._checked.brokers[allowed_brokers.may[allowed_brokers.number[at]]].tolist()
            if at >= 0
            else [new]
        )
        if new not in may or new in self._full:
            return True
        full = self._headroom.get(new, float("inf")) < float(self._size[row])
        return new in current or self._racks[old] != self._racks[new] or full
