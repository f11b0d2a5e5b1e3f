"""What hurts a plan, in words: what it is, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from rehome.domain.run.causes.hurts import Hurt, HurtKind
from rehome.domain.text import brokers_are, brokers_text, count_text, join_names, second_text

_WAITS = frozenset(
    {
        *(HurtKind.WAITS_FOR_ROOM, HurtKind.WAITS_FOR_LEADER),
        *(HurtKind.WAITS_UNREAD, HurtKind.WAITS_FOR_WINDOW),
    }
)


def hurt_text(hurt: Hurt) -> tuple[str, str]:
    """What it is, and what to do about it, a sentence or two each."""
    as_of = f" That was so at {second_text(hurt.known_at)}." if hurt.known_at is not None else ""
    return f"{_TEXTS[hurt.kind](hurt)}{as_of}", _STEPS[hurt.kind]


def held_back_text(hurts: Iterable[Hurt]) -> str:
    """Why moves do not go on or do not start, after "Held back:"; "" = not known."""
    return "; ".join(_short(each) for each in hurts if each.holds or each.kind in _HOLD_BACK)


_HOLD_BACK = _WAITS | {HurtKind.DEAD_BROKERS, HurtKind.SILENT_BROKERS, HurtKind.OUTPACED}


def _short(hurt: Hurt) -> str:
    match hurt.kind:
        case HurtKind.DEAD_BROKERS:
            return f"{brokers_are(hurt.brokers)} not alive"
        case HurtKind.SILENT_BROKERS:
            return f"{brokers_text(hurt.brokers)} did not answer"
        case HurtKind.FOREIGN:
            why = f", and cannot end: {hurt.why}" if hurt.why else ""
            return f"another client's reassignment runs{why}"
    return hurt.why


def _not_polled(hurt: Hurt) -> str:
    last = "" if hurt.since is None else f" since {second_text(hurt.since)}"
    return f"No poll has read the cluster{last}: what is shown is as it was then."


def _dead(hurt: Hurt) -> str:
    waits = count_text(hurt.moves, "move of the plan needs", "moves of the plan need")
    which = "it" if len(hurt.brokers) == 1 else "them"
    needed = f" {waits} {which}." if hurt.moves else ""
    return f"{brokers_are(hurt.brokers).capitalize()} not alive.{needed}"


def _silent(hurt: Hurt) -> str:
    return f"{brokers_text(hurt.brokers).capitalize()} did not answer the newest poll: {hurt.why}."


def _partition_names(hurt: Hurt) -> str:
    more = [f"{hurt.more:,} more"] if hurt.more else []
    return join_names([*hurt.partitions, *more])


def _not_cancelled(hurt: Hurt) -> str:
    moves = count_text(hurt.moves, "move in flight", "moves in flight")
    return f"{moves} could not be cancelled ({_partition_names(hurt)}): {hurt.why}."


def _not_throttled(hurt: Hurt) -> str:
    moves = count_text(hurt.moves, "move in flight is", "moves in flight are")
    return f"{moves} not throttled as they have to be: {_partition_names(hurt)}."


def _taken_over(hurt: Hurt) -> str:
    moves = count_text(hurt.moves, "partition of the plan", "partitions of the plan")
    return f"Another client has reassigned {moves}."


def _foreign(hurt: Hurt) -> str:
    waits = " The plan starts nothing until that has ended." if hurt.holds else ""
    why = f" That reassignment cannot end: {hurt.why}." if hurt.why else ""
    return f"Another client reassigns {_partition_names(hurt)}.{waits}{why}"


def _waits(hurt: Hurt) -> str:
    moves = count_text(hurt.moves, "move waits", "moves wait") if hurt.moves else "Moves wait"
    return f"{moves}: {hurt.why}."


def _outpaced_text(hurt: Hurt) -> str:
    return f"Copies cannot catch up with producers: {hurt.why}."


def _alert(hurt: Hurt) -> str:
    return f"An alert is open: {hurt.alert.replace('_', ' ')}."


_TEXTS: Mapping[HurtKind, Callable[[Hurt], str]] = {
    HurtKind.NOT_POLLED: _not_polled,
    HurtKind.DEAD_BROKERS: _dead,
    HurtKind.SILENT_BROKERS: _silent,
    HurtKind.NOT_CANCELLED: _not_cancelled,
    HurtKind.NOT_THROTTLED: _not_throttled,
    HurtKind.THROTTLES_UNREAD: lambda hurt: f"Throttles could not be read: {hurt.why}.",
    HurtKind.TAKEN_OVER: _taken_over,
    HurtKind.FOREIGN: _foreign,
    HurtKind.WAITS_FOR_ROOM: _waits,
    HurtKind.WAITS_FOR_LEADER: _waits,
    HurtKind.WAITS_UNREAD: _waits,
    HurtKind.WAITS_FOR_WINDOW: _waits,
    HurtKind.OUTPACED: _outpaced_text,
    HurtKind.ALERT: _alert,
}
_STEPS: Mapping[HurtKind, str] = {
    HurtKind.NOT_POLLED: "See the log of task progress: the brokers do not answer, or Airflow's "
    "triggerer is away.",
    HurtKind.DEAD_BROKERS: "Start what is dead: the moves then go on by themselves. Or cancel the "
    "plan, and plan without dead brokers.",
    HurtKind.SILENT_BROKERS: "Check load and network there: each poll asks again.",
    HurtKind.NOT_CANCELLED: "Start the brokers that hold the old replicas: the controller is "
    "asked again about once a minute.",
    HurtKind.NOT_THROTTLED: "The next step sets the throttle again. Find out which client has "
    "changed it.",
    HurtKind.THROTTLES_UNREAD: "The next poll reads them again. If this stays, check the "
    "brokers named here.",
    HurtKind.TAKEN_OVER: "The plan goes on without these partitions. Kafka does not record which "
    "client has reassigned them: ask who runs other tools. To move them after all, trigger a new "
    "run when that reassignment has ended.",
    HurtKind.FOREIGN: "See it on the cluster's page, or with kafka-reassign-partitions --list. "
    "Wait for its end, have its owner end it, or cancel it with foreign_reassignments.",
    HurtKind.WAITS_FOR_ROOM: "Free disk space there, or cancel the plan and choose other brokers.",
    HurtKind.WAITS_FOR_LEADER: "Start the brokers that hold replicas of these partitions.",
    HurtKind.WAITS_UNREAD: "Check the broker or the topic named here: each poll reads it again.",
    HurtKind.WAITS_FOR_WINDOW: "These moves wait for the next window. With a higher throttle, "
    "more fit "
    "into this one.",
    HurtKind.OUTPACED: "Raise the throttle, or have producers write less.",
    HurtKind.ALERT: "",
}
