"""The sentence that says why a partition moves, from its causes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rehome.domain.plan.causes.move_cause import CauseCode, HeldLoad, MoveCause
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.resources import Resource
from rehome.domain.text import amount_text, brokers_are, brokers_text, count_text

_WHICH = {
    Resource.BYTES_IN: " taken in",
    Resource.POTENTIAL_BYTES_OUT: " to send if every replica on it led",
}
"""For rates: which rate an amount is."""

_INSTEAD = {
    CauseCode.REPLACEMENT_HOLDS_ONE: "holds a replica already",
    CauseCode.REPLACEMENT_RACKS: "would spread it less evenly over the racks",
    CauseCode.REPLACEMENT_FULL: "has no room for it",
    CauseCode.REPLACEMENT_LIMITED: "may not have it by a cap or its broker set",
}

_Causes = Sequence[MoveCause]


def why_text(move: Move) -> str:
    """Why the partition moves, for a person; "" = that is not known."""
    if not move.causes:
        return ""
    made = _OF_MOVE.get(move.causes[0].code)
    if made is None and move.reason is MoveReason.DRAIN:
        made = _lost_places
    text = made(move, move.causes) if made else _clauses(move, move.causes)
    return text[:1].upper() + text[1:]


def _clauses(move: Move, causes: _Causes) -> str:
    return "; ".join(_OF_COPY[cause.code](move, cause) for cause in causes) + "."


# ---------------------------------------------------------------- of a whole move


def _replication_factor(move: Move, causes: _Causes) -> str:
    change = f"replication factor {len(move.current)} becomes {len(move.target)}"
    if len(move.current) > len(move.target):
        return f"{change}; leaves {brokers_text(move.removing)}."
    return (
        f"{change}: {brokers_are(move.adding)} next on the rings of the rack tree, branches that "
        "are fuller than their siblings passed over."
    )


def _uneven_racks(move: Move, causes: _Causes) -> str:
    return f"its replicas were not spread evenly over racks; {_new_places(move)}."


def _outside_set(move: Move, causes: _Causes) -> str:
    code, name = causes[0].code, causes[0].name
    by = f"its broker set {name}" if name else "an exclusive broker set of other topics"
    if code is CauseCode.OUTSIDE_DESTINATIONS:
        by = "the destinations"
    return f"{brokers_text(_brokers(causes, code))} may not hold it by {by}; {_new_places(move)}."


def _lost_places(move: Move, causes: _Causes) -> str:
    """Of a drain, and of replicas that are offline."""
    drained, dead, failed = (
        _brokers(causes, code)
        for code in (CauseCode.DRAINED, CauseCode.NOT_LIVE, CauseCode.LOG_DIR_FAILED)
    )
    if drained:
        besides = f", and {brokers_text(dead)} not live" if dead else ""
        if others := _brokers(causes, CauseCode.RACKS_OF_MOVED):
            besides += f", and racks or broker sets allow it on {brokers_text(others)} no more"
        return f"{brokers_are(drained)} drained{besides}; {_new_places(move)}."
    lost = [f"{brokers_are(dead)} not live"] if dead else []
    lost += [f"a log dir of {brokers_text(failed)} has failed"] if failed else []
    in_sync = "?" if move.in_sync < 0 else move.in_sync
    return f"{' and '.join(lost)}, {in_sync} of its replicas in sync; {_new_places(move)}."


def _replaced_text(move: Move, causes: _Causes) -> str:
    came = dict(zip(move.current, move.target, strict=True))
    return "; ".join(_replacement(cause, came) for cause in causes) + "."


def _replacement(cause: MoveCause, came: Mapping[int, int]) -> str:
    taker = None if cause.broker is None else came.get(cause.broker)
    place = f"broker {taker} takes its place"
    if cause.code is CauseCode.NOT_LIVE:
        return f"broker {cause.broker} is not live; {place}"
    replacement = f"broker {cause.broker} is replaced by broker {cause.takes}"
    if cause.code is CauseCode.REPLACED:
        return f"{replacement}, which takes its place"
    return f"{replacement}, which {_INSTEAD[cause.code]}; {place}"


def _emptied_text(move: Move, causes: _Causes) -> str:
    reasons = []
    for cause in causes:
        there = f"{cause.name} of broker {cause.broker} is emptied"
        if cause.takes_name:
            reasons.append(f"{there}; {cause.takes_name} has room")
        else:
            instead = brokers_text(move.adding)
            reasons.append(f"{there}, and no other log dir there has room; it goes to {instead}")
    return ". ".join(reasons) + "."


def _log_dirs(move: Move, causes: _Causes) -> str:
    return " ".join(
        f"On broker {cause.broker}, {cause.name} held {_of_share(cause.held)}, and "
        f"{cause.takes_name} {_of_share(cause.takes_held, short=True)}."
        for cause in causes
    )


def _demoted_text(move: Move, causes: _Causes) -> str:
    leader = brokers_text(move.target[:1])
    new = f"{leader} has its data in sync and leads it"
    if move.target[:1] == move.current[:1]:
        new = f"{leader}, which is preferred already, is elected"
    gone = brokers_are(_brokers(causes, CauseCode.DEMOTED))
    return f"{gone} demoted; {new}. Nothing is copied."


def _preferred_text(move: Move, causes: _Causes) -> str:
    (cause,) = causes
    leads = "no broker leads it" if cause.takes is None else f"broker {cause.takes} leads it"
    able = f"broker {cause.broker} is its preferred leader and in sync"
    return f"{able}, but {leads}. Nothing is copied."


def _leads_more(move: Move, causes: _Causes, than: str = "partitions") -> str:
    (cause,) = causes
    return (
        f"broker {cause.broker} leads more {than} than broker {cause.takes}; "
        "only the order of replicas changes."
    )


def _in_place(move: Move, causes: _Causes, end: str) -> str:
    (cause,) = causes
    return f"broker {cause.takes} leads in place of broker {cause.broker}, {end}"


def _min_leaders_copy(move: Move, causes: _Causes) -> str:
    (cause,) = causes
    return (
        f"broker {cause.takes} leads fewer partitions of the topic than min_leaders asks for, and "
        "no change of leader helps; it gets a replica and leads."
    )


_OF_MOVE: Mapping[CauseCode, Callable[[Move, _Causes], str]] = {
    CauseCode.REQUESTED: lambda move, causes: "named in the requested reassignment.",
    CauseCode.FOREIGN: lambda move, causes: "started by another client.",
    CauseCode.TAKEN_BACK: lambda move, causes: "taken back to where it was before the plan.",
    CauseCode.STORED_SENTENCE: lambda move, causes: causes[0].name,
    CauseCode.REPLICATION_FACTOR: _replication_factor,
    CauseCode.UNEVEN_RACKS: _uneven_racks,
    CauseCode.OUTSIDE_SET: _outside_set,
    CauseCode.OUTSIDE_DESTINATIONS: _outside_set,
    CauseCode.DRAINED: _lost_places,
    CauseCode.LOG_DIR_FAILED: _lost_places,
    CauseCode.NOT_LIVE: lambda move, causes: (
        _replaced_text if move.reason is MoveReason.REPLACE else _lost_places
    )(move, causes),
    CauseCode.REPLACED: _replaced_text,
    **dict.fromkeys(_INSTEAD, _replaced_text),
    CauseCode.LOG_DIR_EMPTIED: _emptied_text,
    CauseCode.LOG_DIR_OVER_SHARE: _log_dirs,
    CauseCode.DEMOTED: _demoted_text,
    CauseCode.PREFERRED_LEADER: _preferred_text,
    CauseCode.LEADS_MORE: _leads_more,
    CauseCode.LEADS_MORE_TRAFFIC: lambda move, causes: _leads_more(
        move, causes, "partitions, or more traffic,"
    ),
    CauseCode.LEADERS_EVENED: lambda move, causes: _in_place(
        move, causes, "to even out leaders; nothing is copied."
    ),
    CauseCode.MIN_LEADERS: lambda move, causes: _in_place(
        move, causes, "for min_leaders; only the order of replicas changes."
    ),
    CauseCode.MIN_LEADERS_COPY: _min_leaders_copy,
}

# ---------------------------------------------------------------- of one copy of a rebalance


def _over_share(move: Move, cause: MoveCause) -> str:
    taker = f"broker {cause.takes}"
    if cause.takes_held is not None:
        taker += f", which held {_of_share(cause.takes_held)},"
    return f"broker {cause.broker} held {_of_share(cause.held)}; {taker} takes its place"


def _under_share(move: Move, cause: MoveCause) -> str:
    load = _of_share(cause.takes_held)
    taker = f"broker {cause.takes}, which held {load},"
    return f"{taker} takes the place of broker {cause.broker}, which can spare it"


def _topic_spread(move: Move, cause: MoveCause) -> str:
    has = cause.takes_held.amount if cause.takes_held else 0
    replicas = count_text(int(cause.held.amount if cause.held else 0), "replica")
    topic = move.partition.topic
    return (
        f"broker {cause.broker} held {replicas} of {topic} and broker {cause.takes} {has:.0f}: "
        "it takes one over"
    )


def _for_racks(move: Move, cause: MoveCause) -> str:
    place = f"the place of broker {cause.broker}"
    return f"broker {cause.takes} takes {place} for the racks of this partition"


def _to_destination(move: Move, cause: MoveCause) -> str:
    none = f"broker {cause.broker} is no destination of this rebalance"
    return f"{none}; broker {cause.takes} takes its place"


_OF_COPY: Mapping[CauseCode, Callable[[Move, MoveCause], str]] = {
    CauseCode.OVER_SHARE: _over_share,
    CauseCode.UNDER_SHARE: _under_share,
    CauseCode.TOPIC_SPREAD: _topic_spread,
    CauseCode.RACKS_OF_MOVED: _for_racks,
    CauseCode.NO_DESTINATION: _to_destination,
}


def _new_places(move: Move) -> str:
    """The targets of the copies, as a part of a sentence."""
    if not move.adding:
        return "no copy is made"
    role = "takes its place" if len(move.adding) == 1 else "take their places"
    return f"{brokers_text(move.adding)}, the least loaded that the racks allow, {role}"


def _of_share(load: HeldLoad | None, *, short: bool = False) -> str:
    if load is None:
        return ""
    resource, of = load.resource, "of" if short else "of a share of"
    amounts = (amount_text(resource, amount) for amount in (load.amount, load.share))
    return f"{_WHICH.get(resource, '')} {of} ".join(amounts)


def _brokers(causes: _Causes, code: CauseCode) -> list[int]:
    return [c.broker for c in causes if c.code is code and c.broker is not None]
