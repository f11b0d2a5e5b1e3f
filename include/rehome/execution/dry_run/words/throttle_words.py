"""What is wrong with a plan's throttles and cordons, in words."""

from __future__ import annotations

from rehome.domain.kafka_limits import LEAST_RATE
from rehome.domain.text import bytes_text, count_text
from rehome.execution.dry_run.typed_finding import FoundKind as Kind
from rehome.execution.dry_run.typed_finding import Texts, TypedFinding
from rehome.execution.throttle.cordon import CORDONS_NOT_KNOWN
from rehome.execution.throttle.keys import LIST_LIMIT, rate_name

_OWN = "has a throttle of its own by throttle_by_broker"


def _stops(finding: TypedFinding) -> str:
    rate = count_text(round(finding.rate_bytes_per_s), "byte per second", "bytes per second")
    where = f" ({finding.direction.value})" if finding.kind is Kind.THROTTLE_STOPS_BROKER else ""
    return f"{rate}{where} would never move anything"


def _holds(finding: TypedFinding) -> str:
    rate = f"{rate_name(finding.key)} {bytes_text(finding.rate_bytes_per_s)}/s"
    return f"already has {rate}, set by another client, and the plan leaves it there"


def _held_text(finding: TypedFinding) -> str:
    whose = "of the busiest broker pass" if not finding.brokers else "pass through it"
    return f"{_holds(finding)}: {bytes_text(finding.size_bytes)} {whose} at that rate"


def _not_put_back(finding: TypedFinding) -> str:
    return (
        f"its {rate_name(finding.key)} of {finding.value} B/s is replaced, and stays so when the "
        f"plan has ended: the brokers refuse {finding.mark}: {finding.why}"
    )


THROTTLE_TEXTS: Texts = {
    Kind.THROTTLE_STOPS_ALL: _stops,
    Kind.THROTTLE_STOPS_BROKER: _stops,
    Kind.THROTTLE_OF_NO_BROKER: f"{_OWN}, and is no broker of the cluster that is alive",
    Kind.THROTTLE_UNUSED: f"{_OWN}, and moves nothing in this plan",
    Kind.NO_THROTTLE: lambda finding: (
        f"it runs without a throttle: {count_text(finding.moves, 'move')} at once for each broker "
        f"and direction, and {count_text(finding.count, 'partition')} in all, are the only "
        "limit of the copies"
    ),
    Kind.THROTTLE_REFUSED: lambda finding: f"its throttle would be refused: {finding.why}",
    Kind.THROTTLE_UNREADABLE: lambda finding: f"its present throttle cannot be read: {finding.why}",
    Kind.RATE_NOT_PUT_BACK: _not_put_back,
    Kind.OTHERS_RATE_STOPS: lambda finding: f"{_holds(finding)}: nothing would ever move",
    Kind.OTHERS_RATE_HOLDS: _held_text,
    Kind.CORDON_REFUSED: lambda finding: f"its log dirs cannot be cordoned: {finding.why}",
    Kind.CORDON_NOT_KNOWN: f"its log dirs cannot be cordoned: {CORDONS_NOT_KNOWN}",
    Kind.CORDON_AWAY: "is not alive, so its log dirs cannot be cordoned",
    Kind.THROTTLE_LIST_FULL: lambda finding: (
        f"other clients' items fill its {finding.key}: "
        f"{count_text(finding.count, 'item, which leaves', 'items, which leave')} room for "
        f"{finding.most} of {LIST_LIMIT} characters, so "
        f"{count_text(finding.moves, 'move')} could not be throttled"
    ),
}
_OF_ANOTHER = (
    "If that rate is a leftover (sweep_throttles names those), remove it and trigger a new run. "
    "Else ask its owner to raise it."
)
THROTTLE_STEPS: Texts = {
    Kind.THROTTLE_STOPS_ALL: "Give a rate above the inflow of the partitions. Was it left to auto, "
    "the brokers have nothing to spare: set broker_capacity_bytes_per_s where they can take more.",
    Kind.THROTTLE_STOPS_BROKER: f"Give it {LEAST_RATE} bytes per second at least.",
    Kind.THROTTLE_OF_NO_BROKER: "Correct the id, or leave it out.",
    Kind.THROTTLE_UNUSED: "It is not set there.",
    Kind.NO_THROTTLE: "Clients of these brokers may suffer. Choose fewer moves at once "
    "(max_moves_per_broker), or have a throttle set where that is allowed.",
    Kind.THROTTLE_REFUSED: "See docs/security.md for rights; correct the present configuration.",
    Kind.THROTTLE_UNREADABLE: "Fix what the broker names, then trigger a new run: a throttle is "
    "only set where the one before it is known.",
    Kind.RATE_NOT_PUT_BACK: "When the plan has ended, set the rate that is wanted: until "
    "then it is listed as pending cleanup. Or have the brokers' policy allow keys on their default "
    "that begin with rehome.",
    Kind.OTHERS_RATE_STOPS: _OF_ANOTHER,
    Kind.OTHERS_RATE_HOLDS: _OF_ANOTHER,
    Kind.CORDON_REFUSED: "Leave the parameter cordon at no, or correct what the broker names.",
    Kind.CORDON_NOT_KNOWN: "Leave the parameter cordon at no.",
    Kind.CORDON_AWAY: "Nothing new is placed on it while it is away.",
    Kind.THROTTLE_LIST_FULL: "Have their owner take items off that list that no reassignment in "
    "flight needs.",
}
