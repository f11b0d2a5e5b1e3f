"""What a plan weakens, counted without the planner's code: for the statement in its summary."""

from __future__ import annotations

import numpy as np

from rehome.quality.facts.gate_input import Checked
from rehome.quality.facts.rack_spread import places
from rehome.quality.facts.ragged_lists import Ragged


def weakened_by_level(checked: Checked) -> dict[int, int]:
    """Level of the racks, 0 = replicas → partitions that end in fewer domains than they had.

    Levels without any are left out; so is, of racks, a broker that is dead or has none.
    """
    moved = checked.moved
    held = [
        (lists, places(checked.brokers, lists.values)) for lists in (moved.current, moved.target)
    ]
    fewer = moved.target.distinct_lengths < moved.current.distinct_lengths
    found = {0: int(fewer.sum())}
    for level in range(1, checked.rack_levels + 1):
        named = [tuple([*path, *[""] * level][:level]) for path in checked.rack_paths]
        numbers = {name: number for number, name in enumerate(sorted(set(named)))}
        racked = checked.live & np.array([bool(path) for path in checked.rack_paths], bool)
        node = np.array([*(numbers[name] for name in named), 0], np.int64)

        known = np.append(racked, False)  # -1: a broker that there is not
        before, after = (Ragged(node[at], lists.offsets).where(known[at]) for lists, at in held)
        found[level] = int((after.distinct_lengths < before.distinct_lengths).sum())
    return {level: count for level, count in found.items() if count}
