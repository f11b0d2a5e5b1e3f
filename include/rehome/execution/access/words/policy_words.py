"""What a policy has against a run, what to do, and where policies differ, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rehome.cluster.connection.keys import POLICY
from rehome.domain.run.askers import Askers
from rehome.domain.text import first_names, join_names, minute_text
from rehome.execution.access.policy_refusals import (
    PolicyAspect,
    PolicyDifference,
    PolicyPlace,
    PolicyRefusal,
    RefusedBy,
    StricterWhen,
)

_PLACES: Mapping[PolicyPlace, str] = {
    PolicyPlace.EXTRA: f"{POLICY} in the connection's extra",
    PolicyPlace.FILE: "the cluster's policy in the clusters file",
    PolicyPlace.ALL: "the policies of all connections to the cluster",
}
_STRICTER: Mapping[StricterWhen, str] = {
    StricterWhen.NOW: "connection {}, which leads to the same cluster, says so",
    StricterWhen.NOT_READABLE: "the policy of connection {}, which leads to the same cluster, "
    "cannot be read, and counts as the strictest",
    StricterWhen.PLANNED: "connection {} said so when the plan was made through it",
    StricterWhen.LAST_READ: "connection {}, which leads to the same cluster, said so when last "
    "read",
}

NO_WINDOW = "names no window; leave it out to allow every time"


def no_object_text(connection: str) -> str:
    """Of a policy that is none."""
    return f"{POLICY} of connection {connection} is not a JSON object."


def no_key_text(name: object, keys: Iterable[str]) -> str:
    """Of a key that no policy has."""
    return f"{POLICY} has no key {name!r}; known: {', '.join(keys)}."


def policy_error_text(
    connection: str, refusals: Iterable[PolicyRefusal], place: PolicyPlace
) -> tuple[str, str]:
    """What the policy of a connection refuses, and what to do."""
    causes = [*refusals]
    what = " ".join(map(refusal_text, causes))
    step = next((_STEPS[each.by](each) for each in causes if each.by in _STEPS), _ANY_STEP)
    return (
        f"The policy of connection {connection} does not allow this: {what}",
        f"{step}, or have {_PLACES[place]} changed; then ask again, by a new run.",
    )


def refusal_text(refusal: PolicyRefusal) -> str:
    """One thing that a policy refuses, as a sentence."""
    stricter = refusal.stricter
    why = "" if stricter is None else f" ({_STRICTER[stricter.when].format(stricter.connection)})"
    return f"{_REFUSED[refusal.by](refusal)}{why}."


def _action(refusal: PolicyRefusal) -> str:
    allowed = ", ".join(sorted(refusal.allowed)) or "none"
    return f"Action {refusal.action} is not among the allowed ones: {allowed}"


def _window(refusal: PolicyRefusal) -> str:
    opens = refusal.opens
    then = "none opens again" if opens is None else f"the next one opens at {minute_text(opens)}"
    return f"It is outside the allowed windows; {then}"


def _own_approval(refusal: PolicyRefusal) -> str:
    askers = _askers(refusal)
    _, *others = (f"{who} for {join_names(what)}" for who, what in askers.what.items())
    text = f"{askers.plan} has asked for it"
    if others:
        first = f"{askers.plan} has asked for the plan"
        text = ", ".join([first, *others[:-1], f"and {others[-1]}"])
    return f"{text}; another person has to approve it"


def _askers(refusal: PolicyRefusal) -> Askers:
    assert refusal.askers is not None
    return refusal.askers


_REFUSED: Mapping[RefusedBy, Callable[[PolicyRefusal], str]] = {
    RefusedBy.ACTION: _action,
    RefusedBy.RATE: lambda refusal: (
        f"{refusal.rate_bytes_per_s} bytes per second is above the largest throttle, {refusal.most}"
    ),
    RefusedBy.BROKER_RATE: lambda refusal: (
        f"{refusal.rate_bytes_per_s} bytes per second of broker {refusal.broker} ({refusal.side}) "
        f"is above {refusal.key}, {refusal.most}"
    ),
    RefusedBy.UNTHROTTLED: lambda refusal: f"No plan may run without a throttle ({refusal.key})",
    RefusedBy.WINDOW: _window,
    RefusedBy.NO_PERSON: lambda _: "A person has to approve it, and no person has",
    RefusedBy.OWN_APPROVAL: _own_approval,
    RefusedBy.HOOK_ASKS_NOBODY: lambda _: (
        "A person has to approve every change, and the hook asks no person"
    ),
    RefusedBy.HOOK_UNTHROTTLED: lambda refusal: (
        f"Nothing throttles what is to be copied: {first_names(refusal.unthrottled, '; ')}"
    ),
}
_ANY_STEP = "Ask for what is allowed"
_STEPS: Mapping[RefusedBy, Callable[[PolicyRefusal], str]] = {
    RefusedBy.OWN_APPROVAL: lambda refusal: (
        "Resume the plan if it is paused, else trigger a new run, and have a person other than "
        f"{join_names([*_askers(refusal).what])} approve it"
    ),
    RefusedBy.HOOK_ASKS_NOBODY: lambda _: "Use the task group reassign(), which asks",
    RefusedBy.HOOK_UNTHROTTLED: lambda _: (
        "Call set_replication_throttle with the same targets before"
    ),
}
"""Instead of asking for what is allowed."""

_APPROVALS = ("no approval", "a person's approval", "another person's approval")
_ASPECTS: Mapping[PolicyAspect, tuple[str, Callable[[Any], str]]] = {
    PolicyAspect.APPROVAL: ("approval", lambda rank: _APPROVALS[rank]),
    PolicyAspect.UNTHROTTLED: (
        "pace without a throttle",
        lambda allowed: "allowed" if allowed else "not allowed",
    ),
    PolicyAspect.LARGEST_THROTTLE: (
        "largest throttle",
        lambda rate: "any" if rate is None else f"{rate} bytes per second",
    ),
    PolicyAspect.BY_BROKER: (
        "largest throttle of single brokers",
        lambda rates: "; ".join(rates.lines()) or "any",
    ),
}


def difference_text(difference: PolicyDifference) -> str:
    """Where connections to one cluster do not say the same, without a full stop."""
    name, value_text = _ASPECTS[difference.aspect]
    said = (f"{value_text(value)} ({', '.join(who)})" for value, who in difference.connections)
    return f"Connections to this cluster differ in {name}: {'; '.join(said)}"
