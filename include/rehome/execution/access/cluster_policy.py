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
        last_policy = last or {}
        by_broker = BrokerRates.from_json(last_policy.get(_BY_BROKER))
        largest = last_policy.get("largest_throttle")
        when = StricterWhen.NOT_READABLE
        return cls(connection, when, True, False, False, largest, by_broker)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> PaceAndApproval:
        """As the connection said that a plan was made through."""
        connection = str(record["connection"])
        values: dict[str, Any] = {name: record.get(name) for name in _KEYS}
        by_broker = BrokerRates.from_json(record.get(_BY_BROKER))
        return cls(connection, StricterWhen.PLANNED, **values, by_broker=by_broker)

    @classmethod
    def last_read(cls, connection: str, record: Mapping[str, Any]) -> PaceAndApproval:
        """As a connection said when it was last read."""
        read = cls.from_record({**record, "connection": connection})
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
    policy, why = own, dict(own.because)
    for each in others:
        mine = PaceAndApproval.of(policy)
        if each.rank > mine.rank:
            policy = replace(policy, approval=True, own_approval=each.own_approval)
            why["approval"] = each.stricter
        if policy.unthrottled and not each.unthrottled:
            policy, why["unthrottled"] = replace(policy, unthrottled=False), each.stricter
        least = each.largest_throttle
        if least is not None and (
            policy.largest_throttle is None or least < policy.largest_throttle
        ):
            policy, why["largest_throttle"] = replace(policy, largest_throttle=least), each.stricter
        stricter = policy.largest_throttle_by_broker.strictest(each.by_broker)
        if stricter != policy.largest_throttle_by_broker:
            policy = replace(policy, largest_throttle_by_broker=stricter)
            why[_BY_BROKER] = each.stricter
    return replace(policy, because=tuple(sorted(why.items())))


_ASPECTS: Mapping[PolicyAspect, Callable[[PaceAndApproval], Any]] = {
    PolicyAspect.APPROVAL: lambda each: each.rank,
    PolicyAspect.UNTHROTTLED: lambda each: each.unthrottled,
    PolicyAspect.LARGEST_THROTTLE: lambda each: each.largest_throttle,
    PolicyAspect.BY_BROKER: lambda each: each.by_broker,
}


def differences(policies: Sequence[PaceAndApproval]) -> Iterator[PolicyDifference]:
    """Where connections to one cluster do not say the same."""
    for aspect, value_of in _ASPECTS.items():
        groups: list[tuple[Any, list[str]]] = []
        for each in policies:
            value = value_of(each)
            same = next((names for other, names in groups if other == value), None)
            if same is None:
                groups.append((value, [each.connection]))
            else:
                same.append(each.connection)
        if len(groups) > 1:
            said = ((value, tuple(sorted(names))) for value, names in groups)
            yield PolicyDifference(aspect, tuple(said))
