"""The policy of a cluster: of all connections that lead to it, the strictest. Pure.

Approval and pace are the cluster's: who may use several connections would choose the one that asks
for least. Actions and windows stay each connection's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rehome.domain.broker_rates import NO_OWN_RATES, BrokerRates
from rehome.execution.access.connection_policy import ConnectionPolicy

_KEYS = ("approval", "own_approval", "unthrottled", "largest_throttle")
_BY_BROKER = "largest_throttle_by_broker"


@dataclass(frozen=True, slots=True)
class PaceAndApproval:
    """What a policy says for its cluster, whatever connection is used.

    :param connection: whose policy it is.
    :param origin: how it is known, for people: ``connection kafka_b, which leads to the same
        cluster``.
    :param largest_throttle: bytes per second, per broker and direction; None = any.
    :param by_broker: the same of single brokers.
    """

    connection: str
    origin: str
    approval: bool = False
    own_approval: bool = False
    unthrottled: bool = False
    largest_throttle: int | None = None
    by_broker: BrokerRates = NO_OWN_RATES

    @classmethod
    def of(cls, policy: ConnectionPolicy) -> PaceAndApproval:
        """As a connection that leads to the cluster says."""
        origin = f"connection {policy.connection}, which leads to the same cluster, says so"
        values = {name: getattr(policy, name) for name in _KEYS}
        return cls(policy.connection, origin, **values, by_broker=policy.largest_throttle_by_broker)

    @classmethod
    def unreadable(cls, connection: str, last: Mapping[str, Any] | None) -> PaceAndApproval:
        """Of a policy that cannot be read: the strictest that there is.

        :param last: what it was when it was last read; None = it never was.
        """
        origin = (
            f"the policy of connection {connection}, which leads to the same cluster, cannot be "
            "read, and counts as the strictest"
        )
        known = last or {}
        by_broker = BrokerRates.from_json(known.get(_BY_BROKER))
        largest = known.get("largest_throttle")
        return cls(connection, origin, True, False, False, largest, by_broker)

    @classmethod
    def recorded(cls, found: Mapping[str, Any]) -> PaceAndApproval:
        """As the connection said that a plan was made through."""
        connection = str(found["connection"])
        origin = f"connection {connection} said so when the plan was made through it"
        values: dict[str, Any] = {name: found.get(name) for name in _KEYS}
        by_broker = BrokerRates.from_json(found.get(_BY_BROKER))
        return cls(connection, origin, **values, by_broker=by_broker)

    @classmethod
    def last_read(cls, connection: str, found: Mapping[str, Any]) -> PaceAndApproval:
        """As a connection said when it was last read."""
        origin = f"connection {connection}, which leads to the same cluster, said so when last read"
        return replace(cls.recorded({**found, "connection": connection}), origin=origin)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types."""
        said = {name: getattr(self, name) for name in _KEYS}
        own = {_BY_BROKER: self.by_broker.to_json()} if self.by_broker else {}
        return {"connection": self.connection, **said, **own}

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
            why["approval"] = each.origin
        if found.unthrottled and not each.unthrottled:
            found, why["unthrottled"] = replace(found, unthrottled=False), each.origin
        least = each.largest_throttle
        if least is not None and (found.largest_throttle is None or least < found.largest_throttle):
            found, why["largest_throttle"] = replace(found, largest_throttle=least), each.origin
        stricter = found.largest_throttle_by_broker.strictest(each.by_broker)
        if stricter != found.largest_throttle_by_broker:
            found = replace(found, largest_throttle_by_broker=stricter)
            why[_BY_BROKER] = each.origin
    return replace(found, because=tuple(sorted(why.items())))


def differences(policies: Sequence[PaceAndApproval]) -> list[str]:
    """Where connections to one cluster do not say the same, a sentence each; [] = they do."""
    asked = {0: "nobody's approval", 1: "a person's approval", 2: "another person's approval"}
    aspects = {
        "approval": lambda each: asked[each.rank],
        "pace without a throttle": lambda each: "allowed" if each.unthrottled else "not allowed",
        "largest throttle": lambda each: _rate(each.largest_throttle),
        "largest throttle of single brokers": lambda each: (
            "; ".join(each.by_broker.lines()) or "any"
        ),
    }
    found = []
    for name, value_of in aspects.items():
        by_value: dict[str, list[str]] = {}
        for each in policies:
            by_value.setdefault(value_of(each), []).append(each.connection)
        if len(by_value) > 1:
            said = (f"{value} ({', '.join(sorted(who))})" for value, who in by_value.items())
            found.append(f"Connections to this cluster differ in {name}: {'; '.join(said)}.")
    return found


def _rate(largest: int | None) -> str:
    return "any" if largest is None else f"{largest} bytes per second"
