"""The policy of a cluster: of all connections that lead to it, the strictest. Pure.

Approval and pace are the cluster's: who may use several connections would choose the one that asks
for least. Actions and windows stay each connection's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rehome.domain.broker_rates import NO_OWN_RATES, BrokerRates
from rehome.execution.access.connection_policy import ConnectionPolicy
from rehome.execution.access.policy_refusals import (
    PolicyAspect,
    PolicyDifference,
    Stricter,
    StricterWhen,
)

_KEYS = ("approval", "own_approval", "unthrottled", "largest_throttle")
_BY_BROKER = "largest_throttle_by_broker"


@dataclass(frozen=True, slots=True)
class PaceAndApproval:
    """What a policy says for its cluster, whatever connection is used.

    :param connection: whose policy it is.
    :param when: how it is known that it says so.
    :param largest_throttle: bytes per second, per broker and direction; None = any.
    :param by_broker: the same of single brokers.
    """

    connection: str
    when: StricterWhen
    approval: bool = False
    own_approval: bool = False
    unthrottled: bool = False
    largest_throttle: int | None = None
    by_broker: BrokerRates = NO_OWN_RATES

    @classmethod
    def of(cls, policy: ConnectionPolicy) -> PaceAndApproval:
        """As a connection that leads to the cluster says."""
        values = {name: getattr(policy, name) for name in _KEYS}
        own = policy.largest_throttle_by_broker
        return cls(policy.connection, StricterWhen.NOW, **values, by_broker=own)

    @classmethod
    def unreadable(cls, connection: str, last: Mapping[str, Any] | None) -> PaceAndApproval:
        """Of a policy that cannot be read: the strictest that there is.

        :param last: what it was when it was last read; None = it never was.
        """
        known = last or {}
        by_broker = BrokerRates.from_json(known.get(_BY_BROKER))
        largest = known.get("largest_throttle")
        when = StricterWhen.NOT_READABLE
        return cls(connection, when, True, False, False, largest, by_broker)

    @classmethod
    def from_record(cls, found: Mapping[str, Any]) -> PaceAndApproval:
        """As the connection said that a plan was made through."""
        connection = str(found["connection"])
        values: dict[str, Any] = {name: found.get(name) for name in _KEYS}
        by_broker = BrokerRates.from_json(found.get(_BY_BROKER))
        return cls(connection, StricterWhen.PLANNED, **values, by_broker=by_broker)

    @classmethod
    def last_read(cls, connection: str, found: Mapping[str, Any]) -> PaceAndApproval:
        """As a connection said when it was last read."""
        read = cls.from_record({**found, "connection": connection})
        return replace(read, when=StricterWhen.LAST_READ)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types."""
        said = {name: getattr(self, name) for name in _KEYS}
        own = {_BY_BROKER: self.by_broker.to_json()} if self.by_broker else {}
        return {"connection": self.connection, **said, **own}

    @property
    def stricter(self) -> Stricter:
        """What refusals by its keys name."""
        return Stricter(self.when, self.connection)

    @property
    def rank(self) -> int:
        """Whose approval it asks for: nobody's, a person's, another person's."""
        return (1 if self.own_approval else 2) if self.approval else 0


def strictest(own: ConnectionPolicy, others: Iterable[PaceAndApproval]) -> ConnectionPolicy:
    """What may be done on a cluster through a connection, by the policies of all that lead there.

    What is stricter elsewhere is named in refusals.
    """
    found, why = own, dict(own.because)
    for each in others:
        mine = PaceAndApproval.of(found)
        if each.rank > mine.rank:
            found = replace(found, approval=True, own_approval=each.own_approval)
            why["approval"] = each.stricter
        if found.unthrottled and not each.unthrottled:
            found, why["unthrottled"] = replace(found, unthrottled=False), each.stricter
        least = each.largest_throttle
        if least is not None and (found.largest_throttle is None or least < found.largest_throttle):
            found, why["largest_throttle"] = replace(found, largest_throttle=least), each.stricter
        stricter = found.largest_throttle_by_broker.strictest(each.by_broker)
        if stricter != found.largest_throttle_by_broker:
            found = replace(found, largest_throttle_by_broker=stricter)
            why[_BY_BROKER] = each.stricter
    return replace(found, because=tuple(sorted(why.items())))


_ASPECTS: Mapping[PolicyAspect, Callable[[PaceAndApproval], Any]] = {
    PolicyAspect.APPROVAL: lambda each: each.rank,
    PolicyAspect.UNTHROTTLED: lambda each: each.unthrottled,
    PolicyAspect.LARGEST_THROTTLE: lambda each: each.largest_throttle,
    PolicyAspect.BY_BROKER: lambda each: each.by_broker,
}


def differences(policies: Sequence[PaceAndApproval]) -> Iterator[PolicyDifference]:
    """Where connections to one cluster do not say the same."""
    for aspect, value_of in _ASPECTS.items():
        found: list[tuple[Any, list[str]]] = []
        for each in policies:
            value = value_of(each)
            same = next((names for other, names in found if other == value), None)
            if same is None:
                found.append((value, [each.connection]))
            else:
                same.append(each.connection)
        if len(found) > 1:
            said = ((value, tuple(sorted(names))) for value, names in found)
            yield PolicyDifference(aspect, tuple(said))
