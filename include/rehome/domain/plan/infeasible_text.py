"""Notes on what a plan cannot do, in sentences for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rehome.domain.plan.infeasible import Infeasible, Obstacle, Subject, SubjectKind
from rehome.domain.resources import MEASURED_AS, RESOURCE_NAMES, Resource
from rehome.domain.text import amount_text, count_text

_LEFT = "their partitions are left alone; fix_offline_replicas gives them new homes"

BUDGET_SPENT = "the movement budget does not pay for more"

_SENTENCES: Mapping[Obstacle, str] = {
    Obstacle.BUDGET: BUDGET_SPENT,
    Obstacle.FIXED_REPLICAS: "replicas that may not move hold more than the broker's share",
    Obstacle.TAKES_NO_REPLICAS: (
        "the broker takes no new replicas: it is excluded, is no destination, or its log dirs are "
        "cordoned"
    ),
    Obstacle.DISK_FULL: "the broker's disk does not hold its share",
    Obstacle.CAP: "the broker's cap is below its share",
    Obstacle.ABOVE_CAP: "it ends above its cap, as it was before, or lower",
    Obstacle.CAPS_TOO_LOW: (
        "the caps of its live brokers together are lower: raise caps, or add brokers"
    ),
    Obstacle.CAPS_KEEP_UNEVEN: (
        "caps keep it off the brokers that would spread it more evenly over the racks"
    ),
    Obstacle.DISKS_KEEP_UNEVEN: (
        "the brokers that would spread it more evenly over the racks have no disk space for it"
    ),
    Obstacle.CLOSED_KEEP_UNEVEN: (
        "the brokers that would spread it more evenly over the racks are excluded, are no "
        "destinations, or are cordoned"
    ),
    Obstacle.SET_TOO_SMALL: (
        "its broker set has fewer live brokers than it is to have replicas: left alone"
    ),
    Obstacle.ONE_REPLICA_PER_BROKER: (
        "one replica of each partition that may move is all that a broker can hold"
    ),
    Obstacle.NO_MOVE: (
        "no move or swap of whole replicas that racks, disks, the other brokers and the spread of "
        "topics allow was found that brings it closer"
    ),
    Obstacle.NO_LEADER_CHANGE: (
        "no change of leader between replicas in sync that the other brokers and the spread of "
        "topics allow was found that brings it closer"
    ),
    Obstacle.MIN_LEADERS_FIRST: (
        "leaders were evened out, and then handed over where min_leaders asks for it"
    ),
    Obstacle.TOO_FEW_PARTITIONS: "the topic has too few partitions for each broker to lead as many",
    Obstacle.NO_OTHER_LEADER: (
        "no broker that is not demoted has a replica of it in sync: it keeps its leader"
    ),
    Obstacle.PREFERRED_OUT_OF_SYNC: (
        "its preferred leader is not in sync and cannot lead now: left alone"
    ),
    Obstacle.SHIFTED_SHARE: (
        "racks, disks, caps, replicas that may not move or a partition larger than a share shift "
        "what it can hold"
    ),
    Obstacle.PLANNED_IN_PARTS: (
        "a cluster of this size is planned in parts, which see no whole topic"
    ),
    Obstacle.IN_FLIGHT: "it is being reassigned already: left alone",
    Obstacle.LOG_DIR_MOVE_IN_FLIGHT: "a replica is moving between log dirs already: left alone",
    Obstacle.NO_SOURCE: "it has no live leader to copy from: left alone",
    Obstacle.TOO_FEW_ONLINE: (
        "not enough of its replicas are online: left alone; see fix_offline_replicas"
    ),
    Obstacle.NO_BROKER: (
        "no broker is left that holds none of it, takes replicas and has room: left alone; add "
        "one, free disk, or lower its replication factor"
    ),
    Obstacle.BROKER_NOT_LIVE: f"it is not live: {_LEFT}",
    Obstacle.LOG_DIR_FAILED: f"a log dir of it has failed: {_LEFT}",
    Obstacle.IN_SYNC_FIRST: (
        "replicas in sync are kept, though others would spread it more evenly over the racks, or "
        "lie in its broker set"
    ),
    Obstacle.NO_LONGER_EXISTS: "it no longer exists",
    Obstacle.TOPIC_RECREATED: "its topic was deleted and created again since the plan",
}

_OF_A_RACK: Mapping[Obstacle, str] = {
    Obstacle.TAKES_NO_REPLICAS: (
        "brokers of it take no new replicas: they are excluded, are no destinations, or their log "
        "dirs are cordoned"
    ),
    Obstacle.DISK_FULL: "the disks of its brokers do not hold its share",
    Obstacle.CAP: "the caps of its brokers are below its share",
}

_OF_A_LOG_DIR: Mapping[Obstacle, str] = {
    Obstacle.TAKES_NO_REPLICAS: "it is cordoned and takes no replicas",
    Obstacle.DISK_FULL: "its free space does not hold its share",
    Obstacle.NO_MOVE: (
        "no move or swap of whole replicas that the log dirs have room for was found that brings "
        "it closer"
    ),
}

_OF_A_TOPIC: Mapping[Obstacle, str] = {
    Obstacle.NO_MOVE: (
        "no move of its replicas that the bands, racks and disks allow was found that brings it "
        "closer"
    ),
    Obstacle.SHIFTED_SHARE: (
        "racks, capacities and replicas that stay shift what brokers can hold of it"
    ),
}

_OF_MIN_LEADERS: Mapping[Obstacle, str] = {
    Obstacle.NO_MOVE: (
        "no change of leader, and no copy of one replica that the racks and disks allow, was found "
        "that brings it closer"
    ),
}

_BY_KIND = {
    SubjectKind.RACK: _OF_A_RACK,
    SubjectKind.MIN_LEADERS: _OF_MIN_LEADERS,
    SubjectKind.LOG_DIR: _OF_A_LOG_DIR,
    SubjectKind.TOPIC: _OF_A_TOPIC,
}


def _fixed_text(item: Infeasible) -> str:
    if not item.amount:
        return _SENTENCES[Obstacle.FIXED_REPLICAS]
    return f"replicas that may not move hold {_amount(item)}"


def _of_a_rack(item: Infeasible) -> str:
    less = item.obstacle is Obstacle.RACKS_ALLOW_NO_MORE
    does = "allow no more" if less else "force more"
    spread = f"even spread over racks, and replicas that stay, {does}"
    if not item.amount:
        return f"{spread} in this rack"
    brokers = count_text(round(item.amount), "broker")
    lacking = "other racks have less capacity" if less else "it has less capacity than others"
    return f"{spread} on its {brokers}: {lacking}"


def _large(item: Infeasible) -> str:
    if item.subject.kind is SubjectKind.LOG_DIR:
        return f"a replica of {_amount(item)} is larger than its share"
    return f"partition {item.partition} ({_amount(item)}) is larger than its share"


def _replaced_elsewhere(item: Infeasible) -> str:
    (new,), (meant,) = item.brokers, item.instead_of
    cause = {
        Obstacle.REPLACEMENT_HOLDS_ONE: "has a replica of it already",
        Obstacle.REPLACEMENT_RACKS: "would spread it less evenly over the racks",
        Obstacle.REPLACEMENT_FULL: "has no room for it",
        Obstacle.REPLACEMENT_LIMITED: "may not have it by a cap or its broker set",
    }[item.obstacle]
    return f"broker {meant} {cause}: broker {new} takes the place instead"


def _amount(item: Infeasible) -> str:
    return amount_text(item.resource or Resource.BYTES, item.amount)


_WITH_FIGURES: Mapping[Obstacle, Callable[[Infeasible], str]] = {
    Obstacle.FIXED_REPLICAS: _fixed_text,
    Obstacle.RACKS_ALLOW_NO_MORE: _of_a_rack,
    Obstacle.RACKS_FORCE_MORE: _of_a_rack,
    Obstacle.LARGE_PARTITION: _large,
    Obstacle.MOVED_SINCE: lambda item: (
        f"something else moved it to {list(item.brokers)} since the plan"
    ),
    Obstacle.OUTSIDE_SET: lambda item: (
        f"replicas stay on brokers {list(item.brokers)}, which are not of its broker set: no "
        "broker of the set that takes part has room by disk and caps and keeps the racks as even, "
        "it may not move, or the budget is spent"
    ),
    Obstacle.OUTSIDE_DESTINATIONS: lambda item: (
        f"replicas stay on brokers {list(item.brokers)}, which are no destinations: no destination "
        "has room by disk and caps, it may not move, or the budget is spent"
    ),
    Obstacle.WAY_BACK_NOT_LIVE: lambda item: (
        f"brokers {list(item.brokers)}, to which it would go back, are not live: left alone"
    ),
    Obstacle.IN_SYNC_KEPT: lambda item: (
        f"replicas in sync are kept: {list(item.brokers)} instead of {list(item.instead_of)}"
    ),
    Obstacle.REPLACEMENT_HOLDS_ONE: _replaced_elsewhere,
    Obstacle.REPLACEMENT_RACKS: _replaced_elsewhere,
    Obstacle.REPLACEMENT_FULL: _replaced_elsewhere,
    Obstacle.REPLACEMENT_LIMITED: _replaced_elsewhere,
    Obstacle.OTHER: lambda item: item.text,
}


def subject_text(subject: Subject) -> str:
    """What a note is about: ``broker 3``, ``rack /a``, ``payments-0``."""
    broker = "" if subject.broker is None else f"broker {subject.broker}"
    match subject.kind:
        case SubjectKind.BROKER:
            return broker
        case SubjectKind.LOG_DIR:
            return f"{broker}, {subject.name}"
        case SubjectKind.RACK | SubjectKind.TOPIC:
            return f"{subject.kind} {subject.name}"
        case SubjectKind.BROKER_SET:
            return f"broker set {subject.name}" if subject.name else "all brokers"
        case SubjectKind.ALL_TOPICS:
            return "all topics"
        case SubjectKind.MIN_LEADERS:
            return f"topic {subject.name}" + (f" on {broker}" if broker else "")
        case SubjectKind.OFFLINE_REPLICAS:
            return f"offline replicas of {broker}" if broker else "offline replicas"
        case SubjectKind.REPLICATION_FACTOR:
            return f"replication factor {subject.name}"
        case SubjectKind.RACK_REPAIR:
            return "repair of racks"
        case _:
            return subject.name


def obstacle_text(item: Infeasible) -> str:
    """Why: ``number of replicas: the movement budget does not pay for more``."""
    made = _WITH_FIGURES.get(item.obstacle)
    if made is not None:
        sentence = made(item)
    else:
        of_kind = _BY_KIND.get(item.subject.kind, {})
        sentence = of_kind.get(item.obstacle) or _SENTENCES[item.obstacle]
    return "".join(f"{part}: " for part in _measure_texts(item)) + sentence


def _measure_texts(item: Infeasible) -> list[str]:
    """What the target measures and where, ahead of the sentence."""
    kind = item.subject.kind
    if kind is SubjectKind.ALL_TOPICS:
        return ["topic_spread"]
    if kind is SubjectKind.MIN_LEADERS:
        return ["min_leaders"]
    if kind is SubjectKind.TOPIC:
        others = f" and {item.others} more" if item.others else ""
        leaders = ["leaders"] if item.resource is Resource.LEADERS else []
        return ["topic_spread", f"on broker {item.brokers[0]}{others}", *leaders]
    if item.obstacle is Obstacle.BUDGET and item.resource is None:
        return ["partitions left as they are"]
    if item.resource is None or item.resource is Resource.BYTES:
        return []
    return [RESOURCE_NAMES[item.resource]]


def infeasible_text(item: Infeasible) -> str:
    """A note as one line: what it is about, why, what was wanted, and the nearest reached."""
    limit, nearest = (_in_unit(item, amount) for amount in (item.wanted, item.nearest))
    if limit == nearest and item.wanted != item.nearest:
        side = "more" if item.nearest > item.wanted else "less"
        nearest = f"{_in_unit(item, abs(item.nearest - item.wanted))} {side}"
    subject = subject_text(item.subject)
    return f"{subject}: {obstacle_text(item)} (wanted {limit}, nearest {nearest})"


def _in_unit(item: Infeasible, amount: float) -> str:
    if item.resource is None or MEASURED_AS[item.resource] is Resource.REPLICAS:
        return f"{amount:g}"
    return amount_text(item.resource, amount)
