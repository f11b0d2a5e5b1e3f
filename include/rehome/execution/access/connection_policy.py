"""What may be done through a connection: the JSON key ``rehome.policy`` in its extra.

It is set by those who edit connections; those who only trigger runs cannot go beyond it.
See docs/security.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from rehome.cluster.connection.keys import POLICY as KEY
from rehome.domain.broker_rates import NO_OWN_RATES, BrokerRates
from rehome.domain.request import param_maps, param_types
from rehome.domain.request.request import Action, ReassignmentRequest
from rehome.domain.run.askers import Askers
from rehome.domain.run.states import Control
from rehome.errors import InvalidRequestError, RehomeError
from rehome.execution.access.open_windows import CronWindow, FixedWindow, Window, window_from_json

ADD_PARTITIONS = "add_partitions"
CANCEL_FOREIGN, ADOPT = "cancel_foreign", "adopt"
"""Of reassignments that other clients have started."""
UNTHROTTLED = "unthrottled"
ACTIONS = (*(action.value for action in Action), ADD_PARTITIONS, CANCEL_FOREIGN, ADOPT)
"""What a policy may allow. Stopping and cleaning up what is Rehome's is never refused, so it is not
among them.
"""
IN_EXTRA = f"{KEY} in the connection's extra"
IN_FILE = "the cluster's policy in the clusters file"


class PolicyError(RehomeError):
    """The connection's policy does not allow it; lists every cause.

    :param connection: the connection's name; ``place``: where its policy is defined.
    :param refusals: one sentence each.
    :param next_step: what to do with the policy as it is; without a full stop.
    """

    def __init__(
        self,
        connection: str,
        refusals: Collection[str],
        place: str = IN_EXTRA,
        next_step: str = "Ask for what is allowed",
    ) -> None:
        self.connection = connection
        self.refusals = tuple(refusals)
        super().__init__(
            f"The policy of connection {connection} does not allow this: {' '.join(refusals)}",
            state_left="This step changed nothing.",
            next_step=f"{next_step}, or have {place} changed; then ask again, by a new run.",
        )


@dataclass(frozen=True, slots=True)
class ConnectionPolicy:
    """What may be done through a connection. Build it with :meth:`parse`.

    :param connection: its name; ``place``: where the policy is defined, for people.
    :param actions: which actions may change the cluster; None = all.
    :param approval: whether a person has to approve every plan.
    :param own_approval: whether that may be one who has asked for it, or for its terms.
    :param largest_throttle: bytes per second, per broker and direction; None = any.
    :param largest_throttle_by_broker: the same of single brokers, each by direction: no plan lets
        them send or receive more, whatever its own throttle is.
    :param windows: when the cluster may be changed. Without the key always; it takes no empty list.
    :param unthrottled: whether plans may run without a throttle. No, where nothing is said, not
        even a policy.
    :param because: keys that another connection to the cluster has made stricter, and which one,
        for people.
    """

    connection: str = ""
    place: str = IN_EXTRA
    actions: frozenset[str] | None = None
    approval: bool = False
    own_approval: bool = False
    largest_throttle: int | None = None
    windows: tuple[Window, ...] = ()
    unthrottled: bool = False
    because: tuple[tuple[str, str], ...] = ()
    largest_throttle_by_broker: BrokerRates = NO_OWN_RATES

    @classmethod
    def parse(cls, value: Any, connection: str, place: str = IN_EXTRA) -> ConnectionPolicy:
        """Read the key's value; None = no policy, everything is allowed.

        :raises InvalidRequestError: lists every problem, unknown keys included.
        """
        if value is None:
            return cls(connection, place)
        if not isinstance(value, Mapping):
            raise InvalidRequestError([f"{KEY} of connection {connection} is not a JSON object."])
        problems: list[str] = []
        found: dict[str, Any] = {}
        for name, given in value.items():
            if name not in _READ:
                known = ", ".join(_READ)
                problems.append(f"{KEY} has no key {name!r}; known: {known}.")
                continue
            try:
                found[name] = _READ[name](given)
            except InvalidRequestError as error:
                problems += error.problems
            except (TypeError, ValueError) as error:
                problems.append(f"{KEY}: {name}={given!r} {error}.")
        if problems:
            raise InvalidRequestError([f"{text} (connection {connection})" for text in problems])
        return cls(connection, place, **found)

    def bounded(self, request: ReassignmentRequest, begun: datetime) -> ReassignmentRequest:
        """The request within the policy: with its approval, largest throttle, and window's end.

        :param begun: when the run was due; the window that was open then is the run's, or else
            the next one: the run may have waited for it.
        """
        end = self._open_until(begun) or self._next_end(begun)
        ends = [at for at in (request.window_end, end) if at is not None]
        highest = [m for m in (request.throttle_max, self.largest_throttle) if m is not None]
        least = request.throttle_min
        if least is not None and highest:
            least = min(least, *highest)
        return replace(
            request,
            approval=request.approval or self.approval,
            throttle_min=least,
            throttle_max=min(highest, default=None),
            window_end=min(ends, default=None),
            throttle_max_by_broker=request.throttle_max_by_broker.strictest(
                self.largest_throttle_by_broker
            ),
        )

    def require(
        self,
        action: str,
        rate_bytes_per_s: int | None,
        now: datetime,
        *,
        unthrottled: bool = False,
        by_broker: BrokerRates = NO_OWN_RATES,
    ) -> None:
        """See that a run may change the cluster now.

        :param action: one of ``ACTIONS``.
        :param rate_bytes_per_s: the throttle; None = it is not known yet, or there is none.
        :param unthrottled: whether it is to run without a throttle.
        :param by_broker: throttles of brokers that are to have one of their own.
        :raises PolicyError: it may not.
        """
        pace = self.refused_pace(rate_bytes_per_s, unthrottled=unthrottled, by_broker=by_broker)
        refusals = [*self._of_action(action), *pace]
        if self.windows and self._open_until(now) is None:
            opens = self._opens_after(now)
            then = "none opens again" if opens is None else f"the next one opens at {_utc(opens)}"
            refusals.append(f"It is outside the allowed windows; {then}.")
        if refusals:
            raise PolicyError(self.connection, refusals, self._place)

    def require_carried_out(
        self,
        action: str,
        rate_bytes_per_s: int | None,
        *,
        unthrottled: bool = False,
        by_broker: BrokerRates = NO_OWN_RATES,
    ) -> None:
        """See that a plan may be carried out, in some window.

        :param action: of the plan; ``rate_bytes_per_s``: its throttle, None = not known yet.
        :param unthrottled: whether it is to run without a throttle.
        :param by_broker: throttles of brokers that are to have one of their own.
        :raises PolicyError: it may not.
        """
        pace = self.refused_pace(rate_bytes_per_s, unthrottled=unthrottled, by_broker=by_broker)
        if refusals := [*self._of_action(action), *pace]:
            raise PolicyError(self.connection, refusals, self._place)

    def require_control(
        self,
        what: Control,
        rate_bytes_per_s: int | None,
        by_broker: BrokerRates = NO_OWN_RATES,
    ) -> None:
        """See that this may be asked of a plan. Pausing and cancelling always may.

        :param by_broker: throttles of brokers that are to have one of their own.
        :raises PolicyError: it may not.
        """
        refusals = [*self._of_rate(rate_bytes_per_s), *self._of_own_rates(by_broker)]
        if what is Control.ROLL_BACK:
            refusals += self._of_action(Action.ROLLBACK.value)
        if refusals and what not in (Control.PAUSE, Control.CANCEL):
            raise PolicyError(self.connection, refusals, self._place)

    @property
    def asks_another(self) -> bool:
        """Whether another person than who has asked for a plan has to approve it."""
        return self.approval and not self.own_approval

    def require_approver(self, approver: str | None, asked: Askers, *names: str) -> None:
        """See that the approval is one that counts.

        :param approver: who has approved; None = no person.
        :param asked: who has asked for the plan, for the run that asks for the approval, and for
            terms that are not the plan's own: none of them may approve it.
        :param names: other names of the approver.
        :raises PolicyError: it does not count.
        """
        if not self.approval:
            return
        if approver is None:
            text = f"A person has to approve it, and no person has{self._why('approval')}."
            raise PolicyError(self.connection, [text], self._place)
        if self.own_approval or not asked.what.keys() & {approver, *names}:
            return
        first, *others = (f"{who} for {_listed(what)}" for who, what in asked.what.items())
        text = f"{asked.plan} has asked for it"
        if others:
            first = f"{asked.plan} has asked for the plan"
            text = ", ".join([first, *others[:-1], f"and {others[-1]}"])
        raise PolicyError(
            self.connection,
            [f"{text}; another person has to approve it{self._why('approval')}."],
            self._place,
            "Resume the plan if it is paused, else trigger a new run, and have a person other "
            f"than {_listed([*asked.what])} approve it",
        )

    def _of_action(self, action: str) -> list[str]:
        if self.actions is None or action in self.actions:
            return []
        allowed = ", ".join(sorted(self.actions)) or "none"
        return [f"Action {action} is not among the allowed ones: {allowed}."]

    def refused_pace(
        self, rate_bytes_per_s: int | None, *, unthrottled: bool, by_broker: BrokerRates
    ) -> list[str]:
        """What the policy has against a plan's throttle, a sentence each; [] = nothing.

        :param rate_bytes_per_s: None = it is not known yet, or there is none.
        """
        if not unthrottled:
            refusals = self._of_rate(rate_bytes_per_s)
        elif self.unthrottled:
            refusals = []
        else:
            why = self._why(UNTHROTTLED)
            refusals = [f"No plan may run without a throttle ({UNTHROTTLED}){why}."]
        return [*refusals, *self._of_own_rates(by_broker)]

    def _of_rate(self, rate_bytes_per_s: int | None) -> list[str]:
        largest = self.largest_throttle
        if largest is None or rate_bytes_per_s is None or rate_bytes_per_s <= largest:
            return []
        text = f"{rate_bytes_per_s} bytes per second is above the largest throttle, {largest}"
        return [f"{text}{self._why('largest_throttle')}."]

    def _of_own_rates(self, rates: BrokerRates) -> Iterator[str]:
        bounds = self.largest_throttle_by_broker
        for side, broker in rates.above(bounds, self.largest_throttle):
            named = broker in bounds.of(side)
            key = "largest_throttle_by_broker" if named else "largest_throttle"
            most = bounds.of(side).get(broker, self.largest_throttle)
            yield (
                f"{rates.of(side)[broker]} bytes per second of broker {broker} ({side}) is above "
                f"{key}, {most}{self._why(key)}."
            )

    def _why(self, key: str) -> str:
        """Which other connection has made a key stricter, in brackets; "" = none has."""
        why = dict(self.because).get(key)
        return f" ({why})" if why else ""

    @property
    def _place(self) -> str:
        """Where the policy is defined: of several connections, each has its own."""
        return "the policies of all connections to the cluster" if self.because else self.place

    def _next_end(self, after: datetime) -> datetime | None:
        """The end of what opens next; None = nothing does, or there are no windows."""
        opens = self._opens_after(after)
        return None if opens is None else self._open_until(opens)

    def _opens_after(self, at: datetime) -> datetime | None:
        opens = (window.opens_after(at) for window in self.windows)
        return min(opens, key=_never_last, default=None)

    def _open_until(self, at: datetime) -> datetime | None:
        """The end of what is open then; None = nothing is, or there are no windows."""
        ends = [end for window in self.windows if (end := window.open_until(at)) is not None]
        return max(ends, default=None)


def _listed(items: Sequence[str]) -> str:
    """``a``; ``a and b``; ``a, b and c``."""
    *most, last = items
    return f"{', '.join(most)} and {last}" if most else last


def _never_last(opens: datetime | None) -> datetime:
    return opens or datetime.max.replace(tzinfo=UTC)


def _utc(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _actions(value: Any) -> frozenset[str]:
    found = param_types.texts(value)
    unknown = sorted(set(found) - set(ACTIONS))
    if unknown:
        raise ValueError(f"names {', '.join(unknown)}; known: {', '.join(ACTIONS)}")
    return frozenset(found)


def _windows(value: Any) -> tuple[Window, ...]:
    if not isinstance(value, list):
        raise TypeError("is not a list")
    if not value:
        raise ValueError("names no window; leave it out to allow every time")
    problems, found = [], []
    for number, item in enumerate(value, 1):
        try:
            found.append(window_from_json(item))
        except (TypeError, ValueError) as error:
            problems.append(f"{KEY}: window {number} {error}.")
    if problems:
        raise InvalidRequestError(problems)
    return tuple(found)


ANYTHING = ConnectionPolicy()
"""What holds where a connection has no policy."""

_READ: Mapping[str, Callable[[Any], Any]] = {
    "actions": _actions,
    "approval": param_types.boolean,
    "own_approval": param_types.boolean,
    "largest_throttle": param_types.integer(1),
    "largest_throttle_by_broker": param_maps.rates_by_broker,
    "windows": _windows,
    UNTHROTTLED: param_types.boolean,
}

__all__ = [
    "ACTIONS",
    "ADD_PARTITIONS",
    "ADOPT",
    "CANCEL_FOREIGN",
    "IN_EXTRA",
    "IN_FILE",
    "KEY",
    "ConnectionPolicy",
    "CronWindow",
    "FixedWindow",
    "PolicyError",
]
