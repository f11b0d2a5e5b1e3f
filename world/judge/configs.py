"""Each configuration is what its other owners last wanted it to be, and nothing of ours is left.

A throttle list belongs to many: what others want of it are its items, whoever added them first. A
rate, or a cordon, has one value: what others have set last, or deleted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from rehome.domain.configs import ConfigOperation, ConfigResource
from world.history import OTHERS, ConfigKey, ConfigWrite, History, TopicChanged
from world.judge.violations import Kind, Violation

OF_LISTS = ".throttled.replicas"


@dataclass(frozen=True, slots=True)
class Ledgers:
    """Whose it is what an installation writes: its ledger's. One that takes the place of another
    knows nothing of what that has left, and answers for none of it.

    :param had: the ids of the ledgers that each installation has had, and since when.
    """

    had: Mapping[str, Sequence[tuple[float, str]]] = field(default_factory=dict)

    def of(self, name: str, at: float) -> str:
        """The owner that an installation is at a time: with its first ledger, by its name alone."""
        had = self.had.get(name, ())
        present = next((ledger_id for since, ledger_id in reversed(had) if since <= at), "")
        return name if not present or present == had[0][1] else f"{name} {present}"

    def present(self, name: str) -> str:
        """With the ledger that it has in the end."""
        return self.of(name, inf)

    def gone(self, name: str) -> set[str]:
        """With those that it has not any more."""
        return {self.of(name, since) for since, _ in self.had.get(name, ())} - {self.present(name)}

    def lost(self, name: str, mark: str) -> bool:
        """Whether a mark names one that the installation has not any more: it may have been sent
        before that was replaced, and have come after.
        """
        ids = [ledger_id for _, ledger_id in self.had.get(name, ())]
        named = _MARKED_BY.match(mark)
        return named is not None and named[1] in {*ids[:-1]} - {*ids[-1:]}


ONE_EACH = Ledgers()
"""Each installation has had one ledger."""
Lets = Callable[[ConfigWrite], bool]
Announced = Mapping[str, Mapping[ConfigKey, Collection[str]]]
_MARKED_BY = re.compile(r"rehome\.\w+\.([0-9a-f]{32})\.")
_MARK_OF_LISTS = re.compile(r"rehome\.lists\.[0-9a-f]{32}\.(.+)\.[0-9a-f]+\.\d+")


def nothing_is_let(_write: ConfigWrite) -> bool:
    """No person has let anything of others be taken away."""
    return False


def items(value: str | None) -> tuple[str, ...]:
    """Items of a list config, each once."""
    parts = (item.strip() for item in (value or "").split(","))
    return tuple(dict.fromkeys(item for item in parts if item))


@dataclass(slots=True)
class Moment:
    """What a key holds from a time on, what others want of it, and who has left what there.

    :param wanted: None = nothing; of a list, its items joined.
    :param ours: by Rehome and ledger, what it has set here that others do not want.
    :param seen: what others want as far as anybody could see: without what they have set between
        our last reading of the key and our own write of it.
    :param shared: items that others have named, too, when we had set them before: nobody can tell
        whose they are then, and whether they stay is not judged.
    :param lost_unseen: what a Rehome has taken away of others' when it could not have read it.
    """

    at: float
    actual: str | None
    wanted: str | None
    seen: str | None
    ours: dict[str, set[str]] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()
    lost_unseen: frozenset[str] = frozenset()


@dataclass(slots=True)
class KeyHistory:
    """A key's moments, oldest first.

    :ivar written: when each Rehome has last changed it.
    :ivar ever_ours: what a Rehome has put there, or has asked to be put.
    :ivar foreign: what others wanted from each of their writes on, by its number.
    """

    key: ConfigKey
    moments: list[Moment]
    foreign: dict[int, str | None]
    ever_ours: set[str] = field(default_factory=set)
    written: dict[str, float] = field(default_factory=dict)

    @property
    def is_list(self) -> bool:
        """Whether its value has items."""
        return self.key[1].endswith(OF_LISTS)

    @classmethod
    def beginning(cls, key: ConfigKey, value: str | None) -> KeyHistory:
        """A key that others have set, or that is not set."""
        return cls(key, [Moment(0.0, value, value, value)], {0: value})

    def seen_by(self, write: ConfigWrite) -> bool:
        """Whether nobody else has changed it since the writer has last read it."""
        return write.read is not None and max(self.foreign) <= write.read

    def wanted_when(self, number: int) -> str | None:
        """What others wanted, as a reading of this number has shown."""
        return self.foreign[max(each for each in self.foreign if each <= number)]

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
    return any(_holds(key, moment, wanted, by) for wanted in (moment.wanted, moment.seen))


def left_by_a_lost_ledger(known: KeyHistory, ledgers: Ledgers, name: str) -> bool:
    """Whether a ledger that an installation has not any more has left it: the present one has never
    changed it, or has put items of its own on that list, and taken them back.
    """
    gone, present = ledgers.gone(name), ledgers.present(name)
    if ledgers.lost(name, known.key[1]):
        return True
    if not gone & known.written.keys():
        return False
    others = known.is_list and known.last.ours and known.last.ours.keys() <= gone
    return present not in known.written or bool(others and as_wanted(known, known.last, present))


def _holds(key: KeyHistory, moment: Moment, wanted: str | None, by: str) -> bool:
    actual = moment.actual
    if not key.is_list:
        return actual == wanted
    others = {item for who, there in moment.ours.items() if who != by for item in there}
    if by and others:
        actual = ",".join(item for item in items(actual) if item not in others) or wanted
    if (actual is not None and wanted is not None) or moment.shared:
        return not (set(items(actual)) ^ set(items(wanted))) - moment.shared
    # Others may have left it with nothing in it: whether it is there is no difference.
    return actual == wanted or (actual is None and not items(wanted))


@dataclass
class Configs:
    """All keys that anybody has changed."""

    keys: dict[ConfigKey, KeyHistory]
    taken_away: list[Violation]
    unavoidable: int
    ledgers: Ledgers = field(default_factory=Ledgers)
    lets: Lets = nothing_is_let
    announced: Announced = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        history: History,
        ledgers: Ledgers = ONE_EACH,
        lets: Lets = nothing_is_let,
        announced: Announced | None = None,
    ) -> Configs:
        """Follow every write.

        :param lets: whether a person has let a write of ours take away what others want: then
            nobody wants it any more.
        :param announced: what the marks of plans say that they are about to put on lists, by the
            plan's id. A plan whose process ends there, or is not answered, has put nothing there,
            and from then on nobody can tell that: what others put there is shared.
        """
        found = cls({}, [], 0, ledgers, lets, announced or {})
        for key, value in history.initial.items():
            found.keys[key] = KeyHistory.beginning(key, value)
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
                known.moments.append(Moment(gone.at, None, None, None))
                known.foreign[gone.number] = None
                known.ever_ours.clear()

    def follow(self, write: ConfigWrite) -> None:
        """A key was changed."""
        where = (write.resource, write.key)
        known = self.keys.setdefault(where, KeyHistory.beginning(where, None))
        before = known.last
        foreign = write.owner == OTHERS or self.lets(write)
        # What was under way when the ledger was replaced, is of the one before.
        owner = self.ledgers.of(write.owner, write.at if write.sent_at is None else write.sent_at)
        wanted = _wanted(known, before, write) if foreign else before.wanted
        seen = wanted if foreign else _seen(known, before, write)
        ours = {each: set(values) for each, values in before.ours.items()}
        there = items(write.after) if known.is_list else (write.after,)
        shared = before.shared
        if foreign:
            known.foreign[write.number] = wanted
            if known.is_list:
                claimed = set(items(wanted)) - set(items(before.wanted))
                shared |= claimed & known.ever_ours
        else:
            added = set(there) - _not_ours(known, write, wanted, seen)
            known.ever_ours |= {value for value in added if value is not None}
            ours.setdefault(owner, set()).update(v for v in added if v is not None)
            if known.is_list:
                known.ever_ours |= _appended(write)
                both = _asked_at_once(known, write, wanted)
                shared |= both
                self.unavoidable += bool(both)
        ours = {o: {v for v in values if v in there} for o, values in ours.items()}
        ours = {o: v for o, v in ours.items() if v}
        lost = before.lost_unseen - set(items(write.after))
        moment = Moment(write.at, write.after, wanted, seen, ours, shared, lost)
        known.moments.append(moment)
        if mark := _MARK_OF_LISTS.fullmatch(write.key):
            self._announce(self.announced.get(mark[1], {}))
        if not foreign:
            known.written[owner] = write.at
            self._refuse_taking_away(known, write, before, moment)

    def _announce(self, lists: Mapping[ConfigKey, Collection[str]]) -> None:
        for where, new in lists.items():
            known = self.keys.setdefault(where, KeyHistory.beginning(where, None))
            known.ever_ours.update(new)

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
        unseen = not known.is_list and after.seen is None
        if unseen or not known.seen_by(write):
            self.unavoidable += 1
            after.lost_unseen |= set(map(str, lost))
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


def _appended(write: ConfigWrite) -> set[str]:
    """What a write adds to a list; also where it arrives at none, and its sender cannot know it."""
    return set(items(write.asked)) if write.how is ConfigOperation.APPEND else set()


def _asked_at_once(known: KeyHistory, write: ConfigWrite, wanted: str | None) -> set[str]:
    """Items that a write of ours adds, and others have put there since its reading: whose they are
    nobody can see from then on.
    """
    if write.read is None or known.seen_by(write):
        return set()
    new = set(items(wanted)) - set(items(known.wanted_when(write.read)))
    return new & set(items(write.asked))


def _seen(known: KeyHistory, before: Moment, write: ConfigWrite) -> str | None:
    """What others want of a key, as far as anybody can know from this write of ours on."""
    if write.read is None or known.seen_by(write):
        return before.seen
    if known.is_list:
        left = items(write.after)
        return ",".join(item for item in items(before.wanted) if item in left) or None
    return known.wanted_when(write.read)


def _not_ours(
    known: KeyHistory, write: ConfigWrite, wanted: str | None, seen: str | None
) -> set[str | None]:
    """What a write of ours leaves there that is others': another Rehome's items on a list, too."""
    if known.is_list:
        return {*items(wanted), *items(write.before)}
    return {wanted, seen}
