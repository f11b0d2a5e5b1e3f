"""What is wrong with a plan's throttles, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rehome.domain.kafka_limits import LEAST_RATE
from rehome.domain.run.findings import Finding, FoundKind
from rehome.domain.text import bytes_text, count_text
from rehome.execution.dry_run.throttle_checks import ThrottleFound, ThrottleKind
from rehome.execution.throttle.keys import LIST_LIMIT, rate_name


def throttle_finding(found: ThrottleFound) -> Finding:
    """What was found of a throttle, as people read it."""
    return found.said(_TEXTS[found.kind](found), _STEPS[found.kind])


def _holds(found: ThrottleFound) -> str:
    rate = f"{rate_name(found.key)} {bytes_text(found.rate_bytes_per_s)}/s"
    return f"already has {rate}, set by another client, and the plan leaves it there"


def _held(found: ThrottleFound) -> str:
    whose = "of the busiest broker pass" if found.of_default else "pass through it"
    return f"{_holds(found)}: {bytes_text(found.size_bytes)} {whose} at that rate"


def _not_put_back(found: ThrottleFound) -> str:
    return (
        f"its {rate_name(found.key)} of {found.before} B/s is replaced, and stays so when the plan "
        f"has ended: the brokers refuse {found.mark}: {found.why}"
    )


_TEXTS: Mapping[FoundKind, Callable[[ThrottleFound], str]] = {
    ThrottleKind.STOPS_ALL: lambda found: (
        f"{found.rate_bytes_per_s} bytes per second would never move anything"
    ),
    ThrottleKind.STOPS_ONE: lambda found: (
        f"{found.rate_bytes_per_s} bytes per second ({found.direction}) would never move anything"
    ),
    ThrottleKind.OF_NO_BROKER: lambda _: (
        "has a throttle of its own by throttle_by_broker, and is no broker of the cluster that is "
        "alive"
    ),
    ThrottleKind.UNUSED: lambda _: (
        "has a throttle of its own by throttle_by_broker, and moves nothing in this plan"
    ),
    ThrottleKind.NO_THROTTLE: lambda found: (
        f"it runs without a throttle: {count_text(found.moves, 'move')} at once for each broker "
        f"and direction, and {count_text(found.partitions, 'partition')} in all, are the only "
        "limit of the copies"
    ),
    ThrottleKind.REFUSED: lambda found: f"its throttle would be refused: {found.why}",
    ThrottleKind.UNREADABLE: lambda found: f"its present throttle cannot be read: {found.why}",
    ThrottleKind.NOT_PUT_BACK: _not_put_back,
    ThrottleKind.HELD_AT_NOTHING: lambda found: f"{_holds(found)}: nothing would ever move",
    ThrottleKind.HELD: _held,
    ThrottleKind.LIST_FULL: lambda found: (
        f"other clients' items fill its {found.key}: {count_text(found.items, 'item')}, which "
        f"leave room for {found.room} of {LIST_LIMIT} characters, so "
        f"{count_text(found.moves, 'move')} could not be throttled"
    ),
}
_OF_ANOTHER = (
    "If that rate is a leftover (sweep_throttles names those), remove it and trigger a new run. "
    "Else ask its owner to raise it."
)
_STEPS: Mapping[FoundKind, str] = {
    ThrottleKind.STOPS_ALL: "Give a rate above the inflow of the partitions. Was it left to auto, "
    "the brokers have nothing to spare: set broker_capacity_bytes_per_s where they can take more.",
    ThrottleKind.STOPS_ONE: f"Give it {LEAST_RATE} bytes per second at least.",
    ThrottleKind.OF_NO_BROKER: "Correct the id, or leave it out.",
    ThrottleKind.UNUSED: "It is not set there.",
    ThrottleKind.NO_THROTTLE: "Clients of these brokers may suffer. Choose fewer moves at once "
    "(max_moves_per_broker), or have a throttle set where that is allowed.",
    ThrottleKind.REFUSED: "See docs/security.md for rights; correct the present configuration.",
    ThrottleKind.UNREADABLE: "Mend what the broker names, then trigger a new run: a throttle is "
    "only set where the one before it is known.",
    ThrottleKind.NOT_PUT_BACK: "When the plan has ended, set the rate that is wanted: until "
    "then it is listed as owed. Or have the brokers' policy allow keys on their default that begin "
    "with rehome.",
    ThrottleKind.HELD_AT_NOTHING: _OF_ANOTHER,
    ThrottleKind.HELD: _OF_ANOTHER,
    ThrottleKind.LIST_FULL: "Have their owner take items off that list that no reassignment in "
    "flight needs.",
}
