"""What is not well with a cluster, in words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rehome.account.clusters.troubles import Trouble, TroubleKind
from rehome.account.known import Source
from rehome.account.words.trouble_words import trouble_text, troubles_in_short
from rehome.execution.access.policy_refusals import PolicyAspect, PolicyDifference

DIFFERS = PolicyDifference(PolicyAspect.UNTHROTTLED, ((True, ("a",)), (False, ("b",))))
AT = datetime(2030, 1, 1, tzinfo=UTC)


def trouble(kind: TroubleKind, *names: str, count: int = 1, said: str = "") -> Trouble:
    return Trouble(kind, Source.LEDGER, AT, count, names, said, "stalled", DIFFERS)


@pytest.mark.parametrize("kind", TroubleKind)
def test_each_kind_has_its_words(kind: TroubleKind) -> None:
    found = trouble(kind, "x", said="it is so")
    text, _ = trouble_text(found)
    assert text.endswith((".", "it is so", "x"))
    assert troubles_in_short([found])


def test_what_is_counted_names_the_first() -> None:
    named = tuple(f"t-{number}" for number in range(20))
    text, step = trouble_text(trouble(TroubleKind.NO_LEADER, *named, count=25))
    assert text == "25 partitions had no leader: t-0, t-1, t-2, t-3, t-4 and 20 more."
    assert step == "Bring back a broker that holds an in-sync replica."
    text, step = trouble_text(trouble(TroubleKind.PLAN, "p1", count=2))
    assert text == "Plan p1, which holds the cluster, is slowed down or held up by 2 problems."


def test_one_line_counts_each_kind_in_the_order_of_what_to_do() -> None:
    found = [
        trouble(TroubleKind.BROKER_DEAD, "1", said="gone"),
        trouble(TroubleKind.BROKER_DEAD, "2", said="gone"),
        trouble(TroubleKind.UNDER_REPLICATED, "t-0"),
        trouble(TroubleKind.OWED, count=3),
    ]
    assert troubles_in_short(found) == (
        "2 brokers not alive, 3 throttle settings of ended plans, 1 partition under-replicated"
    )
    assert troubles_in_short([]) == ""
