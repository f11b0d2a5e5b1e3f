"""Brokers and replicas of a plan: what the controller does not look at before it starts a copy."""

from __future__ import annotations

from collections.abc import Iterator

from include.cluster.model import BrokerId
from include.execution.findings import Finding, Severity
from include.execution.reading import Reading
from include.planning.plan import Move, Plan

_CHECK = "brokers"


def broker_findings(plan: Plan, now: Reading) -> Iterator[Finding]:
    """Destinations that could not take their copies, and brokers that do not answer.

    The controller accepts a dead broker that is registered, and one whose log dirs are all
    cordoned: on the one the copy would never end, on the other nobody wants it.
    """
    receiving: dict[BrokerId, list[Move]] = {}
    for move in plan.moves:
        for broker in move.target:
            if broker in move.adding or broker not in now.cluster.brokers:
                receiving.setdefault(broker, []).append(move)
    closed = _closed(now)
    for broker, moves in sorted(receiving.items()):
        if broker not in now.cluster.brokers:
            what, remedy = "is not alive", "Bring it back, or plan without it."
        elif broker in closed:
            what, remedy = closed[broker], "Open a log dir of it, or plan without it."
        else:
            continue
        named = ", ".join(str(move.partition) for move in moves[:3])
        more = f" and {len(moves) - 3} more" if len(moves) > 3 else ""
        yield _error(f"broker {broker}", f"{what}, and is to hold {named}{more}", remedy)
    for broker, error in now.log_dirs.missing.items():
        yield _error(
            f"broker {broker}",
            f"did not answer: {error.name}: {error.message}",
            "Find out why, then run again.",
            error.code,
        )


def _error(subject: str, message: str, remedy: str, code: int | None = None) -> Finding:
    return Finding(Severity.ERROR, _CHECK, subject, message, remedy, code)


def _closed(now: Reading) -> dict[BrokerId, str]:
    """Brokers that answered and have no log dir for new replicas, with the reason."""
    open_dirs: dict[BrokerId, int] = {}
    cordoned: set[BrokerId] = set()
    for log_dir in now.log_dirs.value:
        takes = log_dir.error is None and not log_dir.cordoned
        open_dirs[log_dir.broker] = open_dirs.get(log_dir.broker, 0) + takes
        if log_dir.cordoned:
            cordoned.add(log_dir.broker)
    return {
        broker: "has its log dirs cordoned" if broker in cordoned else "has every log dir offline"
        for broker, number in open_dirs.items()
        if not number
    }


def isr_findings(plan: Plan, now: Reading) -> Iterator[Finding]:
    """Partitions without a source to copy from, or that acks=all producers would lose."""
    for move in plan.moves:
        state = now.state(move.partition)
        if state is None:
            continue  # its verdict says so
        subject = str(move.partition)
        minimum = now.min_isr.get(move.partition.topic, 1)
        if state.leader not in now.cluster.brokers and move.adding:
            yield Finding(
                Severity.ERROR,
                "in-sync replicas",
                subject,
                f"has no live leader to copy from; its replicas are on {list(state.replicas)}",
                "Bring one of these brokers back first.",
            )
        elif len(move.target) < minimum:
            yield Finding(
                Severity.ERROR,
                "in-sync replicas",
                subject,
                f"{len(move.target)} replicas are fewer than min.insync.replicas={minimum}: "
                "producers with acks=all would be refused",
                "Lower min.insync.replicas first, or plan more replicas.",
            )
        elif len(state.isr) < minimum:
            yield Finding(
                Severity.WARNING,
                "in-sync replicas",
                subject,
                f"{len(state.isr)} in sync are fewer than min.insync.replicas={minimum} already",
                "Producers with acks=all are being refused now; see why before moving it.",
            )
