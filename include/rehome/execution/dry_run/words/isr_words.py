"""What is wrong with in-sync replicas, in words."""

from __future__ import annotations

from rehome.domain.text import brokers_text, count_text
from rehome.execution.dry_run.typed_finding import FoundKind as Kind
from rehome.execution.dry_run.typed_finding import Texts, TypedFinding


def _few(finding: TypedFinding) -> str:
    return f"min.insync.replicas={finding.isr.minimum}"


def _isr_text(finding: TypedFinding) -> str:
    are = "is" if finding.isr.in_sync == 1 else "are"
    return f"{finding.isr.in_sync} of {count_text(finding.isr.replicas, 'replica')} {are} in sync"


def _lack_text(finding: TypedFinding) -> str:
    replicas = count_text(finding.isr.replicas_in_the_end, "replica is", "replicas are")
    return f"{replicas} fewer than {_few(finding)}"


def _while_it_moves(finding: TypedFinding) -> str:
    are = count_text(finding.isr.least, "is", "are")
    return f"while it moves {are}, as few as {_few(finding)} allows"


def _all_synced(finding: TypedFinding) -> str:
    all_of_it = (
        f"all {finding.isr.replicas} replicas are"
        if finding.isr.replicas > 1
        else "its 1 replica is"
    )
    return f"{all_of_it} in sync; {_while_it_moves(finding)}"


ISR_TEXTS: Texts = {
    Kind.NO_SOURCE: lambda finding: (
        f"has no live leader to copy from; its replicas are on {brokers_text(finding.isr.brokers)}"
    ),
    Kind.TOO_FEW_REPLICAS: lambda finding: (
        f"{_lack_text(finding)}: producers with acks=all would be refused"
    ),
    Kind.LOSES_IN_SYNC: lambda finding: (
        f"{_isr_text(finding)}; the move leaves {finding.isr.least} of these, fewer than "
        f"{_few(finding)}, though it could keep more"
    ),
    Kind.ALREADY_TOO_FEW: lambda finding: (
        f"{_lack_text(finding)}, as its {count_text(finding.isr.replicas, 'is', 'are')} now: "
        "producers with acks=all are refused before and after"
    ),
    Kind.BELOW_MINIMUM: lambda finding: (
        f"{_isr_text(finding)}, fewer than {_few(finding)}: producers with acks=all are refused "
        "now, and while it moves"
    ),
    Kind.AT_MINIMUM: lambda finding: f"{_isr_text(finding)}; {_while_it_moves(finding)}",
    Kind.UNDER_REPLICATED: lambda finding: f"is under-replicated: {_isr_text(finding)}",
    Kind.WAITS_FOR_ISR: lambda finding: (
        f"keeps replicas that are out of sync ({brokers_text(finding.isr.brokers)}): from Kafka "
        "3.8 on the controller ends the move only when they are in the ISR"
    ),
    Kind.LEADER_OUT_OF_SYNC: lambda finding: (
        f"its preferred leader will be {brokers_text(finding.isr.brokers)}, whose replica is "
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
