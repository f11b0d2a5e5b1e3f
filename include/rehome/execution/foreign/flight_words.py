"""What is in flight, in words, for logs, pages and questions."""

from __future__ import annotations

from collections.abc import Iterator

from rehome.domain.text import (
    bytes_text,
    count_text,
    duration_text,
    first_names,
    named_errors,
    second_text,
)
from rehome.execution.foreign.cancel_foreign import ForeignCancelled
from rehome.execution.foreign.in_flight import Flight, ReplicaThrottle
from rehome.execution.foreign.read_flights import DescribedFlights
from rehome.execution.observation.foreign_reassignments import (
    CANCELS,
    CancelOutlook,
    Hindrance,
    NeverEnds,
    another_target_text,
    back_text,
    changes_text,
    hindrance_text,
)
from rehome.execution.progress.progress import status_table

LINES = 100
"""So many reassignments a log names."""


def whose_text(flight: Flight) -> str:
    """Who has started it, as far as that is known, and since when."""
    at = "not known" if flight.since is None else second_text(flight.since)
    if flight.plan_id is not None:
        return f"of plan {flight.plan_id}, started {at}"
    return f"of another client, which one is not known; first seen {at}"


def leader_text(flight: Flight) -> str:
    """Who leads its partition now, and did when it was first seen."""
    if flight.unread:
        return f"its leader is not known: {flight.unread}"
    now = "no leader" if flight.leader is None else f"leader {flight.leader}"
    first = flight.first_leader
    return now if first in (None, flight.leader) else f"{now}, first {first}"


def bytes_left_text(flight: Flight) -> str:
    """How far it is, how fast, and how long still."""
    if flight.bytes_in_place is None or flight.bytes_left is None:
        return "how far it is, is not known"
    whole = bytes_text(flight.bytes_in_place + flight.bytes_left)
    text = f"{bytes_text(flight.bytes_in_place)} of {whole} in place"
    rate = flight.rate_bytes_per_s
    pace = "rate unknown" if rate is None else f"{bytes_text(rate)}/s"
    left = "unknown" if flight.eta_s is None else duration_text(flight.eta_s)
    return f"{text}, {pace}, time left {left}"


def throttles_text(flight: Flight) -> str:
    """The throttle of its leader, and of each new replica."""
    if not flight.throttles:
        return "no throttle that is known"
    return "throttle: " + ", ".join(map(_throttle_text, flight.throttles))


def _throttle_text(throttle: ReplicaThrottle) -> str:
    who = f"{'leader' if throttle.leads else 'broker'} {throttle.broker}"
    if not throttle.is_known:
        return f"{who} not known"
    rate = throttle.rate_bytes_per_s
    return f"{who} {'none' if rate is None else f'{bytes_text(rate)}/s'}"


def never_ends_text(flight: Flight) -> str:
    """Why it cannot end, and what ends it; "" = it may end."""
    if flight.hindrance is None:
        return ""
    return f"It cannot end: {hindrance_text(flight.hindrance)}. {_ended_by(flight.hindrance)}"


def _ended_by(hindrance: Hindrance) -> str:
    """What ends a reassignment that cannot end as the brokers are."""
    again = back_text(hindrance)
    back = again and f"It ends when {again}"
    match hindrance.cancel:
        case CancelOutlook.REFUSED:
            return " ".join(filter(None, (back and f"{back}.", _refused_text(hindrance))))
        case CancelOutlook.TAKEN if hindrance.kind is NeverEnds.NO_SOURCE:
            return f"{back}. A cancel leaves the partition without a leader until then, too."
        case CancelOutlook.TAKEN:
            return (
                f"{back}, or by a cancel: {CANCELS}." if back else f"A cancel ends it: {CANCELS}."
            )
        case _:
            return f"{back}. Whether a cancel ends it is not known.".removeprefix(". ")


def _refused_text(hindrance: Hindrance) -> str:
    another = another_target_text(hindrance)
    return (
        "No replica of before is in sync: until one is, the controller refuses a cancel, unless "
        "the topic allows an unclean leader election."
        + (f" Kafka's own tool ends it by another target: {another}." if another else "")
    )


def flight_line(flight: Flight) -> str:
    """All of it in one line."""
    parts = (
        whose_text(flight),
        changes_text(flight.entry),
        leader_text(flight),
        bytes_left_text(flight),
        throttles_text(flight),
    )
    return ". ".join(
        [f"{flight.partition}: {'; '.join(parts)}", *filter(None, [never_ends_text(flight)])]
    )


def described_lines(flights: DescribedFlights) -> Iterator[str]:
    """All that is in flight, for a log: each described, and KIP-179's table."""
    count, ours = len(flights.reassignments), 0
    ours = sum(each.plan_id is not None for each in flights.reassignments)
    of_others = count_text(count - ours, "reassignment")
    yield (
        f"Cluster {flights.cluster_id}, {second_text(flights.taken_at)}: {of_others} of other "
        f"clients and {ours} of Rehome in flight, of those asked about; {flights.others} others"
    )
    for each in flights.reassignments[:LINES]:
        yield flight_line(each)
    if count > LINES:
        yield f"… and {count - LINES} more: ask for some of them by topics, partitions or brokers"
    if flights.statuses:
        yield "\n" + status_table(flights.statuses)


def cancelled_lines(done: ForeignCancelled) -> Iterator[str]:
    """What has become of reassignments that were to be cancelled."""
    yield f"{count_text(len(done.cancelled), 'reassignment')} of other clients cancelled"
    if done.ended:
        ended = ", ".join(f"{p} ({state})" for p, state in sorted(done.ended.items()))
        yield f"ended before that: {ended}"
    if done.unordered:
        names = first_names([str(partition) for partition in done.unordered])
        yield f"in which order the replicas were before is not known, of {names}"
    if done.unread:
        yield f"their replicas could not be read: {named_errors(done.unread)}"
    if done.left:
        yield f"still in flight: {named_errors(done.left)}"
