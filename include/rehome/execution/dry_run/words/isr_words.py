"""What is wrong with in-sync replicas, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rehome.domain.run.findings import Finding, FoundKind
from rehome.domain.text import brokers_text, count_text
from rehome.execution.dry_run.isr_checks import IsrFound, IsrKind, IsrShape


def isr_finding(found: IsrFound) -> Finding:
    """What was found of in-sync replicas, as people read it."""
    return found.said(_TEXTS[found.kind](found.shape), _STEPS[found.kind])


def _few(shape: IsrShape) -> str:
    return f"min.insync.replicas={shape.minimum}"


def _synced(shape: IsrShape) -> str:
    are = "is" if shape.in_sync == 1 else "are"
    return f"{shape.in_sync} of {count_text(shape.replicas, 'replica')} {are} in sync"


def _wanted(shape: IsrShape) -> str:
    return f"{count_text(shape.wanted, 'replica is', 'replicas are')} fewer than {_few(shape)}"


def _while_it_moves(shape: IsrShape) -> str:
    return f"while it moves {count_text(shape.least, 'is', 'are')}, as few as {_few(shape)} allows"


def _all_synced(shape: IsrShape) -> str:
    all_of_it = f"all {shape.replicas} replicas are" if shape.replicas > 1 else "its 1 replica is"
    return f"{all_of_it} in sync; {_while_it_moves(shape)}"


_TEXTS: Mapping[FoundKind, Callable[[IsrShape], str]] = {
    IsrKind.NO_SOURCE: lambda shape: (
        f"has no live leader to copy from; its replicas are on {brokers_text(shape.brokers)}"
    ),
    IsrKind.TOO_FEW_REPLICAS: lambda shape: (
        f"{_wanted(shape)}: producers with acks=all would be refused"
    ),
    IsrKind.LOSES_IN_SYNC: lambda shape: (
        f"{_synced(shape)}; the move leaves {shape.least} of these, fewer than {_few(shape)}, "
        "though it could keep more"
    ),
    IsrKind.ALREADY_TOO_FEW: lambda shape: (
        f"{_wanted(shape)}, as its {count_text(shape.replicas, 'is', 'are')} now: producers with "
        "acks=all are refused before and after"
    ),
    IsrKind.BELOW_MINIMUM: lambda shape: (
        f"{_synced(shape)}, fewer than {_few(shape)}: producers with acks=all are refused now, and "
        "while it moves"
    ),
    IsrKind.AT_MINIMUM: lambda shape: f"{_synced(shape)}; {_while_it_moves(shape)}",
    IsrKind.UNDER_REPLICATED: lambda shape: f"is under-replicated: {_synced(shape)}",
    IsrKind.WAITS_FOR_ISR: lambda shape: (
        f"keeps replicas that are out of sync ({brokers_text(shape.brokers)}): the controller "
        "ends the move only when they are in the ISR"
    ),
    IsrKind.LEADER_OUT_OF_SYNC: lambda shape: (
        f"its preferred leader will be {brokers_text(shape.brokers)}, whose replica is out of sync"
    ),
    IsrKind.ALWAYS_AT_MINIMUM: _all_synced,
}
_OUT_OF_SYNC = "See why replicas are out of sync before moving it."
_STEPS: Mapping[FoundKind, str] = {
    IsrKind.NO_SOURCE: "Bring a broker of its ISR back first.",
    IsrKind.TOO_FEW_REPLICAS: "Lower min.insync.replicas first, or plan more replicas.",
    IsrKind.LOSES_IN_SYNC: "Trigger a new run: its plan keeps the replicas that are in sync now.",
    IsrKind.ALREADY_TOO_FEW: "Lower min.insync.replicas, or plan more replicas.",
    IsrKind.BELOW_MINIMUM: _OUT_OF_SYNC,
    IsrKind.AT_MINIMUM: _OUT_OF_SYNC,
    IsrKind.UNDER_REPLICATED: _OUT_OF_SYNC,
    IsrKind.WAITS_FOR_ISR: "See why it is out of sync, or plan without it.",
    IsrKind.LEADER_OUT_OF_SYNC: "Elections wait until it is in sync.",
    IsrKind.ALWAYS_AT_MINIMUM: "Expect refused acks=all writes should a replica fail.",
}
