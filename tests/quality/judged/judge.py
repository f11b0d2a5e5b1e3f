"""A judge of plans that shares no code with the planner or its gate.

It reads a snapshot's rows, the moves of a plan and the fields of its request as plain Python, and
says what is wrong with the plan. It works out brokers, racks, disks, scopes, caps and broker sets
anew.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

Key = tuple[str, int]
ONLY_LEADERS = ("balance_leaders", "demote", "elect_preferred")
AS_WRITTEN = ("reassign", "rollback")
"""Actions whose targets a file says."""

CHANGE_FACTOR = ("set_replication_factor", *AS_WRITTEN)
TAKE_INTERNAL = (
    "drain",
    "replace",
    "evacuate_log_dirs",
    "fix_offline_replicas",
    "demote",
    "elect_preferred",
    *AS_WRITTEN,
)


@dataclass
class Facts:
    """What a snapshot says.

    :ivar replicas: partition → brokers, preferred leader first.
    :ivar size: partition → bytes of one replica.
    :ivar offline: replicas in failed log dirs.
    :ivar room: broker → bytes that may come; only where its disks are known.
    """

    replicas: dict[Key, list[int]] = field(default_factory=dict)
    size: dict[Key, int] = field(default_factory=dict)
    offline: set[tuple[Key, int]] = field(default_factory=set)
    rack: dict[int, tuple[str, ...]] = field(default_factory=dict)
    live: set[int] = field(default_factory=set)
    takes: set[int] = field(default_factory=set)
    internal: set[str] = field(default_factory=set)
    room: dict[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Any, min_free: float) -> Facts:
        """The facts of a snapshot of which each log dir keeps so much free."""
        facts = cls()
        for row in snapshot.brokers.to_pylist():
            facts.rack[row["broker"]] = tuple(row["rack_path"] or ())
            if row["live"]:
                facts.live.add(row["broker"])
        for row in snapshot.log_dirs.to_pylist():
            broker = row["broker"]
            if row["offline"] or row["cordoned"] or broker not in facts.live:
                continue
            facts.takes.add(broker)
            if row["total_bytes"] is not None and row["usable_bytes"] is not None:
                free = row["usable_bytes"] - min_free * row["total_bytes"]
                facts.room[broker] = facts.room.get(broker, 0.0) + max(free, 0.0)
        facts.internal = {row["topic"] for row in snapshot.topics.to_pylist() if row["internal"]}
        for row in sorted(snapshot.replicas.to_pylist(), key=lambda row: row["position"]):
            key = row["topic"], row["partition"]
            facts.replicas.setdefault(key, []).append(row["broker"])
            facts.size[key] = max(facts.size.get(key, 0), row["size_bytes"] or 0)
            if row["log_dir"] is None:
                facts.offline.add((key, row["broker"]))
        return facts


def faults(snapshot: Any, plan: Any, request: Any, min_free: float) -> list[str]:
    """What is wrong with a plan; empty = nothing."""
    facts = Facts.of(snapshot, min_free)
    after = {key: list(row) for key, row in facts.replicas.items()}
    said = {note.subject.name for note in plan.summary.infeasible}
    found: list[str] = []
    for move in plan.moves:
        key = (move.partition.topic, move.partition.partition)
        if facts.replicas.get(key) != list(move.current):
            return [f"{key}: the plan is of other replicas"]
        if after[key] != list(move.current):
            return [f"{key}: it moves twice"]
        after[key] = list(move.target)
        found += _of_move(facts, request, key, list(move.target), said)
    found += _of_racks(facts, after, request)
    found += _of_budget(facts, after, request)
    found += _of_brokers(facts, after, request)
    found += _of_summary(facts, after, plan.summary)
    return found


def _of_move(
    facts: Facts, request: Any, key: Key, target: list[int], said: set[str]
) -> Iterator[str]:
    """:param said: names of what the plan's notes are about."""
    current, action = facts.replicas[key], str(request.action.value)
    came, went = set(target) - set(current), set(current) - set(target)
    if len(set(target)) != len(target) or not target:
        yield f"{key}: {target} names a broker twice, or none"
    if came - facts.live:
        yield f"{key}: {came - facts.live} are not live"
    if came - facts.takes and action not in AS_WRITTEN:
        yield f"{key}: {came - facts.takes} take no replicas"
    if not in_scope(facts, request, key[0]):
        yield f"{key}: it is not asked for"
    if len(target) != len(current) and action not in CHANGE_FACTOR:
        yield f"{key}: {len(target)} replicas of {len(current)}"
    if action == "set_replication_factor" and len(target) != request.replication_factor:
        off = abs(len(target) - request.replication_factor)
        if off >= abs(len(current) - request.replication_factor):
            yield f"{key}: {len(target)} replicas, not {request.replication_factor}"
    yield from _of_action(facts, request, key, target, came, went)
    yield from _of_emptied(facts, request, key, target, said)
    yield from _of_limits(facts, request, key, came)


def _of_action(
    facts: Facts, request: Any, key: Key, target: list[int], came: set[int], went: set[int]
) -> Iterator[str]:
    action, named = str(request.action.value), set(request.brokers)
    if action in ONLY_LEADERS and (came or went):
        yield f"{key}: only leaders are to change"
    if action == "demote" and target[0] in named:
        yield f"{key}: a demoted broker leads it"
    current = facts.replicas[key]
    evened = _unevenness(facts, target) < _unevenness(facts, current)
    evened |= _may_be_more_even(facts, current) and not _may_be_more_even(facts, target)
    if action == "expand" and came - named and not evened:
        yield f"{key}: {came - named} are none of the new brokers"
    if action == "rebalance" and named and (came | went) - named:
        yield f"{key}: {(came | went) - named} take no part"
    if came & set(request.exclude_brokers):
        yield f"{key}: an excluded broker receives it"


def _of_emptied(
    facts: Facts, request: Any, key: Key, target: list[int], said: set[str]
) -> Iterator[str]:
    """Brokers that are drained or replaced, and replicas that are offline."""
    action, current = str(request.action.value), facts.replicas[key]
    came, went = set(target) - set(current), set(current) - set(target)
    if action == "drain" and set(request.brokers) & set(target):
        yield f"{key}: it stays on a drained broker, and moves"
    if action == "replace":
        replaced = went & set(request.replacements)
        named = {request.replacements[old] for old in replaced}
        if (went - replaced) & facts.live or (
            f"{key[0]}-{key[1]}" not in said and (not named <= came or len(came) != len(went))
        ):
            yield f"{key}: {went} are replaced by {came}, and nothing says why"
    if action == "fix_offline_replicas":
        well = {b for b in went if b in facts.live and (key, b) not in facts.offline}
        if well:
            yield f"{key}: it leaves {well}, where it is well"


def in_scope(facts: Facts, request: Any, topic: str) -> bool:
    """Whether a request is about a topic; internal ones are named in full."""
    if request.action.value in AS_WRITTEN:
        return True
    if any(fnmatchcase(topic, text) for text in request.exclude_topics):
        return False
    if not request.topics:
        return topic not in facts.internal or request.action.value in TAKE_INTERNAL
    if topic in facts.internal:
        return topic in request.topics
    return any(fnmatchcase(topic, text) for text in request.topics)


def _of_limits(facts: Facts, request: Any, key: Key, came: set[int]) -> Iterator[str]:
    """Broker sets, in which patterns name no internal topic, and destinations."""
    bound = None
    for chosen in request.broker_sets or ():
        by_pattern = any(fnmatchcase(key[0], text) for text in chosen.topics)
        named = key[0] in chosen.topics or (by_pattern and key[0] not in facts.internal)
        if bound is None and named:
            bound = chosen
    if bound is not None and came - set(bound.brokers):
        yield f"{key}: {came - set(bound.brokers)} are outside of its set"
    for chosen in request.broker_sets or ():
        if bound is None and chosen.exclusive and came & set(chosen.brokers):
            yield f"{key}: {came & set(chosen.brokers)} are of an exclusive set"
    if request.destinations and came - set(request.destinations):
        yield f"{key}: {came - set(request.destinations)} are no destinations"


def _of_racks(facts: Facts, after: Mapping[Key, list[int]], request: Any) -> Iterator[str]:
    """Replica sets that are as even over the first level of racks neither as they were nor as they
    can be. Where limits keep replicas off brokers, or some have no rack, this judge says nothing.
    """
    limited = request.caps or request.broker_sets or request.destinations or request.ignore_racks
    racked = all(facts.rack[b] for b in facts.live)
    if limited or not racked or request.action.value in AS_WRITTEN:
        return
    hosts = facts.takes - set(request.emptied) - set(request.exclude_brokers)
    arriving = _arriving(facts, after)
    for key, _ in _copies(facts, after):
        current, target, size = facts.replicas[key], after[key], facts.size[key]
        roomy = {b for b in hosts if size <= facts.room.get(b, size) - arriving.get(b, 0)}
        may = (hosts & set(target)) | (roomy - set(current))
        least = _fewest_in_one_rack(facts, may, len(target))
        if _most_in_one_rack(facts, target) > max(_most_in_one_rack(facts, current), least):
            yield f"{key}: {target} is spread worse over racks than {current}"


def _most_in_one_rack(facts: Facts, row: Sequence[int]) -> int:
    return max(Counter(facts.rack.get(b, ())[:1] for b in row).values())


def _unevenness(facts: Facts, row: Sequence[int]) -> list[int]:
    """Squares of the replicas in each rack that has racks beside it, level by level: smaller is
    more even.
    """
    squares = []
    for level in range(1, 1 + max(len(path) for path in facts.rack.values())):
        racks = {path[:level] for path in facts.rack.values()}
        beside = Counter(rack[: level - 1] for rack in racks)
        of_level = Counter(facts.rack.get(b, ())[:level] for b in row)
        squares.append(sum(n * n for rack, n in of_level.items() if beside[rack[: level - 1]] > 1))
    return squares


def _may_be_more_even(facts: Facts, row: Sequence[int]) -> bool:
    """Whether a rack has two replicas more than one beside it that has a broker for another."""
    for level in range(1, 1 + max(len(path) for path in facts.rack.values())):
        of_level = Counter(facts.rack.get(b, ())[:level] for b in row)
        free = {facts.rack[b][:level] for b in facts.live - set(row)}
        if any(
            n - of_level[rack] > 1
            for rack in free
            for full, n in of_level.items()
            if full[: level - 1] == rack[: level - 1]
        ):
            return True
    return False


def _fewest_in_one_rack(facts: Facts, hosts: set[int], replicas: int) -> int:
    """So many replicas some rack has to hold, however they are placed on these brokers."""
    room = Counter(facts.rack[b][:1] for b in hosts)
    for most in range(1, replicas + 1):
        if sum(min(most, count) for count in room.values()) >= replicas:
            return most
    return replicas


def _of_budget(facts: Facts, after: Mapping[Key, list[int]], request: Any) -> Iterator[str]:
    copies = dict(_copies(facts, after))
    moved = sum(len(came) for came in copies.values())
    copied = sum(len(came) * facts.size[key] for key, came in copies.items())
    if request.budget_bytes is not None and copied > request.budget_bytes:
        yield f"{copied} bytes are copied, of {request.budget_bytes}"
    if request.budget_moves is not None and moved > request.budget_moves:
        yield f"{moved} replicas are copied, of {request.budget_moves}"


def _copies(facts: Facts, after: Mapping[Key, list[int]]) -> Iterator[tuple[Key, set[int]]]:
    for key, row in after.items():
        came = set(row) - set(facts.replicas[key])
        if came:
            yield key, came


def _arriving(facts: Facts, after: Mapping[Key, list[int]]) -> dict[int, int]:
    """Broker → bytes that are copied to it."""
    arriving: dict[int, int] = defaultdict(int)
    for key, came in _copies(facts, after):
        for broker in came:
            arriving[broker] += facts.size[key]
    return arriving


def _of_brokers(facts: Facts, after: Mapping[Key, list[int]], request: Any) -> Iterator[str]:
    """Disks and caps."""
    arriving = _arriving(facts, after)
    for broker, size in arriving.items():
        if size > facts.room.get(broker, size):
            yield f"broker {broker}: {size} bytes do not fit"
    if not request.caps:
        return
    for name, count in (("replicas", None), ("leaders", 1)):
        before, now = (
            Counter(broker for row in rows.values() for broker in row[:count])
            for rows in (facts.replicas, after)
        )
        for broker, held in now.items():
            cap = _cap(request.caps, broker, name)
            if cap is not None and held > max(cap, before[broker]):
                yield f"broker {broker}: {held} {name}, of {cap}, and {before[broker]} before"


def _cap(caps: Any, broker: int, name: str) -> float | None:
    own: float | None = getattr(caps.brokers.get(broker), name, None)
    default: float | None = getattr(caps.default, name)
    return default if own is None else own


def _of_summary(facts: Facts, after: Mapping[Key, list[int]], summary: Any) -> Iterator[str]:
    copies = dict(_copies(facts, after))
    moved = sum(len(came) for came in copies.values())
    copied = sum(len(came) * facts.size[key] for key, came in copies.items())
    if (summary.replica_moves, summary.bytes_to_move) != (moved, copied):
        yield f"the summary says {summary.replica_moves} moves of {summary.bytes_to_move} bytes"
