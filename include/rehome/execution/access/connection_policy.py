"""What may be done through a connection: the JSON key ``rehome.policy`` in its extra.

It is set by those who edit connections; those who only trigger runs cannot go beyond it.
See docs/security.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from rehome.cluster.connection.keys import POLICY as KEY
from rehome.domain.actions import Action
from rehome.domain.broker_rates import NO_OWN_RATES, BrokerRates
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.request.validation import read_values
from rehome.domain.run.askers import Askers
from rehome.domain.run.states import Control
from rehome.errors import STEP_UNCHANGED, InvalidRequestError, RehomeError
from rehome.execution.access.open_windows import CronWindow, FixedWindow, Window
from rehome.execution.access.policy_keys import (
    ACTIONS,
    ADD_PARTITIONS,
    ADOPT,
    CANCEL_FOREIGN,
    PolicyKeys,
)
from rehome.execution.access.policy_refusals import (
    PolicyPlace,
    PolicyRefusal,
    RefusedBy,
    Stricter,
)
from rehome.execution.access.words.policy_words import (
    no_key_text,
    no_object_text,
    policy_error_text,
    refusal_text,
)

UNTHROTTLED, _LARGEST = "unthrottled", "largest_throttle"


class PolicyError(RehomeError):
    """The connection's policy does not allow it; lists every cause.

    :param connection: the connection's name; ``place``: where its policy is defined.
    :param refusals: every cause with its values; ``texts`` has the same as sentences.
    """

    def __init__(
        self,
        connection: str,
        refusals: Collection[PolicyRefusal],
        place: PolicyPlace = PolicyPlace.EXTRA,
    ) -> None:
        self.connection = connection
        self.refusals = tuple(refusals)
        what, next_step = policy_error_text(connection, self.refusals, place)
        super().__init__(what, state_left=STEP_UNCHANGED, next_step=next_step)

    @property
    def texts(self) -> tuple[str, ...]:
        """The refusals, a sentence each."""
        return tuple(map(refusal_text, self.refusals))


@dataclass(frozen=True, slots=True)
class ConnectionPolicy:
    """What may be done through a connection. Build it with :meth:`parse`.

    :param connection: its name; ``place``: where the policy is defined.
    :param actions: as all that follows, what :class:`PolicyKeys` says of it.
    :param because: keys that another connection to the cluster has made stricter, and which one.
    """

    connection: str = ""
    place: PolicyPlace = PolicyPlace.EXTRA
    actions: frozenset[str] | None = None
    approval: bool = False
    own_approval: bool = False
    largest_throttle: int | None = None
    windows: tuple[Window, ...] = ()
    unthrottled: bool = False
    because: tuple[tuple[str, Stricter], ...] = ()
    largest_throttle_by_broker: BrokerRates = NO_OWN_RATES

    @classmethod
    def parse(
        cls, value: Any, connection: str, place: PolicyPlace = PolicyPlace.EXTRA
    ) -> ConnectionPolicy:
        """Read the key's value; None = no policy, everything is allowed.

        :raises InvalidRequestError: lists every problem, unknown keys included.
        """
        if value is None:
            return cls(connection, place)
        if not isinstance(value, Mapping):
            raise InvalidRequestError([no_object_text(connection)])
        policy_fields = PolicyKeys.model_fields
        read = read_values(PolicyKeys, {n: item for n, item in value.items() if n in policy_fields})
        problems = [no_key_text(name, policy_fields) for name in value if name not in policy_fields]
        problems += [f"{KEY}: {text}" for text in read.problems]
        if problems:
            raise InvalidRequestError([f"{text} (connection {connection})" for text in problems])
        keys = read.values
        return cls(connection, place, **{name: getattr(keys, name) for name in policy_fields})

    def request_within(self, request: ReassignmentRequest, begun: datetime) -> ReassignmentRequest:
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
            refusals.append(PolicyRefusal(RefusedBy.WINDOW, opens=self._opens_after(now)))
        if refusals:
            raise self.error(refusals)

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
            raise self.error(refusals)

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
            raise self.error(refusals)

    @property
    def asks_another(self) -> bool:
        """Whether another person than who has asked for a plan has to approve it."""
        return self.approval and not self.own_approval

    def require_approver(self, approver: str | None, askers: Askers, *names: str) -> None:
        """See that the approval is one that counts.

        :param approver: who has approved; None = no person.
        :param askers: who has asked for the plan, for the run that asks for the approval, and for
            terms that are not the plan's own: none of them may approve it.
        :param names: other names of the approver.
        :raises PolicyError: it does not count.
        """
        if not self.approval:
            return
        why = self._stricter("approval")
        if approver is None:
            raise self.error([PolicyRefusal(RefusedBy.NO_PERSON, why)])
        if not self.own_approval and askers.what.keys() & {approver, *names}:
            raise self.error([PolicyRefusal(RefusedBy.OWN_APPROVAL, why, askers=askers)])

    def error(self, refusals: Collection[PolicyRefusal]) -> PolicyError:
        """The error of what the policy has against a run."""
        place = PolicyPlace.ALL if self.because else self.place
        return PolicyError(self.connection, refusals, place)

    def _of_action(self, action: str) -> list[PolicyRefusal]:
        if self.actions is None or action in self.actions:
            return []
        return [PolicyRefusal(RefusedBy.ACTION, action=action, allowed=self.actions)]

    def refused_pace(
        self, rate_bytes_per_s: int | None, *, unthrottled: bool, by_broker: BrokerRates
    ) -> list[PolicyRefusal]:
        """What the policy has against a plan's throttle.

        :param rate_bytes_per_s: None = it is not known yet, or there is none.
        """
        if not unthrottled:
            refusals = self._of_rate(rate_bytes_per_s)
        elif self.unthrottled:
            refusals = []
        else:
            why = self._stricter(UNTHROTTLED)
            refusals = [PolicyRefusal(RefusedBy.UNTHROTTLED, why, key=UNTHROTTLED)]
        return [*refusals, *self._of_own_rates(by_broker)]

    def _of_rate(self, rate_bytes_per_s: int | None) -> list[PolicyRefusal]:
        largest = self.largest_throttle
        if largest is None or rate_bytes_per_s is None or rate_bytes_per_s <= largest:
            return []
        why = self._stricter(_LARGEST)
        rate = rate_bytes_per_s
        return [PolicyRefusal(RefusedBy.RATE, why, rate_bytes_per_s=rate, most=largest)]

    def _of_own_rates(self, rates: BrokerRates) -> Iterator[PolicyRefusal]:
        bounds = self.largest_throttle_by_broker
        for side, broker in rates.above(bounds, self.largest_throttle):
            is_named = broker in bounds.of(side)
            key = "largest_throttle_by_broker" if is_named else _LARGEST
            yield PolicyRefusal(
                RefusedBy.BROKER_RATE,
                self._stricter(key),
                rate_bytes_per_s=rates.of(side)[broker],
                most=bounds.of(side).get(broker, self.largest_throttle),
                key=key,
                broker=broker,
                side=side,
            )

    def _stricter(self, key: str) -> Stricter | None:
        """Which other connection has made a key stricter; None = none has."""
        return dict(self.because).get(key)

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


def _never_last(opens: datetime | None) -> datetime:
    return opens or datetime.max.replace(tzinfo=UTC)


ANYTHING = ConnectionPolicy()
"""What holds where a connection has no policy."""

__all__ = [
    "ACTIONS",
    "ADD_PARTITIONS",
    "ADOPT",
    "CANCEL_FOREIGN",
    "KEY",
    "ConnectionPolicy",
    "CronWindow",
    "FixedWindow",
    "PolicyError",
]
