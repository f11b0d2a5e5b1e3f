"""Racks and data centres of which no broker is alive, or too many brokers: what heals itself waits
for them. Pure.

An outage of a rack brings its brokers back with their data. Healed by itself, all that they hold
would be copied, into fewer racks than before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from rehome.domain.kafka import BrokerId
from rehome.domain.text import count_text

Path = tuple[str, ...]
MOST_DEAD = 0.4
"""While a larger part of the brokers is not alive, a network has failed rather than brokers."""


def domains_away(paths: Mapping[BrokerId, Path | None], live: Collection[BrokerId]) -> list[str]:
    """What is away as a whole, as people name it: ``rack /dc0/r1``, or ``5 of 9 brokers``. [] =
    nothing is.

    A domain is a rack at any level of the rack paths. One that holds a single broker is one only
    where its level has others that hold several: else the level says no more than the brokers do.
    Of those that are away together, the largest is named.

    :param paths: of each broker that holds replicas, or is alive, from the root down; () = it has
        no rack, None = not known. Kafka tells no rack of a dead broker, so that of such a one it is
        taken for one that may be the whole of its rack.
    """
    domains = _racks(paths, live) if any(paths.get(broker) for broker in live) else []
    dead = paths.keys() - set(live)
    if not domains and len(dead) > MOST_DEAD * len(paths):
        domains.append(f"{len(dead)} of {count_text(len(paths), 'broker')}")
    return domains


def _racks(paths: Mapping[BrokerId, Path | None], live: Collection[BrokerId]) -> list[str]:
    away = set(_away(paths, live))
    racks = (f"rack /{'/'.join(node)}" for node in sorted(away) if node[:-1] not in away)
    unknown = sorted(broker for broker in paths.keys() - set(live) if paths[broker] is None)
    return [*racks, *(f"the rack of broker {broker}, which is not known" for broker in unknown)]


def _away(paths: Mapping[BrokerId, Path | None], live: Collection[BrokerId]) -> Iterator[Path]:
    """Every node of the rack tree without a live broker."""
    depth = max((len(path or ()) for path in paths.values()), default=0)
    for level in range(1, depth + 1):
        nodes: dict[Path, list[BrokerId]] = {}
        for broker, path in paths.items():
            if path and len(path) >= level:
                nodes.setdefault(path[:level], []).append(broker)
        if max(map(len, nodes.values())) < 2:
            continue
        yield from (node for node, brokers in nodes.items() if not set(brokers) & set(live))
