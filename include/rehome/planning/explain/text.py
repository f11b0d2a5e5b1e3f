"""Explanations as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rehome.domain.plan.causes.cause_text import why_text
from rehome.domain.plan.figures import TargetPrice
from rehome.domain.plan.infeasible import SubjectKind
from rehome.domain.plan.infeasible_text import infeasible_text
from rehome.domain.plan.move import Move
from rehome.domain.resources import RESOURCE_NAMES, Resource
from rehome.domain.text import amount_text, brokers_text, bytes_text, count_text, join_names
from rehome.planning.explain.explanation import (
    BrokerAsTarget,
    BrokerExplained,
    CopyExplained,
    PartitionExplained,
    Verdict,
)

_SHOWN = 10
"""The most items of a list that are written out."""


def partition_text(explanation: PartitionExplained) -> str:
    """Why a partition moves as it does, or stays."""
    return "\n".join(_partition_lines(explanation))


def prices_text(prices: Sequence[TargetPrice]) -> str:
    """What each target costs."""
    if not prices:
        return "No target of this plan has a price."
    return "\n".join(
        ["What each target costs; so much less would be copied without it:", *map(_price, prices)]
    )


def _price(price: TargetPrice) -> str:
    target = price.resource.replace("_", " ")
    if price.method == "free":
        return f"  {target}: nothing is copied for it"
    about = "at least " if price.method == "at_least" else ""
    replicas = count_text(price.replica_moves, "replica")
    return f"  {target}: {about}{bytes_text(price.bytes_to_move)}, {replicas}"


def _partition_lines(explanation: PartitionExplained) -> Iterator[str]:
    move, name = explanation.move, explanation.partition
    replicas = ", ".join(map(str, explanation.replicas))
    if move is None:
        yield f"{name} ({bytes_text(explanation.size_bytes)} per replica) stays on {replicas}."
        yield (
            f"It could not move: {explanation.barred}."
            if explanation.barred
            else (
                "Nothing asks for it: no target is met better by moving it, or others were cheaper."
            )
        )
    else:
        target = ", ".join(map(str, move.target))
        yield (
            f"{name} ({bytes_text(explanation.size_bytes)} per replica): {replicas} → {target} "
            f"({move.reason.value.replace('_', ' ')})."
        )
        yield f"Why: {why_text(move)}"
    for replica in explanation.replica_explanations:
        if replica.load and replica.leaves == (move is not None and bool(move.adding)):
            loads = (_against_band(r, load, low, high) for r, load, low, high in replica.load)
            kept = "If it kept its replica, broker" if replica.leaves else "Broker"
            yield f"{kept} {replica.broker} {'would end' if replica.leaves else 'ends'} with: " + (
                "; ".join(loads) + "."
            )
    for copy in explanation.copies:
        yield ""
        yield from _copy_lines(copy, explanation.size_bytes)


def _copy_lines(copy: CopyExplained, size_bytes: int) -> Iterator[str]:
    yield f"Broker {copy.target} copies {bytes_text(size_bytes)} from broker {copy.source}."
    (chosen,) = (choice for choice in copy.choices if choice.verdict is Verdict.CHOSEN)
    if chosen.resource is not None:
        yield (
            f"It ends outside its band of {RESOURCE_NAMES[chosen.resource]} with it, by "
            f"{100 * chosen.excess:.2g} % of its share."
        )
    yield "At the same cost it could have gone to, and why it did not:"
    for verdict in list(Verdict)[:0:-1]:
        those = [choice for choice in copy.choices if choice.verdict is verdict]
        if those:
            yield f"  {_brokers(those)}: {verdict.value}"


def _brokers(choices: Sequence[BrokerAsTarget]) -> str:
    """``brokers 1, 4 (bytes +3 %), … and 80 more``."""
    names = [
        f"{c.broker} ({RESOURCE_NAMES[c.resource]}, {100 * c.excess:.2g} % of its share)"
        if c.resource
        else str(c.broker)
        for c in choices[:_SHOWN]
    ]
    if len(choices) > _SHOWN:
        names.append(f"{len(choices) - _SHOWN} more")
    return f"broker{'' if len(choices) == 1 else 's'} {join_names(names)}"


def broker_text(explanation: BrokerExplained) -> str:
    """A broker's part in the plan, and why not more."""
    return "\n".join(_broker_lines(explanation))


def _broker_lines(explanation: BrokerExplained) -> Iterator[str]:
    yield f"Broker {explanation.broker}"
    outside = []
    for resource, before, after, low, high in explanation.loads:
        change = f"{amount_text(resource, before)} → {amount_text(resource, after)}"
        band = "no target"
        if low is not None and high is not None:
            inside = low <= after <= high
            band = f"band {amount_text(resource, low)} to {amount_text(resource, high)}, "
            band += "inside" if inside else "OUTSIDE"
            outside += [] if inside else [RESOURCE_NAMES[resource]]
        yield f"  {RESOURCE_NAMES[resource]}: {change} ({band})"
    to = [move.adding for move in explanation.gives]
    yield from _moves_lines("gives", explanation.gives, to, "to")
    instead = [move.removing for move in explanation.receives]
    yield from _moves_lines("receives", explanation.receives, instead, "in place of")
    for item in explanation.infeasible:
        yield f"  not possible: {infeasible_text(item)}"
    yield _why_not_more(explanation, outside)


def _moves_lines(
    verb: str, moves: Sequence[Move], others: Sequence[Sequence[int]], word: str
) -> Iterator[str]:
    total = sum(move.size_bytes for move in moves)
    count = f"{len(moves):,} replica{'' if len(moves) == 1 else 's'}"
    yield f"  {verb} {count}, {bytes_text(total)}" + (", the largest:" if moves else "")
    for move, brokers in zip(moves[:_SHOWN], others, strict=False):
        there = f" {word} {brokers_text(brokers)}" if brokers else ""
        yield f"    {move.partition} {bytes_text(move.size_bytes)}{there}"


def _why_not_more(explanation: BrokerExplained, outside: Sequence[str]) -> str:
    if outside:
        return f"Why not more: what keeps it outside in {join_names(outside)} is named above."
    if any(item.subject.kind is SubjectKind.MIN_LEADERS for item in explanation.infeasible):
        return "Why not more: what keeps it from its minimum of leaders is named above."
    if any(low is not None for *_, low, _ in explanation.loads):
        return "Why not more: it ends inside all its bands, and no copy is made that no band needs."
    return "Why not more: the action asks for no more of it."


def _against_band(resource: Resource, load: int, low: int, high: int) -> str:
    load_text = f"{amount_text(resource, load)}"
    if load > high:
        return f"{load_text}, above its band of at most {amount_text(resource, high)}"
    if load < low:
        return f"{load_text}, below its band of at least {amount_text(resource, low)}"
    ends = f"{amount_text(resource, low)} to {amount_text(resource, high)}"
    return f"{load_text}, inside its band ({ends})"
