"""Marks on the cluster: which Rehomes need a rate or a cordon, and what was there before. Pure.

A mark is a configuration key that brokers keep and do not know, on the brokers' default. Its value
is hidden from everyone, so all that others have to read is in its name (docs/decisions/047).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from rehome.cluster.interface.port import ClusterPort
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import BrokerError, ConfigValue
from rehome.domain.plan.plan import Plan
from rehome.execution.throttle.keys import (
    CORDONED,
    FOLLOWER_RATE,
    LEADER_RATE,
    LOG_DIR_RATE,
)

DEFAULT = ConfigResource.cluster_default()
DIGEST_LENGTH = 16
_PREFIX = "rehome"
_NEEDS, _LEAVES, _BEFORE = "needs", "leaves", "before"
_LISTS, _SHARES = "lists", "shares"
_KINDS = (_NEEDS, _LEAVES, _BEFORE, _LISTS, _SHARES)
_NOTHING = "-"
_KEYS = {
    LEADER_RATE: "leader",
    FOLLOWER_RATE: "follower",
    LOG_DIR_RATE: "logdirs",
    CORDONED: "cordon",
}
_OF_NAMES = {name: key for key, name in _KEYS.items()}


def is_mark(key: str) -> bool:
    """Whether a configuration key is a mark."""
    return key.startswith(tuple(f"{_PREFIX}.{kind}." for kind in _KINDS))


@dataclass(frozen=True, slots=True)
class Need:
    """One installation needs a key to hold a value, or one that is lower.

    :param ledger_id: of the installation; ``plan_id``: of the plan that needs it.
    :param leaves: it needs it no more, and is about to take it back.
    """

    ledger_id: str
    plan_id: str
    resource: ConfigResource
    key: str
    value: str
    leaves: bool = False

    @property
    def name(self) -> str:
        """As the cluster has it."""
        kind = _LEAVES if self.leaves else _NEEDS
        where = _place(self.resource, self.key)
        return ".".join(
            (_PREFIX, kind, self.ledger_id, self.plan_id, *where, _encode_value(self.value))
        )


@dataclass(frozen=True, slots=True)
class Before:
    """What a key held before any Rehome: what others want there. None = it was not set."""

    resource: ConfigResource
    key: str
    value: str | None

    @property
    def name(self) -> str:
        """As the cluster has it."""
        return ".".join(
            (_PREFIX, _BEFORE, *_place(self.resource, self.key), _encode_value(self.value))
        )


@dataclass(frozen=True, slots=True)
class Lists:
    """A plan has put items on throttle lists of topics.

    :param items: so many; a ledger that knows of fewer was restored from an earlier backup.
    :param digest: the first characters of the plan's hash: which files are its own.
    :param shared: others had put some of the items that it needs there before.
    """

    ledger_id: str
    plan_id: str
    items: int
    digest: str
    shared: bool = False

    @property
    def name(self) -> str:
        """As the cluster has it."""
        kind = _SHARES if self.shared else _LISTS
        said = (self.ledger_id, self.plan_id, self.digest, str(self.items))
        return ".".join((_PREFIX, kind, *said))


AnyMark = Need | Before | Lists


def _place(resource: ConfigResource, key: str) -> tuple[str, str]:
    return resource.name or "default", _KEYS[key]


def _encode_value(value: str | None) -> str:
    if value is None:
        return _NOTHING
    return value if value.isdecimal() else f"x{value.encode().hex()}"


def _read(text: str) -> str | None:
    if text == _NOTHING:
        return None
    return bytes.fromhex(text[1:]).decode() if text.startswith("x") else text


def parse_mark(name: str) -> AnyMark | None:
    """The mark of this name; None = it is none, or one of a later version of Rehome."""
    kind, _, rest = name.removeprefix(f"{_PREFIX}.").partition(".")
    if not is_mark(name) or not name.isprintable():
        return None
    try:
        return _parse_parts(kind, rest.split("."))
    except (IndexError, KeyError, ValueError):
        return None


def _parse_parts(kind: str, parts: list[str]) -> AnyMark:
    if kind in (_LISTS, _SHARES):
        plan_id, items = ".".join(parts[1:-2]), int(parts[-1])
        return Lists(parts[0], plan_id, items, parts[-2], shared=kind == _SHARES)
    *owner, broker, key, value = parts
    resource = DEFAULT if broker == "default" else ConfigResource.broker(int(broker))
    if kind == _BEFORE:
        return Before(resource, _OF_NAMES[key], _read(value))
    where = (owner[0], ".".join(owner[1:]), resource, _OF_NAMES[key])
    return Need(*where, _read(value) or "", leaves=kind == _LEAVES)


def lowest(values: Iterable[str]) -> str | None:
    """The value that all of them can live with: the lowest rate; of cordons, any."""
    return min(values, key=lambda v: (int(v) if v.isdecimal() else 0, v), default=None)


@dataclass(frozen=True, slots=True)
class Joining:
    """What a plan says of a key.

    :param need: the value that it needs; ``value``: the one that it sets, as another needs less.
    :param before: what others want there; None = that it is not set.
    """

    plan_id: str
    need: str
    value: str
    before: str | None


@dataclass(frozen=True)
class Held:
    """The marks of one key.

    :param me: the id of this ledger.
    """

    me: str
    resource: ConfigResource
    key: str
    needs: tuple[Need, ...] = ()
    befores: tuple[Before, ...] = ()

    @property
    def mine(self) -> tuple[Need, ...]:
        """Of this ledger's plans."""
        return tuple(need for need in self.needs if need.ledger_id == self.me)

    @property
    def others(self) -> tuple[Need, ...]:
        """Of other installations."""
        return tuple(need for need in self.needs if need.ledger_id != self.me)

    @property
    def wanted_by_others(self) -> str | None:
        """What other installations need; None = none needs anything any more."""
        return lowest(need.value for need in self.others if not need.leaves)

    @property
    def values(self) -> frozenset[str]:
        """What is there because a Rehome has set it, if it is one of these."""
        return frozenset(need.value for need in self.needs)

    def before(self, default: str | None) -> str | None:
        """What others want here; ``default``: where no mark says so, or several do."""
        values = [each.value for each in self.befores]
        return values[0] if len(values) == 1 else default

    def join(self, joining: Joining) -> Iterator[ConfigChange]:
        """Say what a plan needs here, and what others want.

        Also where it is said already: no request may bring a value without its mark, however late
        it arrives.
        """
        needs, before = self._said_by(joining)
        yield from (_without(each.name) for each in self.mine if each not in needs)
        yield from (_without(each.name) for each in self.befores if each != before)
        yield from map(_with, [*(each.name for each in needs), before.name])

    def says(self, joining: Joining) -> bool:
        """Whether that is said already, and nothing else."""
        needs, before = self._said_by(joining)
        return set(self.mine) == set(needs) and self.befores == (before,)

    def _said_by(self, joining: Joining) -> tuple[list[Need], Before]:
        where = (self.me, joining.plan_id, self.resource, self.key)
        needs = [Need(*where, joining.need)]
        if joining.value != joining.need:  # ours, too, should the other one leave
            needs.append(Need(*where, joining.value, leaves=True))
        return needs, Before(self.resource, self.key, joining.before)

    def keep(self, value: str) -> Iterator[ConfigChange]:
        """Say that a value stays when all who need it have left; we need it no more."""
        said = Before(self.resource, self.key, value)
        yield from (_without(each.name) for each in self.mine)
        yield from (_without(each.name) for each in self.befores if each != said)
        yield _with(said.name) if self.others else _without(said.name)

    def begin_to_leave(self, plan_id: str, values: Iterable[str]) -> Iterator[ConfigChange]:
        """Say that what is ours is about to go: whoever reads that needs not heed it.

        :param values: that are there because of us.
        """
        where = (self.me, plan_id, self.resource, self.key)
        names = [Need(*where, value, leaves=True).name for value in sorted(set(values))]
        yield from (_without(each.name) for each in self.mine if each.name not in names)
        yield from map(_with, names)

    def leave(self) -> Iterator[ConfigChange]:
        """Nothing of ours is here any more; the last one takes what is said of others away."""
        yield from (_without(each.name) for each in self.mine)
        if not self.others:
            yield from (_without(each.name) for each in self.befores)


def _with(name: str) -> ConfigChange:
    return ConfigChange(DEFAULT, name, ConfigOperation.SET, "1")


def _without(name: str) -> ConfigChange:
    return ConfigChange(DEFAULT, name, ConfigOperation.DELETE)


@dataclass(frozen=True)
class Marks:
    """All marks of a cluster.

    :param me: the id of this ledger.
    :param default: what is set on the brokers' default beside them, as the same reading has shown.
    """

    me: str
    needs: tuple[Need, ...] = ()
    befores: tuple[Before, ...] = ()
    lists: tuple[Lists, ...] = ()
    default: Mapping[str, ConfigValue] = field(default_factory=dict)

    @classmethod
    def of(cls, me: str, configs: Mapping[str, ConfigValue]) -> Marks:
        """By what is set on the brokers' default."""
        marks = [mark for name in sorted(configs) if (mark := parse_mark(name)) is not None]
        return cls(
            me,
            tuple(mark for mark in marks if isinstance(mark, Need)),
            tuple(mark for mark in marks if isinstance(mark, Before)),
            tuple(mark for mark in marks if isinstance(mark, Lists)),
            {name: value for name, value in configs.items() if not is_mark(name)},
        )

    @property
    def plans(self) -> frozenset[str]:
        """Those of this ledger that are said to have something on the cluster."""
        said: tuple[Need | Lists, ...] = (*self.needs, *self.lists)
        return frozenset(mark.plan_id for mark in said if mark.ledger_id == self.me)

    def lists_of(self, plan_id: str) -> Lists:
        """What is said of the lists of a plan of this ledger."""
        said = [m for m in self.lists if (m.ledger_id, m.plan_id) == (self.me, plan_id)]
        items = max((mark.items for mark in said), default=0)
        digest = said[-1].digest if said else ""
        return Lists(self.me, plan_id, items, digest, any(mark.shared for mark in said))

    def say_lists(self, plan: Plan, items: int, *, shared: bool) -> Iterator[ConfigChange]:
        """Say how many items are about to be a plan's; once others had some of them, that stays."""
        plan_id, digest = plan.plan_id, plan.plan_hash[:DIGEST_LENGTH]
        said = Lists(self.me, plan_id, items, digest, shared or self.lists_of(plan_id).shared)
        yield from (change for change in self.without_lists(plan_id) if change.key != said.name)
        yield _with(said.name)

    def without_lists(self, plan_id: str) -> Iterator[ConfigChange]:
        """Nothing of a plan is on any list."""
        for mark in self.lists:
            if (mark.ledger_id, mark.plan_id) == (self.me, plan_id):
                yield _without(mark.name)

    def without_needs(self) -> Iterator[ConfigChange]:
        """What is said of keys that no Rehome needs any more goes."""
        needed = {(each.resource, each.key) for each in self.needs}
        for before in self.befores:
            if (before.resource, before.key) not in needed:
                yield _without(before.name)

    def at(self, resource: ConfigResource, key: str) -> Held:
        """Those of one key."""
        return Held(
            *(self.me, resource, key),
            tuple(each for each in self.needs if (each.resource, each.key) == (resource, key)),
            tuple(each for each in self.befores if (each.resource, each.key) == (resource, key)),
        )


NONE_READ = Marks("")


def read_marks(cluster: ClusterPort, ledger_id: str) -> Marks | BrokerError:
    """The marks that are on the cluster now; or why the brokers' default cannot be read.

    :raises ClusterError: no broker answered.
    """
    configs = cluster.describe_configs([DEFAULT])[DEFAULT]
    return configs if isinstance(configs, BrokerError) else Marks.of(ledger_id, configs)
