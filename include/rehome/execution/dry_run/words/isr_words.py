"""What is wrong with in-sync replicas, in words."""

from __future__ import annotations

from rehome.domain.text import brokers_text, count_text
from rehome.execution.dry_run.typed_finding import FoundKind as Kind
from rehome.execution.dry_run.typed_finding import Texts, TypedFinding


def _few(found: TypedFinding) -> str:
    return f"min.insync.replicas={found.isr.minimum}"


def _isr_text(found: TypedFinding) -> str:
    are = "is" if found.isr.in_sync == 1 else "are"
    return f"{found.isr.in_sync} of {count_text(found.isr.replicas, 'replica')} {are} in sync"


def _lack_text(found: TypedFinding) -> str:
    return f"{count_text(found.isr.wanted, 'replica is', 'replicas are')} fewer than {_few(found)}"


def _while_it_moves(found: TypedFinding) -> str:
    return (
        f"while it moves {count_text(found.isr.least, 'is', 'are')}, as few as {_few(found)} allows"
    )


def _all_synced(found: TypedFinding) -> str:
    all_of_it = (
        f"all {found.isr.replicas} replicas are" if found.isr.replicas > 1 else "its 1 replica is"
    )
    return f"{all_of_it} in sync; {_while_it_moves(found)}"


ISR_TEXTS: Texts = {
    Kind.NO_SOURCE: lambda found: (
        f"has no live leader to copy from; its replicas are on {brokers_text(found.isr.brokers)}"
    ),
    Kind.TOO_FEW_REPLICAS: lambda found: (
        f"{_lack_text(found)}: producers with acks=all would be refused"
    ),
    Kind.LOSES_IN_SYNC: lambda found: (
        f"{_isr_text(found)}; the move leaves {found.isr.least} of these, fewer than "
        f"{_few(found)}, though it could keep more"
    ),
    Kind.ALREADY_TOO_FEW: lambda found: (
        f"{_lack_text(found)}, as its {count_text(found.isr.replicas, 'is', 'are')} now: producers "
        "with acks=all are refused before and after"
    ),
    Kind.BELOW_MINIMUM: lambda found: (
        f"{_isr_text(found)}, fewer than {_few(found)}: producers with acks=all are refused now, "
        "and while it moves"
    ),
    Kind.AT_MINIMUM: lambda found: f"{_isr_text(found)}; {_while_it_moves(found)}",
    Kind.UNDER_REPLICATED: lambda found: f"is under-replicated: {_isr_text(found)}",
    Kind.WAITS_FOR_ISR: lambda found: (
        f"keeps replicas that are out of sync ({brokers_text(found.isr.brokers)}): from Kafka "
        "3.8 on the controller ends the move only when they are in the ISR"
    ),
    Kind.LEADER_OUT_OF_SYNC: lambda found: (
        f"its preferred leader will be {brokers_text(found.isr.brokers)}, whose replica is "
        "out of sync"
    ),
    Kind.ALWAYS_AT_MINIMUM: _all_synced,
}
_OUT_OF_SYNC = "See why replicas are out of sync before moving it."
ISR_STEPS: Texts = {
    Kind.NO_SOURCE: "Bring a broker of its ISR back first.",
    Kind.TOO_FEW_REPLICAS: "Lower min.insync.replicas first, or plan more replicas.",
    Kind.LOSES_IN_SYNC: "Trigger a new run: its plan keeps the replicas that are in sync now.",
    Kind.ALREADY_TOO_FEW: "Lower min.insync.replicas, or plan more replicas.",
    Kind.BELOW_MINIMUM: _OUT_OF_SYNC,
    Kind.AT_MINIMUM: _OUT_OF_SYNC,
    Kind.UNDER_REPLICATED: _OUT_OF_SYNC,
    Kind.WAITS_FOR_ISR: "See why it is out of sync, or plan without it.",
    Kind.LEADER_OUT_OF_SYNC: "Elections wait until it is in sync.",
    Kind.ALWAYS_AT_MINIMUM: "Expect refused acks=all writes should a replica fail.",
}
