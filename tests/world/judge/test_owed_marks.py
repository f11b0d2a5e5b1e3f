"""A mark is owed with what it is about, and only then."""

from __future__ import annotations

import pytest

from rehome.domain.configs import ConfigResource
from rehome.ledger.base.records import ThrottleEntry
from world.judge.owed_marks import kept_befores, needed_rates, owed_marks
from world.others import LISTS, RATES

LEDGER = "0123456789abcdef0123456789abcdef"
DEFAULT, BROKER = ConfigResource.cluster_default(), ConfigResource.broker(3)


def entry(resource: ConfigResource, key: str) -> ThrottleEntry:
    return ThrottleEntry("2026.p", "c", resource, key, ("1",), None, "")


@pytest.mark.parametrize(
    "mark",
    [
        f"rehome.needs.{LEDGER}.2026.p.default.leader.5",
        f"rehome.leaves.{LEDGER}.2026.p.default.leader.5",
        "rehome.before.default.leader.-",
    ],
)
def test_a_mark_of_a_rate_is_owed_with_that_rate(mark: str) -> None:
    assert RATES[0].startswith("leader")
    assert owed_marks([entry(DEFAULT, RATES[0])], [mark]) == {mark}
    assert owed_marks([entry(DEFAULT, RATES[1])], [mark]) == set()
    assert owed_marks([entry(BROKER, RATES[0])], [mark]) == set()


def test_a_mark_of_lists_is_owed_with_any_list_of_its_plan() -> None:
    mark = f"rehome.shares.{LEDGER}.2026.p.0f.4"
    other = f"rehome.lists.{LEDGER}.q.0f.4"
    owed = [entry(ConfigResource.topic("t"), LISTS[0])]
    assert owed_marks(owed, [mark, other, RATES[0]]) == {mark}
    assert owed_marks([entry(DEFAULT, RATES[0])], [mark]) == set()


def test_what_others_want_is_kept_as_long_as_somebody_has_a_mark_there() -> None:
    need = f"rehome.needs.{LEDGER}.2026.p.default.leader.5"
    before, elsewhere = "rehome.before.default.leader.20", "rehome.before.default.follower.20"
    assert kept_befores([need], [before, elsewhere, need]) == {before}
    assert kept_befores([RATES[0]], [before]) == set()


def test_a_rate_is_needed_by_a_mark_of_it_whoever_has_set_it() -> None:
    need = f"rehome.needs.{LEDGER}.2026.p.3.leader.5"
    assert needed_rates([need, "rehome.before.default.follower.-"]) == {("3", RATES[0])}
    assert needed_rates([RATES[0]]) == set()
