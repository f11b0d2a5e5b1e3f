"""Whether what an account of a plan says is true when a poll has published it.

The world is looked at when a poll begins and when its account can be read: what the account says
has to have been so in between. What it says is not known cannot be false.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf, isclose
from typing import Any

from rehome.account.account import PlanAccount, account_of
from rehome.account.evidence import read_evidence
from rehome.account.known import Known
from rehome.domain.clock import utc_now
from rehome.domain.kafka import BrokerId, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.run.causes.hurts import HurtKind
from rehome.domain.run.observation import Observation
from rehome.domain.run.states import Control, PlanState
from rehome.execution.poll import Poll
from rehome.execution.progress.progress import admitted_moves
from world.judge.violations import Kind, Violation
from world.kafka.metadata import PartitionKey
from world.kafka.world_state import WorldState

BEHIND_S = 2.0
"""So far behind the controllers a broker may be that answers."""
SLACK_BYTES = 2.0
"""Brokers round the size of each replica down."""


@dataclass(frozen=True, slots=True)
class Sight:
    """The cluster at one moment, as far as a plan is concerned.

    :param held: bytes that the new replicas of each partition hold, in log dirs that are online, as
        far as its leader has them.
    """

    at: float
    held: Mapping[TopicPartition, float]

    @classmethod
    def of(cls, world: WorldState, moves: Collection[Move]) -> Sight:
        """Look at it."""
        return cls(world.now, {move.partition: _held(world, move) for move in moves})


def _held(world: WorldState, move: Move) -> float:
    key = PartitionKey(move.topic_id, move.partition.partition)
    state = world.image.partitions.get(key)
    leader = world.nodes.get(state.leader or 0) if state is not None else None
    source = leader.replicas.get(key) if leader is not None else None
    found = ((node, node.replicas.get(key)) for node in map(world.nodes.get, move.adding) if node)
    sizes = (r.log.size for node, r in found if r is not None and node.hosts(r))
    return sum(size if source is None else min(size, source.log.size) for size in sizes)


@dataclass
class Accounts:
    """Reads accounts, and keeps what was false in them.

    :ivar read: how many were.
    """

    world: WorldState
    violations: list[Violation] = field(default_factory=list)
    read: int = 0
    _received: dict[tuple[str, str], int] = field(default_factory=dict)

    def around(self, site: Any, plan: Any, ledger: Any, poll: Callable[[], Poll | None]) -> Any:
        """Make a poll, and judge the account that can be read after it."""
        key = site.name, plan.plan_id
        before = Sight.of(self.world, plan.moves)
        found = poll()
        if found is not None:
            after = Sight.of(self.world, plan.moves)
            with site.site.apart():
                account = account_of(read_evidence(ledger, plan.plan_id), utc_now())
            self.read += 1
            for what in self._false(key, plan, found, account, before, after):
                text = f"account of plan {plan.plan_id}: {what}"
                self.violations.append(Violation(Kind.FALSE_CLAIM, "account", text, after.at))
        return found

    def _false(
        self,
        key: tuple[str, str],
        plan: Any,
        found: Poll,
        account: PlanAccount,
        before: Sight,
        after: Sight,
    ) -> Iterator[str]:
        flying = admitted_moves(plan, found.view)
        whole = not any(move.relocating or _unread(move, found.observation) for move in flying)
        yield from _bytes(account)
        if account.seen_at == found.observation.taken_at and whole:
            yield from _copied(account, found, flying, before, after)
        received = account.bytes.received
        if isinstance(received, Known):
            if received.value < self._received.get(key, 0):
                yield f"{received.value} bytes were received, and more before"
            self._received[key] = received.value
        yield from _pace(account)
        dead, always = _fenced(self.world, before.at - BEHIND_S)
        named = {b for h in account.hurts if h.kind is HurtKind.DEAD_BROKERS for b in h.brokers}
        if wrong := named - dead:
            yield f"brokers {sorted(wrong)} are not alive; they were, all the time"
        needed = {broker for move in flying for broker in move.needs_alive} & always
        if needed and account.state is PlanState.RUNNING:
            if missed := needed - named:
                yield f"brokers {sorted(missed)} are dead, and moves need them: not said"
            if isinstance(account.ends, Known):
                yield f"it ends by itself, and brokers {sorted(needed)} are dead"
        if account.state is PlanState.RUNNING and Control.CANCEL not in account.controls:
            yield "a plan that runs cannot be cancelled"


def _unread(move: Move, seen: Observation) -> bool:
    """Whether the poll could not read all of its copies: what it has of them is from before."""
    away = set(move.adding) - seen.live_brokers | set(move.adding) & seen.missing.keys()
    return bool(away) or move.partition.topic in seen.unreadable


def _bytes(account: PlanAccount) -> Iterator[str]:
    found = account.bytes
    if not 0 <= found.fraction <= 1:
        yield f"{found.fraction} of the bytes are in place"
    if isinstance(found.copying, Known):
        copying = found.copying.value
        parts = found.planned - found.dropped + copying.grown - copying.shrunk
        if copying.total != parts:
            yield f"{copying.total} bytes in all; its parts make {parts}"
    if isinstance(account.ends, Known):
        ends = account.ends.value
        if not ends.least <= ends.likely <= ends.most:
            yield f"it ends from {ends.least} to {ends.most}, likely at {ends.likely}"


def _copied(
    account: PlanAccount, found: Poll, flying: Collection[Move], before: Sight, after: Sight
) -> Iterator[str]:
    """What copies in flight hold, which a poll has read while they went on. Of one that holds less
    afterwards, for its log dir has failed, the most that it held in between is not known.
    """
    if not isinstance(account.bytes.copying, Known):
        return
    copied = account.bytes.copying.value.in_place - found.view.done.in_place
    held = [(before.held[move.partition], after.held[move.partition]) for move in flying]
    least = sum(map(min, held))
    most = sum(now if now >= then else inf for then, now in held)
    slack = SLACK_BYTES * sum(len(move.adding) for move in flying)
    if not least - slack <= copied <= most + slack:
        yield f"{copied} bytes of copies in flight are in place; it was {least:.0f} to {most:.0f}"


def _pace(account: PlanAccount) -> Iterator[str]:
    if not isinstance(account.pace, Known):
        return
    pace = account.pace.value
    parts = sum(pace.partitions.values())
    if not isclose(pace.total, parts, rel_tol=1e-6, abs_tol=1.0):
        yield f"{pace.total} B/s in all; its partitions make {parts}"
    if sum(pace.out_of.values()) > sum(pace.into.values()) * (1 + 1e-6) + 1.0:
        yield "more is sent than received"


def _fenced(world: WorldState, since: float) -> tuple[set[BrokerId], set[BrokerId]]:
    """Brokers that were fenced at some time since then, and all the time."""
    now = {one.broker for one in world.image.brokers.values() if one.fenced}
    ever, always = set(now), set(now)
    for entry in reversed(world.log.entries):
        if entry.at < since:
            break
        for record in entry.records:
            if record.name == "brokers":
                ever.add(record.key)
                always.discard(record.key)
    return ever, always
