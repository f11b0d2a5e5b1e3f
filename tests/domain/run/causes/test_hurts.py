"""What hurts a plan, as a poll keeps it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from rehome.domain.run.causes.hurts import PARTITIONS_NAMED, Hurt, HurtKind, lasting, some

T0 = datetime(2030, 1, 1, tzinfo=UTC)
DEAD = Hurt(HurtKind.DEAD_BROKERS, (3, 4), 8)
FOREIGN = Hurt(HurtKind.FOREIGN, (), 0, ("x-0",), 1, "it is sent back", holds=True, hangs=True)


def test_it_is_kept_as_it_is() -> None:
    for each in (DEAD, replace(FOREIGN, since=T0), Hurt(HurtKind.ALERT, alert="stalled")):
        assert Hurt.from_json(json.loads(json.dumps(each.to_json()))) == each


def test_it_lasts_since_it_was_first_found_and_is_in_the_order_of_what_to_do() -> None:
    first = lasting([FOREIGN], (), T0)
    later = T0 + timedelta(seconds=5)
    found = lasting([FOREIGN, DEAD], first, later)
    assert found == (replace(DEAD, since=later), replace(FOREIGN, since=T0))
    gone = lasting([DEAD], found, later + timedelta(seconds=5))
    assert gone == (replace(DEAD, since=later),)
    again = lasting([FOREIGN], gone, later + timedelta(seconds=9))
    assert again[0].since == later + timedelta(seconds=9)


def test_of_many_partitions_some_are_named() -> None:
    names, more = some(f"t-{number}" for number in range(9))
    assert (len(names), more) == (PARTITIONS_NAMED, 9 - PARTITIONS_NAMED)
