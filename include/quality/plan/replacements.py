"""Whether each replica of a replaced broker goes to its replacement, and the others stay."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from include.domain.kafka import BrokerId
from include.domain.request.request import Action
from include.quality.facts.subject import Checked
from include.quality.facts.unmet_targets import Obstacles

_BROKERS = pa.list_(pa.int32())


def replaced_as_asked(checked: Checked) -> dict[str, pa.Array]:
    """Per move: brokers that take the place of a replacement that could have it, or that is not
    named as unable; and brokers that change though nothing asks them to. Null where there are none.
    """
    if checked.request.action is not Action.REPLACE:
        return {}
    pairs, able = checked.request.replacements, _Able(checked)
    named = Obstacles(checked.plan.summary.infeasible).partitions
    dead = {*checked.brokers[~checked.live].tolist()}
    astray: list[list[BrokerId] | None] = []
    disturbed: list[list[BrokerId] | None] = []
    rows = (checked.moved.table.column(name).to_pylist() for name in ("current", "target"))
    for row, (partition, current, target) in enumerate(zip(checked.planned, *rows, strict=True)):
        places = list(zip(current, target, strict=False))
        excuse = str(partition) in named
        wrong = [
            new
            for old, new in places
            if old in pairs
            and new != pairs[old]
            and not (excuse and able.cannot(row, old, pairs[old], current))
        ]
        moved = [o for o, new in places if o not in pairs and o != new and o not in dead]
        astray.append(wrong or None)
        disturbed.append(moved or None)
    return {
        "astray": pa.array(astray, _BROKERS),
        "disturbed": pa.array(disturbed, _BROKERS),
    }


class _Able:
    """Which replacements could take which replicas, as far as that is plain to see."""

    def __init__(self, checked: Checked) -> None:
        self._size = checked.moved.size
        self._racks = dict(zip(checked.brokers.tolist(), checked.rack_paths, strict=True))
        if checked.request.ignore_racks:
            self._racks = dict.fromkeys(self._racks, ())
        adding = checked.moved.adding
        arriving: Counter[BrokerId] = Counter()
        for broker, size in zip(adding.values, checked.moved.size[adding.row], strict=True):
            arriving[int(broker)] += int(size)
        self._room: dict[BrokerId, float] = {}
        for (broker, _), room in checked.disks.room.items():
            here = float("inf") if room is None else float(room) - arriving[broker]
            self._room[broker] = max(self._room.get(broker, float("-inf")), here)

    def cannot(self, row: int, old: BrokerId, new: BrokerId, current: list[BrokerId]) -> bool:
        """Whether a replica may go elsewhere: the replacement has one, is in another rack, or has
        no log dir with room for it beside all that comes.
        """
        full = self._room.get(new, float("inf")) < float(self._size[row])
        return new in current or self._racks[old] != self._racks[new] or full
