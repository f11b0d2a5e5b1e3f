"""How a plan takes back a rate or a cordon that others may need, or have changed. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from rehome.domain.configs import ConfigChange
from rehome.execution.throttle.keys import Restored, put, restored_as_changed
from rehome.execution.throttle.ownership.marks import Held
from rehome.ledger.base.records import SetBy, ThrottleEntry

NEEDED_BY_OTHERS = "another installation of Rehome needs it still"
"""Text for an entry that is ``SetBy.OTHERS``."""


@dataclass(frozen=True, slots=True)
class Unsettled:
    """A value of ours without a mark of ours: what was there before may be another Rehome's."""


def leave_step(
    entry: ThrottleEntry, now: str | None, claims: Held, *, first: bool
) -> tuple[ConfigChange, ...] | Restored | Unsettled:
    """What is to be done next, that a rate or a cordon becomes what those who stay want.

    Whoever may still write the value has a mark. It says that its owner leaves before the value is
    written for those who stay, and is taken away after a reading has shown that value.

    :param now: the resource's own value, None = not set.
    :param first: nothing has been taken back yet, so a reading proves nothing: the broker that
        answered may be behind, and the process that journalled the entry may have died with its
        request still on the way.
    """
    before = claims.before(entry.prior_value)
    ours = now in {*entry.ours, *claims.values}
    if claims.others and not claims.mine:  # the owner of a mark sees to the value
        return (
            Restored(SetBy.OTHERS, NEEDED_BY_OTHERS) if ours else _what_is_found(entry, now, before)
        )
    target = before if claims.wanted_by_others is None else claims.wanted_by_others
    restore = (ours and now != target) or (first and now == before == target)
    if now != target and restore and not _may_put(target, claims):
        return Unsettled()
    if restore or any(not need.leaves for need in claims.mine):
        values = [need.value for need in claims.mine] or list(entry.ours[-1:])
        if restore and target is not None and target != before:
            values.append(target)
        leaving = claims.begin_to_leave(entry.plan_id, values)
        return (*leaving, *([put(entry, target)] if restore else ()))
    if claims.mine or claims.befores:
        return tuple(claims.leave())
    return _what_is_found(entry, now, before)


def in_place_of(entry: ThrottleEntry, claims: Held) -> tuple[ConfigChange, ...] | Unsettled:
    """What takes the place of ours where the value cannot be read; and the marks, which go when the
    value has been taken.
    """
    others = claims.wanted_by_others
    target = claims.before(entry.prior_value) if others is None else others
    return (*claims.leave(), put(entry, target)) if _may_put(target, claims) else Unsettled()


def _may_put(target: str | None, claims: Held) -> bool:
    """Brokers may refuse marks, others may delete them, older versions set none: then only what
    was nothing before is put back. Another Rehome that relies on ours sets its own when it is gone.
    """
    return target is None or bool(claims.mine)


def _what_is_found(entry: ThrottleEntry, now: str | None, before: str | None) -> Restored:
    return Restored() if now == before else restored_as_changed(entry, now)
