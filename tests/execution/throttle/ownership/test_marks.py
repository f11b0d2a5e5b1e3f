"""Marks by their names; and the protocol of two Rehomes, tried in every order that there is."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import ConfigValue
from rehome.execution.throttle.keys import CORDONED, FOLLOWER_RATE, LEADER_RATE, Restored
from rehome.execution.throttle.ownership.leaving import (
    NEEDED_BY_OTHERS,
    Unsettled,
    in_place_of,
    leave_step,
)
from rehome.execution.throttle.ownership.marks import (
    DEFAULT,
    AnyMark,
    Before,
    Held,
    Joining,
    Lists,
    Marks,
    Need,
    is_mark,
    parse_mark,
)
from rehome.execution.throttle.rate_scope import RateChoice, choose_rates
from rehome.ledger.base.records import SetBy, ThrottleEntry, ThrottleState

BROKER = ConfigResource.broker(3)
Names = frozenset[str]


def hidden(names: Names, rate: str | None = None) -> dict[str, ConfigValue]:
    """As DescribeConfigs shows the brokers' default."""
    source = "DYNAMIC_DEFAULT_BROKER_CONFIG"
    found = dict.fromkeys(names, ConfigValue(None, source))
    return found if rate is None else found | {LEADER_RATE: ConfigValue(rate, source)}


@pytest.mark.parametrize(
    "mark",
    [
        Need("0f", "2026-11-26.a", DEFAULT, LEADER_RATE, "5000000"),
        Need("0f", "p", BROKER, FOLLOWER_RATE, "7", leaves=True),
        Need("0f", "p", BROKER, CORDONED, "*"),
        Before(DEFAULT, LEADER_RATE, None),
        Before(BROKER, CORDONED, "/data/1,/data/2.old"),
        Lists("0f", "2026-11-26.a", 3, "ab12"),
        Lists("0f", "p", 0, "ab12", shared=True),
    ],
)
def test_all_of_a_mark_is_in_its_name(mark: AnyMark) -> None:
    assert is_mark(mark.name)
    assert parse_mark(mark.name) == mark


@pytest.mark.parametrize(
    "name", ["rehome.x", "rehome.needs.a", "rehome.lists.a.b.c.many", "leader.replication", ""]
)
def test_what_is_no_mark_is_not_taken_for_one(name: str) -> None:
    assert parse_mark(name) is None


def entry(prior: str | None, *ours: str) -> ThrottleEntry:
    return ThrottleEntry("p", "c", DEFAULT, LEADER_RATE, ours, prior, "")


def held(*marks: Need | Before) -> Held:
    return Marks.of("a", hidden(frozenset(m.name for m in marks))).at(DEFAULT, LEADER_RATE)


OURS = Need("a", "p", DEFAULT, LEADER_RATE, "200")
THEIRS = Need("b", "q", DEFAULT, LEADER_RATE, "100")


@pytest.mark.parametrize(
    ("prior", "now", "after"), [(None, "200", None), ("900", "200", "900"), ("900", "100", "900")]
)
def test_our_rate_is_replaced_by_what_was_there_before(
    prior: str | None, now: str, after: str | None
) -> None:
    before = Before(DEFAULT, LEADER_RATE, prior)
    step = leave_step(entry(prior, "200", "100"), now, held(OURS, before), first=False)
    assert isinstance(step, tuple)
    assert [change.value for change in step if change.key == LEADER_RATE] == [after]


def test_what_another_client_has_changed_stays() -> None:
    found = leave_step(entry("900", "200"), "300", held(), first=False)
    assert isinstance(found, Restored)
    assert found.set_by is SetBy.OTHERS


def test_a_rate_goes_to_the_installation_that_needs_it_still() -> None:
    step = leave_step(entry(None, "200"), "200", held(OURS, THEIRS), first=True)
    assert isinstance(step, tuple)
    assert [change.value for change in step if change.key == LEADER_RATE] == ["100"]
    assert leave_step(entry(None, "200", "100"), "100", held(THEIRS), first=False) == Restored(
        SetBy.OTHERS, NEEDED_BY_OTHERS
    )


@pytest.mark.parametrize("after", [None, "900"])
def test_without_a_mark_of_ours_only_what_was_nothing_is_put_back(after: str | None) -> None:
    """Who has deleted it, or never let it be set, has taken the proof that 900 is nobody's."""
    step = leave_step(entry(after, "200"), "200", held(), first=True)
    dead = in_place_of(entry(after, "200"), held())
    if after is None:
        assert isinstance(step, tuple)
        assert step[-1] == ConfigChange(DEFAULT, LEADER_RATE, ConfigOperation.DELETE)
        assert dead == (step[-1],)
    else:
        assert (step, dead) == (Unsettled(), Unsettled())


def test_our_rate_is_taken_back_even_if_the_first_reading_does_not_show_it() -> None:
    step = leave_step(entry(None, "100"), None, held(), first=True)
    assert isinstance(step, tuple)
    assert step[-1] == ConfigChange(DEFAULT, LEADER_RATE, ConfigOperation.DELETE)


# -- every order ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Site:
    """One installation: what it does next, what its ledger holds, what it is about to send."""

    name: str
    rate: int
    does: str = "join"
    entry: ThrottleEntry | None = None
    request: tuple[ConfigChange, ...] = ()
    read_before: int = 0
    first: bool = True
    died: bool = False


@dataclass(frozen=True)
class World:
    """The brokers' default, two installations, and what an admin will still do.

    :param wanted: what the admin wants there.
    :param unseen: a change of the admin's came between a reading and the write made from it.
    """

    rate: str | None
    names: Names
    sites: tuple[Site, Site]
    admin: tuple[str | None, ...]
    wanted: str | None
    unseen: bool = False

    def marks(self, site: Site) -> Marks:
        return Marks.of(site.name, hidden(self.names, self.rate))

    def but(self, site: Site) -> World:
        one, other = self.sites
        return replace(self, sites=(site, other) if site.name == one.name else (one, site))

    def written(self, changes: tuple[ConfigChange, ...], read_before: int) -> World:
        """All of a request, or nothing."""
        rate, names, unseen = self.rate, set(self.names), self.unseen
        for change in changes:
            if not is_mark(change.key):
                rate = change.value
                unseen |= read_before != len(self.admin)
            elif change.operation is ConfigOperation.SET:
                names.add(change.key)
            else:
                names.discard(change.key)
        return replace(self, rate=rate, names=frozenset(names), unseen=unseen)


def choice(world: World, site: Site) -> RateChoice:
    marks = world.marks(site)
    known = {} if site.entry is None else {(DEFAULT, LEADER_RATE): site.entry}
    found = {DEFAULT: dict(marks.default)}
    (chosen,) = choose_rates(
        found, [LEADER_RATE], site.rate, by_broker=False, entries=known, marks=marks
    )
    return chosen


def joins(world: World, site: Site) -> World:
    """Read, decide, journal; as ``plan_throttle`` does."""
    chosen = choice(world, site)
    if chosen.rate is None or chosen.done:
        return world.but(replace(site, does="leave", first=True))
    plan_id = f"plan-{site.name}"
    joining: Joining = chosen.joining(plan_id)
    changes = [*world.marks(site).at(DEFAULT, LEADER_RATE).join(joining)]
    changes.append(ConfigChange(DEFAULT, LEADER_RATE, ConfigOperation.SET, chosen.rate))
    ours = {*(site.entry.ours if site.entry else ()), joining.need, chosen.rate}
    journal = ThrottleEntry(
        *(plan_id, "c", DEFAULT, LEADER_RATE, tuple(sorted(ours)), chosen.theirs, ""),
        state=ThrottleState.APPLIED,
    )
    return world.but(
        replace(
            site,
            does="send-join",
            entry=journal,
            request=tuple(changes),
            read_before=len(world.admin),
        )
    )


def leaves(world: World, site: Site) -> World:
    """Read, decide; as ``clear`` does."""
    at = world.marks(site).at(DEFAULT, LEADER_RATE)
    if site.entry is None and not at.mine:
        return world.but(replace(site, does="ended"))
    ours = tuple(sorted(need.value for need in at.mine))
    unknown = ThrottleEntry("?", "c", DEFAULT, LEADER_RATE, ours, at.before(None), "")
    journal = site.entry or unknown
    journal = replace(journal, prior_value=at.before(journal.prior_value))
    step = leave_step(journal, world.rate, at, first=site.first)
    assert not isinstance(step, Unsettled), "nobody deletes marks here"
    if isinstance(step, Restored):
        return world.but(replace(site, does="ended", entry=None))
    given = {c.value for c in step if c.key == LEADER_RATE and c.value in at.values}
    journal = replace(journal, ours=tuple(sorted({*journal.ours, *(v for v in given if v)})))
    return world.but(
        replace(site, does="send-leave", entry=journal, request=step, read_before=len(world.admin))
    )


def after(world: World) -> Iterator[World]:
    """Everything that may happen next."""
    for site in world.sites:
        if site.does == "join":
            yield joins(world, site)
        elif site.does == "leave":
            yield leaves(world, site)
        elif site.does.startswith("send"):
            sent = world.written(site.request, site.read_before)
            done = replace(
                site,
                does=site.does.removeprefix("send-"),
                request=(),
                first=site.first and site.does == "send-join",
            )
            yield sent.but(done)
            if not site.died:  # and its next process takes back what its ledger has
                dead = replace(done, does="leave", first=True, died=True)
                yield world.but(dead)
                yield sent.but(dead)
    if world.admin:
        now, *later = world.admin
        yield replace(world, rate=now, wanted=now, admin=tuple(later))


@pytest.mark.slow
@pytest.mark.parametrize(
    "admin",
    [(), *(pytest.param((does,), marks=pytest.mark.long) for does in ("7", None))],
    ids=str,
)
@pytest.mark.parametrize("before", [None, "9"])
def test_two_rehomes_leave_what_others_want_in_whatever_order_they_act_and_die(
    before: str | None, admin: tuple[str | None, ...]
) -> None:
    sites = (Site("a", 5), Site("b", 2))
    begin = World(before, frozenset(), sites, admin, before)
    seen, ahead, ends = {begin}, deque([begin]), 0
    while ahead:
        world = ahead.popleft()
        following = list(after(world))
        for each in following:
            if each not in seen:
                seen.add(each)
                ahead.append(each)
        if not following:
            ends += 1
            assert not world.names, world
            assert world.unseen or world.rate == world.wanted, world
    assert ends > 0
    assert len(seen) > 1_000
