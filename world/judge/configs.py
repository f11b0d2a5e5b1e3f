"""Each configuration is what its other owners last wanted it to be, and nothing of ours is left.

A throttle list belongs to many: what others want of it are its items, whoever added them first. A
rate, or a cordon, has one value: what others have set last, or deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from include.domain.configs import ConfigOperation, ConfigResource
from world.history import OTHERS, ConfigKey, ConfigWrite, History, TopicChanged
from world.judge.violations import Kind, Violation

OF_LISTS = ".throttled.replicas"


def items(value: str | None) -> tuple[str, ...]:
    """Items of a list config, each once."""
    parts = (item.strip() for item in (value or "").split(","))
    return tuple(dict.fromkeys(item for item in parts if item))


@dataclass(slots=True)
class Moment:
    """What a key holds from a time on, what others want of it, and who has left what there.

    :param wanted: None = nothing; of a list, its items joined.
    :param ours: by Rehome, what it has set here that others do not want.
    :param shared: items that others have named, too, when we had set them before: nobody can tell
        whose they are then, and whether they stay is not judged.
    """

    at: float
    actual: str | None
    wanted: str | None
    ours: dict[str, set[str]] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()


@dataclass(slots=True)
class KeyHistory:
    """A key's moments, oldest first.

    :ivar written: when each Rehome has last changed it.
    :ivar unseen: our last write of it came after a write of others that nobody could have seen.
    """

    key: ConfigKey
    moments: list[Moment]
    last_foreign: int = 0
    unseen: bool = False
    ever_ours: set[str] = field(default_factory=set)
    written: dict[str, float] = field(default_factory=dict)

    @property
    def is_list(self) -> bool:
        """Whether its value has items."""
        return self.key[1].endswith(OF_LISTS)

    @property
    def last(self) -> Moment:
        """How it ended."""
        return self.moments[-1]

    def between(self, since: float, until: float) -> list[Moment]:
        """Moments that held at some time in between."""
        found = [m for m in self.moments if since <= m.at <= until]
        before = [m for m in self.moments if m.at < since]
        return [*before[-1:], *found]


def as_wanted(key: KeyHistory, moment: Moment, by: str = "") -> bool:
    """Whether a key holds what others want, and nothing else.

    :param by: a Rehome, for which another Rehome's items on a list are others' as well; "" = none.
    """
    if key.is_list and by:
        others = {item for who, there in moment.ours.items() if who != by for item in there}
        kept = [item for item in items(moment.actual) if item not in others]
        if others:
            moment = replace(moment, actual=",".join(kept) or moment.wanted)
    if key.is_list and ((moment.actual is not None and moment.wanted is not None) or moment.shared):
        return not (set(items(moment.actual)) ^ set(items(moment.wanted))) - moment.shared
    if key.is_list and moment.actual is None and not items(moment.wanted):
        return True  # others have left it with nothing in it: whether it is there is no difference
    return moment.actual == moment.wanted


@dataclass
class Configs:
    """All keys that anybody has changed."""

    keys: dict[ConfigKey, KeyHistory]
    taken_away: list[Violation]
    unavoidable: int

    @classmethod
    def of(cls, history: History) -> Configs:
        """Follow every write."""
        found = cls({}, [], 0)
        for key, value in history.initial.items():
            found.keys[key] = KeyHistory(key, [Moment(0.0, value, value)])
        for write in history.writes:
            if isinstance(write, TopicChanged):
                found.forget(write)
            else:
                found.follow(write)
        return found

    def forget(self, gone: TopicChanged) -> None:
        """A topic's configs go with it, and nobody wants anything of them any more."""
        for key, known in self.keys.items():
            if key[0] == ConfigResource.topic(gone.topic):
                known.moments.append(Moment(gone.at, None, None))
                known.ever_ours.clear()

    def follow(self, write: ConfigWrite) -> None:
        """A key was changed."""
        where = (write.resource, write.key)
        known = self.keys.setdefault(where, KeyHistory(where, [Moment(0.0, None, None)]))
        before = known.last
        foreign = write.owner == OTHERS
        wanted = _wanted(known, before, write) if foreign else before.wanted
        ours = {owner: set(values) for owner, values in before.ours.items()}
        there = items(write.after) if known.is_list else (write.after,)
        shared = before.shared
        if foreign:
            known.last_foreign = write.number
            if known.is_list:
                claimed = set(items(wanted)) - set(items(before.wanted))
                shared |= claimed & known.ever_ours
        else:
            added = set(there) - set(items(wanted) if known.is_list else (wanted,))
            known.ever_ours |= {value for value in added if value is not None}
            ours.setdefault(write.owner, set()).update(v for v in added if v is not None)
        ours = {o: {v for v in values if v in there} for o, values in ours.items()}
        moment = Moment(write.at, write.after, wanted, {o: v for o, v in ours.items() if v}, shared)
        known.moments.append(moment)
        if not foreign:
            known.written[write.owner] = write.at
            known.unseen = write.read is not None and known.last_foreign > write.read
            self._refuse_taking_away(known, write, before, moment)

    def _refuse_taking_away(
        self, known: KeyHistory, write: ConfigWrite, before: Moment, after: Moment
    ) -> None:
        """A write of ours may hide a rate of another's for a while, never delete it; of a list it
        may take nothing that others want.
        """
        if known.is_list:
            lost = set(items(before.wanted)) & set(items(before.actual)) - set(items(after.actual))
            lost -= after.shared
        else:
            lost = {after.wanted} if after.actual is None and after.wanted is not None else set()
        if not lost:
            return
        if write.read is None or known.last_foreign > write.read:
            self.unavoidable += 1
            return
        text = f"{', '.join(map(str, lost))} of {write.resource} {write.key} by {write.process}"
        self.taken_away.append(Violation(Kind.TAKEN_AWAY, str(write.resource), text, write.at))

    def ours_left(self) -> Iterator[KeyHistory]:
        """Keys that are not as others want them."""
        for known in self.keys.values():
            if not as_wanted(known, known.last):
                yield known


def _wanted(known: KeyHistory, before: Moment, write: ConfigWrite) -> str | None:
    """What others want of a key from this write of theirs on."""
    if not known.is_list or write.how in (ConfigOperation.SET, ConfigOperation.DELETE, None):
        return write.after
    now, was = set(items(write.after)), set(items(write.before))
    kept = [item for item in items(before.wanted) if item not in was - now]
    new = [item for item in items(write.after) if item not in was and item not in kept]
    return ",".join([*kept, *new])
