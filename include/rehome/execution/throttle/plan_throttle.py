"""Rates and lists of one plan, set: the journal first, then the cluster, then a reading as proof.

What an earlier plan still owes on the same key is taken over: it is ours, not another client's, so
this plan puts back the value from before that plan.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from rehome.cluster.interface.port import ClusterPort
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource, Configs
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.flows import OwnRate
from rehome.domain.run.states import MoveState
from rehome.execution.throttle.configs import (
    Refusals,
    put,
    raise_unread,
    read,
    read_what_can_be,
    read_with_marks,
    settle_what_can_be,
)
from rehome.execution.throttle.keys import (
    CHANGED_SINCE,
    EVERY_REPLICA,
    LIST_LIMIT,
    LISTS,
    list_items,
    never_asked,
    own_value,
    rate_keys,
    source_of,
    split,
    without,
)
from rehome.execution.throttle.ownership.marks import DEFAULT, Marks, read_marks
from rehome.execution.throttle.rate_scope import RateChoice, choose_rates, is_gone, own_by_key
from rehome.ledger.base.records import SetBy, ThrottleEntry, ThrottleState
from rehome.ledger.store import Ledger

_ConfigKey = tuple[ConfigResource, str]


@dataclass(frozen=True)
class RatesSet:
    """What came of setting rates.

    :param foreign: those of other clients that hold instead: "broker 3 follower.…" → bytes per s.
    :param unset: brokers that refused or did not answer, and why; they keep what they have.
    """

    foreign: Mapping[str, int] = field(default_factory=dict)
    unset: Refusals = field(default_factory=dict)


@dataclass(frozen=True)
class ListsSet:
    """What came of setting lists.

    :param too_long: topics whose lists would be too long; they are left as they are.
    :param unset: topics that could not be read or changed, and why.
    """

    too_long: frozenset[str] = frozenset()
    unset: Refusals = field(default_factory=dict)


@dataclass
class _ListWork:
    """What lists need.

    :param own: open entries of the plan; ``others``: what others still owe on the cluster.
    :ivar found_there: entries of which nothing was asked, and all is there.
    :ivar shared: others had put some of what is needed there before.
    :ivar lost: entries of which something that moves in flight rely on is there no more.
    """

    own: Mapping[_ConfigKey, ThrottleEntry]
    others: Mapping[_ConfigKey, ThrottleEntry]
    moves: Collection[Move]
    trim: bool
    in_flight: bool
    entries: list[ThrottleEntry] = field(default_factory=list)
    changes: list[ConfigChange] = field(default_factory=list)
    found_there: list[ThrottleEntry] = field(default_factory=list)
    too_long: set[str] = field(default_factory=set)
    shared: bool = False
    lost: list[ThrottleEntry] = field(default_factory=list)


@dataclass(frozen=True)
class Setting:
    """What sets the throttles of a plan."""

    plan: Plan
    ledger: Ledger
    cluster: ClusterPort

    def rates(
        self,
        moves: Collection[Move],
        rate_bytes_per_s: int,
        *,
        by_broker: bool,
        in_flight: bool = False,
        own_rates: Collection[OwnRate] = (),
    ) -> RatesSet:
        """See to the rates that these moves need.

        A broker that refuses, or does not answer, keeps what it has; all others are seen to.

        :param in_flight: the moves rely on them already: what is gone is counted and reported.
        :param own_rates: of brokers that are to have one of their own.
        :raises ClusterError: the brokers' default could not be read or set.
        """
        keys = rate_keys(moves)
        if not keys:
            return RatesSet()
        involved = {broker for move in moves for broker in (*move.current, *move.target)}
        live = sorted(involved & set(self.cluster.describe_cluster().brokers))
        brokers = [ConfigResource.broker(broker) for broker in live]
        own, others = self._journal([DEFAULT, *brokers], keys)
        singly = own_by_key({each.key: each.rate_bytes_per_s for each in own_rates})
        ours = brokers if by_broker else [DEFAULT]
        needed = {(resource, key) for resource in ours for key in keys}
        needed |= {where for where in singly if where[0] in brokers and where[1] in keys}
        journalled = own.keys() >= needed
        reading = read_what_can_be if journalled and not in_flight else settle_what_can_be
        resources = [DEFAULT, *brokers]
        configs, unread, marks = read_with_marks(
            reading, self.ledger.ledger_id, self.cluster, resources, keys
        )
        configs[DEFAULT] = marks.default
        entry_by_place = _still_set_by_others(others, configs) | own
        choices = list(
            choose_rates(
                *(configs, keys, rate_bytes_per_s),
                by_broker=by_broker,
                entries=entry_by_place,
                marks=marks,
                own=singly,
            )
        )
        self._tell_overruled([choice for choice in choices if choice.overruled], own)
        todo = [c for c in choices if c.rate is not None and not c.done]
        gone = [
            c for c in todo if in_flight and is_gone(c, entry_by_place.get((c.resource, c.key)))
        ]
        unread |= self._set_rates(gone, entry_by_place, marks, gone=True)
        todo = [c for c in todo if c not in gone and c.resource not in unread]
        unread |= self._set_rates(todo, entry_by_place, marks, gone=False)
        holds = {f"{c.resource} {c.key}": c.holds for c in choices if c.holds is not None}
        return RatesSet(holds, unread)

    def _set_rates(
        self,
        choices: Iterable[RateChoice],
        entry_by_place: Mapping[_ConfigKey, ThrottleEntry],
        marks: Marks,
        *,
        gone: bool,
    ) -> Refusals:
        changes: list[ConfigChange] = []
        entries = []
        for choice in choices:
            where, rate = (choice.resource, choice.key), choice.rate or ""
            joining = choice.joining(self.plan.plan_id)
            changes += marks.at(*where).join(joining)
            changes.append(ConfigChange(*where, ConfigOperation.SET, rate))
            before = entry_by_place.get(where)
            ours = (*(before.ours if before is not None else ()), rate, joining.need)
            entry = self._entry(*where, tuple(dict.fromkeys(ours)), choice.theirs)
            text = f"it held {choice.current or 'nothing'}, and is set to {rate}"
            entries.append(replace(entry, detail=text) if gone else entry)
        brokers = {change.resource for change in changes} - {DEFAULT}
        return put(
            *(self.ledger, self.cluster, entries, changes),
            inherits=True,
            gone=entries if gone else (),
            revises=True,
            may_refuse=brokers,
        )

    def _tell_overruled(
        self, choices: Collection[RateChoice], own: Mapping[_ConfigKey, ThrottleEntry]
    ) -> None:
        """Remember what another client has changed, and say so once."""
        entries = [
            replace(entry, set_by=SetBy.OTHERS, detail=CHANGED_SINCE)
            for choice in choices
            if (entry := own[choice.resource, choice.key]).set_by is SetBy.REHOME
        ]
        if not entries:
            return
        self.ledger.mark_throttles(entries)
        for choice in choices:
            now = "deleted" if choice.holds is None else f"set to {choice.holds} B/s"
            detail = f"{choice.resource} {choice.key} was {now} by another client, and stays so"
            self.ledger.add_event(EventKind.FOREIGN_RATE, detail, plan_id=self.plan.plan_id)

    def lists(self, moves: Collection[Move], *, trim: bool, in_flight: bool = False) -> ListsSet:
        """Append what is missing.

        :param trim: moves start, or have: shorten a list that would be too long, by what is
            ours of ended moves; and go on without topics that cannot be read, or refuse.
        :param in_flight: the moves rely on them already: what is gone is counted and reported.
        """
        items = list_items(moves)
        resources = sorted({ConfigResource.topic(topic) for topic, _ in items})
        if not resources:
            return ListsSet()
        reading = read_what_can_be if trim and not in_flight else settle_what_can_be
        configs, unread = reading(self.cluster, resources, LISTS)
        if not trim:
            raise_unread(unread)
        work = _ListWork(*self._journal(resources, LISTS), moves, trim=trim, in_flight=in_flight)
        for (topic, key), plan_items in items.items():
            resource = ConfigResource.topic(topic)
            if (
                resource in configs
            ):  # else not known; or it has gone, and the next poll settles that
                present = own_value(resource, configs[resource].get(key))
                self._see_to(work, resource, key, plan_items, present)
        refusals = put(
            *(self.ledger, self.cluster, work.entries, work.changes),
            marks=self._marks_first(work),
            inherits=True,
            gone=work.lost,
            may_refuse=configs if trim else (),
        )
        return ListsSet(frozenset(work.too_long), unread | refusals)

    def _see_to(
        self,
        work: _ListWork,
        resource: ConfigResource,
        key: str,
        plan_items: Collection[str],
        present: str | None,
    ) -> None:
        """What one list needs."""
        missing = _missing(plan_items, present)
        entry = self._list_entry(resource, key, plan_items, present, work.others)
        before = work.own.get((resource, key))
        if before is not None and not before.asked_values and not missing:
            ending = never_asked(before, present)
            closed = replace(before, state=ThrottleState.CLEARED, set_by=ending.set_by)
            work.found_there.append(replace(closed, detail=ending.detail))
        asked_items = (entry if before is None else before).asked_values
        work.shared |= not {*plan_items} & {*split(present)} <= {*entry.ours, *asked_items}
        if work.trim and not _fits(present, missing):
            present = self._trim(entry, work.moves)
        if not _fits(present, missing):
            work.too_long.add(resource.name)
        elif missing or entry.ours:
            if work.in_flight and (lost := _lost_items(missing, before)):
                gone = f"{','.join(lost)} was not on it any more, and is set again"
                entry = replace(entry, detail=gone)
                work.lost.append(entry)
            work.entries.append(entry)
            if missing:
                append = (ConfigOperation.APPEND, ",".join(missing))
                work.changes.append(ConfigChange(resource, key, *append))

    def _marks_first(self, work: _ListWork) -> list[ConfigChange]:
        """The marks that are to be there before the lists change; and what was written down, never
        asked, and is there now, is another client's: where no mark is, no items of ours are.
        """
        if not work.changes and not work.found_there:
            return []
        marks = read_marks(self.cluster, self.ledger.ledger_id)
        if not isinstance(marks, Marks):
            return []
        if not marks.lists_of(self.plan.plan_id).items:
            self.ledger.mark_throttles(work.found_there)
        return [*self._say_lists(marks, work)] if work.changes else []

    def _say_lists(self, marks: Marks, work: _ListWork) -> Iterable[ConfigChange]:
        """The mark that says how many items are the plan's with these; what a ledger that was
        restored does not know any more stays counted.
        """
        plan_id = self.plan.plan_id
        entry_by_place = {
            (e.resource, e.key): e for e in self.ledger.throttles(plan_id, keys=LISTS)
        }
        items = {where: set(entry.ours) for where, entry in entry_by_place.items()}
        before = sum(map(len, items.values()))
        for entry in work.entries:
            where = (entry.resource, entry.key)
            open_ = where in entry_by_place and entry_by_place[where].state.open
            items[where] = {*entry.ours, *(items[where] if open_ else ())}
        lost = max(0, marks.lists_of(plan_id).items - before)
        said = lost + sum(map(len, items.values()))
        return marks.say_lists(self.plan, said, shared=work.shared and not lost)

    def _list_entry(
        self,
        resource: ConfigResource,
        key: str,
        plan_items: Collection[str],
        present: str | None,
        others: Mapping[_ConfigKey, ThrottleEntry],
    ) -> ThrottleEntry:
        """What is to be journalled: ours are the items missing, and what another plan owes. That is
        there already, the rest is intended.
        """
        missing = _missing(plan_items, present)
        owed = others.get((resource, key))
        inherited = tuple(i for i in split(present) if owed is not None and i in owed.asked_values)
        if owed is None or not (inherited and (missing or set(inherited) & set(plan_items))):
            entry = self._entry(resource, key, missing, present)
            return replace(entry, state=ThrottleState.INTENDED)
        prior = without(present, inherited)
        if split(prior) == split(owed.prior_value):
            prior = owed.prior_value
        return self._entry(resource, key, (*inherited, *missing), prior)

    def _trim(self, entry: ThrottleEntry, starting: Collection[Move]) -> str | None:
        """Take our items of ended moves off a list; returns the list then."""
        states = self.ledger.view_of_open(self.plan.plan_id).moves
        needed = {str(move.partition.partition) for move in starting}
        needed |= {str(p.partition) for p, state in states.items() if state is MoveState.ADMITTED}
        where = entry.resource, entry.key
        present = read(self.cluster, [entry.resource], [entry.key])[entry.resource].get(entry.key)
        there = own_value(entry.resource, present)
        own, _ = self._journal([entry.resource], [entry.key])
        asked_items = own[where].asked_values if where in own else ()
        spare = [i for i in asked_items if i in split(there) and i.partition(":")[0] not in needed]
        if spare:
            self.cluster.alter_configs(
                [ConfigChange(*where, ConfigOperation.SUBTRACT, ",".join(spare))]
            )
        return without(there, spare)

    def _journal(
        self, resources: Collection[ConfigResource], keys: Collection[str]
    ) -> tuple[dict[_ConfigKey, ThrottleEntry], dict[_ConfigKey, ThrottleEntry]]:
        """Open entries of these keys: this plan's, and what others still owe on the cluster."""
        own: dict[_ConfigKey, ThrottleEntry] = {}
        others: dict[_ConfigKey, ThrottleEntry] = {}
        for entry in self.ledger.throttles(
            cluster_id=self.plan.cluster_id, open_only=True, resources=resources, keys=keys
        ):
            mine = entry.plan_id == self.plan.plan_id
            (own if mine else others)[entry.resource, entry.key] = entry
        return own, others

    def _entry(
        self, resource: ConfigResource, key: str, ours: tuple[str, ...], prior: str | None
    ) -> ThrottleEntry:
        source = "NOT_SET" if prior is None else source_of(resource)
        return ThrottleEntry(
            self.plan.plan_id, self.plan.cluster_id, resource, key, ours, prior, source
        )


def _still_set_by_others(
    others: Mapping[_ConfigKey, ThrottleEntry], configs: Configs
) -> dict[_ConfigKey, ThrottleEntry]:
    """Rates of earlier plans that are still set there; to be set anew, as this plan's own."""
    return {
        (resource, key): replace(entry, state=ThrottleState.OWED)
        for (resource, key), entry in others.items()
        if resource in configs and own_value(resource, configs[resource].get(key)) in entry.ours
    }


def _missing(plan_items: Collection[str], present: str | None) -> tuple[str, ...]:
    there = set(split(present))
    return () if EVERY_REPLICA in there else tuple(i for i in plan_items if i not in there)


def _lost_items(missing: Collection[str], before: ThrottleEntry | None) -> list[str]:
    """Missing items that have been on the list. Not those that an earlier version of Rehome has not
    put there: of the same partition, the entry has other ones. One that another client has put
    there since counts as such, too.
    """
    if before is None:
        return list(missing)
    known_items = {*before.asked_values, *split(before.prior_value)}
    partitions = {item.partition(":")[0] for item in before.asked_values}
    return [i for i in missing if i in known_items or i.partition(":")[0] not in partitions]


def _fits(present: str | None, missing: Collection[str]) -> bool:
    return not missing or len(",".join([*split(present), *missing])) <= LIST_LIMIT
