"""What is in flight, in words, for logs, pages and questions."""

from __future__ import annotations

from collections.abc import Iterator

from rehome.domain.text import (
    brokers_text,
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
    CancelOutlook,
    Hindrance,
    NeverEnds,
    another_target_text,
    back_text,
    hindrance_text,
)
from rehome.execution.progress.progress import status_table

LINES = 100
"""So many reassignments a log names."""
CANCELS = "by the client that started it, or by the DAG foreign_reassignments"
"""Who may cancel what another client has started."""


def changes_text(found: Flight) -> str:
    """What it adds and removes, and where it leads: ``adds broker 4, removes broker 1, …``."""
    entry, parts = found.entry, []
    if entry.adding:
        parts.append(f"adds {brokers_text(entry.adding)}")
    if entry.removing:
        parts.append(f"removes {brokers_text(entry.removing)}")
    return ", ".join([*parts, f"leads to {list(entry.target)}"])


def whose_text(found: Flight) -> str:
    """Who has started it, as far as that is known, and since when."""
    at = "not known" if found.since is None else second_text(found.since)
    if found.plan_id is not None:
        return f"of plan {found.plan_id}, started {at}"
    return f"of another client, which one is not known; first seen {at}"


def leader_text(found: Flight) -> str:
    """Who leads its partition now, and did when it was first seen."""
    if found.unread:
        return f"its leader is not known: {found.unread}"
    now = "no leader" if found.leader is None else f"leader {found.leader}"
    first = found.first_leader
    return now if first in (None, found.leader) else f"{now}, first {first}"


def bytes_left_text(found: Flight) -> str:
    """How far it is, how fast, and how long still."""
    if found.bytes_in_place is None or found.bytes_left is None:
        return "how far it is, is not known"
    whole = bytes_text(found.bytes_in_place + found.bytes_left)
    text = f"{bytes_text(found.bytes_in_place)} of {whole} in place"
    rate = found.rate_bytes_per_s
    pace = "rate unknown" if rate is None else f"{bytes_text(rate)}/s"
    left = "unknown" if found.eta_s is None else duration_text(found.eta_s)
    return f"{text}, {pace}, time left {left}"


def throttles_text(found: Flight) -> str:
    """The throttle of its leader, and of each new replica."""
    if not found.throttles:
        return "no throttle that is known"
    return "throttle: " + ", ".join(map(_throttle_text, found.throttles))


def _throttle_text(throttle: ReplicaThrottle) -> str:
    who = f"{'leader' if throttle.leads else 'broker'} {throttle.broker}"
    if not throttle.known:
        return f"{who} not known"
    rate = throttle.rate_bytes_per_s
    return f"{who} {'none' if rate is None else f'{bytes_text(rate)}/s'}"


def never_ends_text(found: Flight) -> str:
    """Why it cannot end, and what ends it; "" = it may end."""
    if found.hindrance is None:
        return ""
    return f"It cannot end: {hindrance_text(found.hindrance)}. {_ended_by(found.hindrance)}"


def _ended_by(found: Hindrance) -> str:
    """What ends a reassignment that cannot end as the brokers are."""
    again = back_text(found)
    back = again and f"It ends when {again}"
    match found.cancel:
        case CancelOutlook.REFUSED:
            return " ".join(filter(None, (back and f"{back}.", _refused_text(found))))
        case CancelOutlook.TAKEN if found.kind is NeverEnds.NO_SOURCE:
            return f"{back}. A cancel leaves the partition without a leader until then, too."
        case CancelOutlook.TAKEN:
            return (
                f"{back}, or by a cancel: {CANCELS}." if back else f"A cancel ends it: {CANCELS}."
            )
        case _:
            return f"{back}. Whether a cancel ends it is not known.".removeprefix(". ")


def _refused_text(found: Hindrance) -> str:
    another = another_target_text(found)
    return (
        "No replica of before is in sync: until one is, the controller refuses a cancel, unless "
        "the topic allows an unclean leader election."
        + (f" Kafka's own tool ends it by another target: {another}." if another else "")
    )


def flight_line(found: Flight) -> str:
    """All of it in one line."""
    parts = (
        whose_text(found),
        changes_text(found),
        leader_text(found),
        bytes_left_text(found),
        throttles_text(found),
    )
    return ". ".join(
        [f"{found.partition}: {'; '.join(parts)}", *filter(None, [never_ends_text(found)])]
    )


def described_lines(found: DescribedFlights) -> Iterator[str]:
    """All that is in flight, for a log: each described, and KIP-179's table."""
    count, ours = len(found.reassignments), 0
    ours = sum(each.plan_id is not None for each in found.reassignments)
    of_others = count_text(count - ours, "reassignment")
    yield (
        f"Cluster {found.cluster_id}, {second_text(found.taken_at)}: {of_others} of other "
        f"clients and {ours} of Rehome in flight, of those asked about; {found.others} others"
    )
    for each in found.reassignments[:LINES]:
        yield flight_line(each)
    if count > LINES:
        yield f"… and {count - LINES} more: ask for some of them by topics, partitions or brokers"
    if found.statuses:
        yield "\n" + status_table(found.statuses)


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
