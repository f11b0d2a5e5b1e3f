"""Caps, broker sets and targets of a cluster, as they count for one plan; and how they change.

They may be changed after a plan was made, and before it is approved or carried out.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from rehome.domain.request.limits import (
    BrokerCaps,
    BrokerSet,
    broker_sets_to_json,
    caps_to_json,
    read_broker_sets,
    read_caps,
)
from rehome.domain.request.request import upgraded_params
from rehome.domain.request.targets import of_use

_CAPS, _SETS, _TARGETS = "caps", "broker_sets", "targets"
ORDER = "order of broker sets"
"""A topic belongs to the first set that names it."""
_LONGEST = 200
"""Characters of a value that are shown."""

Counting = Mapping[str, Any]
"""Name of a value → the value, as JSON types: ``caps.brokers.5.replicas``, ``broker_sets.fast``."""


@dataclass(frozen=True, slots=True)
class Change:
    """A value that is another one by now; both as text."""

    name: str
    was: str
    now: str

    def __str__(self) -> str:
        return f"{self.name} was {self.was}, and is {self.now}"


@dataclass(frozen=True, slots=True)
class ClusterValues:
    """What a cluster has for the plans of one request.

    :param targets: those that the action takes.
    :param of_run: parameters that the run states itself: the cluster's do not count for it.
    """

    caps: BrokerCaps
    broker_sets: tuple[BrokerSet, ...]
    targets: Mapping[str, Any]
    of_run: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        caps: BrokerCaps,
        broker_sets: tuple[BrokerSet, ...],
        targets: Mapping[str, Any],
        action: str,
        of_run: Collection[str] = (),
    ) -> Self:
        """Those of a cluster. Its targets may state caps and broker sets, too, which then count."""
        rest = of_use(targets, action)
        if _CAPS in rest:
            caps = read_caps(rest.pop(_CAPS))
        if _SETS in rest:
            broker_sets = read_broker_sets(rest.pop(_SETS))
        return cls(caps, broker_sets, rest, frozenset(of_run))

    @property
    def counting_caps(self) -> BrokerCaps:
        """The caps that count for the run; none where it states its own."""
        return BrokerCaps() if _CAPS in self.of_run else self.caps

    @property
    def counting_sets(self) -> tuple[BrokerSet, ...]:
        """The broker sets that count for the run; none where it states its own."""
        return () if _SETS in self.of_run else self.broker_sets

    def is_target(self, parameter: str) -> bool:
        """Whether the run has the cluster's target for a parameter, and states none itself."""
        return parameter in self.targets and parameter not in self.of_run

    def counting(self) -> Counting:
        """What counts for the run, each value by its name."""
        caps, sets = self.counting_caps, broker_sets_to_json(self.counting_sets)
        counting: dict[str, Any] = {
            f"{_CAPS}.default.{name}": value for name, value in caps.default if value is not None
        }
        for broker, own in sorted(caps.brokers.items()):
            given = own.model_dump(mode="json", exclude_unset=True)
            counting |= {f"{_CAPS}.brokers.{broker}.{name}": value for name, value in given.items()}
        counting |= {f"{_SETS}.{item.pop('name')}": item for item in sets}
        if self.counting_sets:
            counting[ORDER] = [item.name for item in self.counting_sets]
        targets = {n: value for n, value in self.targets.items() if self.is_target(n)}
        counting |= {f"{_TARGETS}.{name}": value for name, value in sorted(targets.items())}
        return _as_json(counting)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types; :meth:`from_json` reads it back."""
        return {
            _CAPS: caps_to_json(self.caps),
            _SETS: broker_sets_to_json(self.broker_sets),
            _TARGETS: _as_json(self.targets),
            "of_run": sorted(self.of_run),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_json`.

        :raises InvalidRequestError, KeyError: it is no such content.
        """
        caps, sets = read_caps(content[_CAPS]), read_broker_sets(content[_SETS])
        targets = upgraded_params(content[_TARGETS])
        return cls(caps, sets, targets, frozenset(content["of_run"]))


def changes(was: Counting, now: Counting) -> Iterator[Change]:
    """The values that differ, by name. Pure."""
    for name in [*was, *(name for name in now if name not in was)]:
        if name == ORDER and not _is_reordered(was.get(name, ()), now.get(name, ())):
            continue  # a set that came or went is a change of its own
        before, after = (_text(of, name) for of in (was, now))
        if (name in was, was.get(name)) != (name in now, now.get(name)):
            yield Change(name, before, after)


def _is_reordered(was: Collection[str], now: Collection[str]) -> bool:
    return [name for name in was if name in now] != [name for name in now if name in was]


def _text(values: Counting, name: str) -> str:
    if name not in values:
        return "not set"
    text = json.dumps(values[name])
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON keeps them, so that what was read back compares equal."""
    as_json: dict[str, Any] = json.loads(json.dumps(dict(values), default=str))
    return as_json
