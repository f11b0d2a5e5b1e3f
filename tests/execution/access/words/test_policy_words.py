"""What policies refuse, and where they differ, in words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rehome.domain.broker_rates import BrokerRates, RateSide
from rehome.domain.run.askers import Askers, Term
from rehome.execution.access.policy_refusals import (
    PolicyAspect,
    PolicyDifference,
    PolicyPlace,
    PolicyRefusal,
    RefusedBy,
    Stricter,
    StricterWhen,
)
from rehome.execution.access.words.policy_words import (
    difference_text,
    policy_error_text,
    refusal_text,
)

OTHER = Stricter(StricterWhen.NOW, "b")
ASKED = Askers("ann", "bob", {Term.RATE: "bob"})
SAID = {
    RefusedBy.ACTION: (
        PolicyRefusal(RefusedBy.ACTION, action="drain", allowed=frozenset({"rebalance"})),
        "Action drain is not among the allowed ones: rebalance.",
    ),
    RefusedBy.RATE: (
        PolicyRefusal(RefusedBy.RATE, OTHER, rate_bytes_per_s=6, most=5),
        "6 bytes per second is above the largest throttle, 5 (connection b, which leads to the "
        "same cluster, says so).",
    ),
    RefusedBy.BROKER_RATE: (
        PolicyRefusal(
            RefusedBy.BROKER_RATE,
            rate_bytes_per_s=6,
            most=5,
            key="largest_throttle",
            broker=3,
            side=RateSide.FOLLOWER,
        ),
        "6 bytes per second of broker 3 (follower) is above largest_throttle, 5.",
    ),
    RefusedBy.UNTHROTTLED: (
        PolicyRefusal(
            RefusedBy.UNTHROTTLED, Stricter(StricterWhen.NOT_READABLE, "b"), key="unthrottled"
        ),
        "No plan may run without a throttle (unthrottled) (the policy of connection b, which "
        "leads to the same cluster, cannot be read, and counts as the strictest).",
    ),
    RefusedBy.WINDOW: (
        PolicyRefusal(RefusedBy.WINDOW, opens=datetime(2030, 1, 31, 4, tzinfo=UTC)),
        "It is outside the allowed windows; the next one opens at 2030-01-31 04:00 UTC.",
    ),
    RefusedBy.NO_PERSON: (
        PolicyRefusal(RefusedBy.NO_PERSON, Stricter(StricterWhen.PLANNED, "b")),
        "A person has to approve it, and no person has (connection b said so when the plan was "
        "made through it).",
    ),
    RefusedBy.OWN_APPROVAL: (
        PolicyRefusal(RefusedBy.OWN_APPROVAL, askers=ASKED),
        "ann has asked for the plan, and bob for the run and the throttle; another person has to "
        "approve it.",
    ),
    RefusedBy.HOOK_ASKS_NOBODY: (
        PolicyRefusal(RefusedBy.HOOK_ASKS_NOBODY),
        "A person has to approve every change, and the hook asks no person.",
    ),
    RefusedBy.HOOK_UNTHROTTLED: (
        PolicyRefusal(RefusedBy.HOOK_UNTHROTTLED, unthrottled=("a", "b")),
        "Nothing throttles what is to be copied: a; b.",
    ),
}


@pytest.mark.parametrize("by", RefusedBy)
def test_each_refusal_has_its_words(by: RefusedBy) -> None:
    refusal, text = SAID[by]
    assert refusal_text(refusal) == text


def test_a_refusal_has_the_step_of_the_first_that_has_one_of_its_own() -> None:
    refusals = [SAID[by][0] for by in (RefusedBy.ACTION, RefusedBy.OWN_APPROVAL)]
    what, step = policy_error_text("prod", refusals, PolicyPlace.ALL)
    assert what.startswith("The policy of connection prod does not allow this: Action drain is")
    assert step == (
        "Resume the plan if it is paused, else trigger a new run, and have a person other than "
        "ann and bob approve it, or have the policies of all connections to the cluster changed; "
        "then ask again, by a new run."
    )
    _, step = policy_error_text("prod", refusals[:1], PolicyPlace.EXTRA)
    assert step.startswith("Ask for what is allowed, or have rehome.policy in the connection's ")


@pytest.mark.parametrize(
    ("aspect", "values", "text"),
    [
        (PolicyAspect.APPROVAL, (2, 0), "approval: another person's approval (a, c); no approv"),
        (PolicyAspect.UNTHROTTLED, (True, False), "without a throttle: allowed (a, c); not allow"),
        (PolicyAspect.LARGEST_THROTTLE, (5, None), "throttle: 5 bytes per second (a, c); any (b"),
        (
            PolicyAspect.BY_BROKER,
            (BrokerRates(), BrokerRates({3: 1_000})),
            "largest throttle of single brokers: any (a, c); ",
        ),
    ],
)
def test_each_difference_has_its_words(
    aspect: PolicyAspect, values: tuple[object, object], text: str
) -> None:
    connections = tuple(zip(values, (("a", "c"), ("b",)), strict=True))
    assert text in difference_text(PolicyDifference(aspect, connections))
