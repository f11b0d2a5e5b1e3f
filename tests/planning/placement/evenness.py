"""An independent, slow idea of "spread as evenly as the rack tree allows", to check against."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache

Path = tuple[str, ...]


@cache
def least_sum_of_squares(capacities: tuple[int, ...], replicas: int) -> int | None:
    """Of all ways to hand replicas to children, the evenest one's sum of squares."""
    ways = itertools.product(*(range(room + 1) for room in capacities))
    sums = [sum(n * n for n in way) for way in ways if sum(way) == replicas]
    return min(sums, default=None)


def is_even(replicas: Collection[int], paths: Mapping[int, Path], hosts: Collection[int]) -> bool:
    """Whether distinct hosts are as evenly spread as they can be, at every node from the root."""
    if len(set(replicas)) != len(replicas) or not set(replicas) <= set(hosts):
        return False
    depth = max((len(path) for path in paths.values()), default=0)
    full = {b: (*path, *[""] * (depth - len(path)), str(b)) for b, path in paths.items()}
    return all(
        _node_is_even([full[b] for b in replicas], [full[b] for b in hosts], prefix)
        for level in range(depth + 1)
        for prefix in {full[b][:level] for b in replicas}
    )


def _node_is_even(replicas: Sequence[Path], hosts: Sequence[Path], prefix: Path) -> bool:
    level = len(prefix)
    children = sorted({path[level] for path in hosts if path[:level] == prefix})
    room = tuple(_below(hosts, (*prefix, child)) for child in children)
    held = [_below(replicas, (*prefix, child)) for child in children]
    return sum(n * n for n in held) == least_sum_of_squares(room, sum(held))


def _below(paths: Iterable[Path], prefix: Path) -> int:
    return sum(path[: len(prefix)] == prefix for path in paths)


def even_sets(paths: Mapping[int, Path], hosts: Collection[int], replicas: int) -> list[set[int]]:
    """Every even replica set of this size."""
    return [
        set(chosen)
        for chosen in itertools.combinations(sorted(hosts), replicas)
        if is_even(chosen, paths, hosts)
    ]
