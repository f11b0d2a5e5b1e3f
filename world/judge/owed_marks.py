"""The keys by which Rehomes mark what they need, as the cluster shows them: owed with that."""

from __future__ import annotations

import re
from collections.abc import Collection

from rehome.ledger.base.records import ThrottleEntry

_WORDS = {
    "leader.replication.throttled.rate": "leader",
    "follower.replication.throttled.rate": "follower",
    "replica.alter.log.dirs.io.max.bytes.per.second": "logdirs",
    "cordoned.log.dirs": "cordon",
}
_OF_RATE = re.compile(
    r"rehome\.(?:(?:needs|leaves)\.[0-9a-f]{32}\..+|before)\.(default|\d+)\.([a-z]+)\.[^.]+"
)
NEEDS, _BEFORE = "rehome.needs.", "rehome.before."
_OF_LISTS = re.compile(r"rehome\.(?:lists|shares)\.[0-9a-f]{32}\.(.+)\.[0-9a-f]+\.\d+")


def owed_marks(entries: Collection[ThrottleEntry], keys: Collection[str]) -> set[str]:
    """Those of the keys that are marks of what ledgers name as owed."""
    rates = {(e.resource.name or "default", _WORDS[e.key]) for e in entries if e.key in _WORDS}
    lists = {e.plan_id for e in entries if e.key not in _WORDS}
    found = set()
    for key in keys:
        rate, on_lists = _OF_RATE.fullmatch(key), _OF_LISTS.fullmatch(key)
        if (rate and rate.groups() in rates) or (on_lists and on_lists[1] in lists):
            found.add(key)
    return found


def needed_rates(needs: Collection[str]) -> set[tuple[str, str]]:
    """Broker or "default", and configuration, of each rate that one of these marks needs: its
    writer has left it for the mark.
    """
    keys = {word: key for key, word in _WORDS.items()}
    found = (_OF_RATE.fullmatch(need) for need in needs if not need.startswith(_BEFORE))
    return {(each[1], keys[each[2]]) for each in found if each}


def kept_befores(needs: Collection[str], keys: Collection[str]) -> set[str]:
    """Those of the keys that say what others want where one of these marks is: whoever leaves last
    takes them away, or a person does who settles that mark, and needs to know it.
    """
    rates = {found.groups() for need in needs if (found := _OF_RATE.fullmatch(need))}
    befores = (key for key in keys if key.startswith(_BEFORE))
    return {key for key in befores if (own := _OF_RATE.fullmatch(key)) and own.groups() in rates}
