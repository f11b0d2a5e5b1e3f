"""Racks and data centres of which no broker is alive."""

from __future__ import annotations

import pytest

from rehome.watching.domains_away import domains_away

RACKS = {broker: (f"r{broker % 3}",) for broker in range(12)}
CENTRES = {broker: (f"dc{broker % 2}", f"r{broker}") for broker in range(1, 5)}


def without(paths: dict[int, tuple[str, ...]], *dead: int) -> list[str]:
    return domains_away(paths, set(paths) - set(dead))


@pytest.mark.parametrize(
    ("paths", "dead", "away"),
    [
        (RACKS, (), []),
        (RACKS, (0, 3, 6), []),  # one of the rack is alive
        (RACKS, (0, 3, 6, 9), ["rack /r0"]),  # a third of the brokers
        (RACKS, (0, 3, 6, 9, 1), ["rack /r0"]),
        (CENTRES, (1,), []),  # each rack holds one broker: it says no more than the brokers do
        (CENTRES, (1, 3), ["rack /dc1"]),
        ({1: ("a",), 2: ("b",), 3: ("b",)}, (1,), ["rack /a"]),  # a small rack beside a larger one
        ({1: ("a",), 2: ("b",), 3: ("c",)}, (1,), []),
        ({1: (), 2: (), 3: ()}, (1,), []),  # without racks
        ({1: (), 2: (), 3: ()}, (1, 2), ["2 of 3 brokers"]),
        (dict.fromkeys(range(5), ("r",)), (1, 2), []),
        (dict.fromkeys(range(5), ("r",)), (1, 2, 3), ["3 of 5 brokers"]),
        (
            {1: ("x", "a"), 2: ("x", "a"), 3: ("x", "b"), 4: ("y", "c"), 5: ("y", "c")},
            (1, 2),
            ["rack /x/a"],  # one of its data centre is alive
        ),
        (
            {1: ("x", "a"), 2: ("x", "a"), 3: ("x", "b"), 4: ("y", "c"), 5: ("y", "c")},
            (1, 2, 3),
            ["rack /x"],  # and not each of its racks
        ),
    ],
)
def test_a_rack_is_away_where_none_of_its_brokers_is_alive(
    paths: dict[int, tuple[str, ...]], dead: tuple[int, ...], away: list[str]
) -> None:
    assert without(paths, *dead) == away


def test_a_dead_broker_whose_rack_is_not_known_may_be_the_whole_of_it() -> None:
    unknown = {**RACKS, 12: None}
    assert domains_away(unknown, set(RACKS)) == ["the rack of broker 12, which is not known"]
    assert domains_away({1: (), 2: None, 3: ()}, {1, 3}) == [], "no broker has a rack"
