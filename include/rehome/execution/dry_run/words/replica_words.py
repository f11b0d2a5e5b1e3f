"""What is to be known of a plan's brokers, racks and replicas, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rehome.domain.run.findings import Finding, FoundKind
from rehome.domain.text import brokers_text, count_text, first_names
from rehome.execution.dry_run.replica_checks import ReplicaFound, ReplicaKind


def replica_finding(found: ReplicaFound) -> Finding:
    """What was found of brokers and replicas, as people read it."""
    return found.said(_TEXTS[found.kind](found), _STEPS[found.kind](found))


def _silent(found: ReplicaFound) -> str:
    return f"did not answer: {found.why}"


def _weakened(found: ReplicaFound) -> str:
    return str(found.weakens)


def _without_rack(found: ReplicaFound) -> str:
    one = found.count == 1
    have, count = ("has", "counts") if one else ("have", "count together")
    return f"{have} no rack while others do, and {count} as one more rack"


def _not_there(found: ReplicaFound) -> str:
    are = "is" if len(found.brokers) == 1 else "are"
    return f"{brokers_text(found.brokers)}, which it names, {are} not alive, or not of this cluster"


def _is_to_hold(found: ReplicaFound) -> str:
    return f"and is to hold {first_names(found.partitions)}"


_TEXTS: Mapping[FoundKind, Callable[[ReplicaFound], str]] = {
    ReplicaKind.DEAD: lambda found: f"is not alive, {_is_to_hold(found)}",
    ReplicaKind.CORDONED: lambda found: f"has its log dirs cordoned, {_is_to_hold(found)}",
    ReplicaKind.OFFLINE: lambda found: f"has every log dir offline, {_is_to_hold(found)}",
    ReplicaKind.SILENT: _silent,
    ReplicaKind.SILENT_ELSEWHERE: _silent,
    ReplicaKind.WEAKENED: _weakened,
    ReplicaKind.WEAKENED_AGAINST_SETTING: _weakened,
    ReplicaKind.WEAKENED_AS_ASKED: _weakened,
    ReplicaKind.WITHOUT_RACK: _without_rack,
    ReplicaKind.WITHOUT_LEVELS: lambda _: (
        "does not begin with a slash: it is one rack of this name, without levels"
    ),
    ReplicaKind.NOT_THERE: _not_there,
    ReplicaKind.PROPOSAL_TAKEN: lambda found: (
        "the pasted output of kafka-reassign-partitions --generate holds two assignments; the "
        f"proposed one was taken, with {count_text(found.count, 'partition')}"
    ),
    ReplicaKind.IN_STEPS: lambda found: (
        f"{count_text(found.count, 'partition gets', 'partitions get')} new replicas in steps, of "
        f"{found.at_once} at once at most: up to {count_text(found.steps, 'step')}"
    ),
}
_OPEN = "Open a log dir of it, or plan without it."
_LEAVE = "Leave brokers of every rack to these topics, or accept that they outlive fewer failures."
_STEPS: Mapping[FoundKind, Callable[[ReplicaFound], str]] = {
    ReplicaKind.DEAD: lambda _: "Bring it back, or plan without it.",
    ReplicaKind.CORDONED: lambda _: _OPEN,
    ReplicaKind.OFFLINE: lambda _: _OPEN,
    ReplicaKind.SILENT: lambda _: "Find out why, then run again.",
    ReplicaKind.SILENT_ELSEWHERE: lambda _: "Nothing of the plan is on it.",
    ReplicaKind.WEAKENED: lambda _: _LEAVE,
    ReplicaKind.WEAKENED_AGAINST_SETTING: lambda _: _LEAVE,
    ReplicaKind.WEAKENED_AS_ASKED: lambda _: "It was asked for.",
    ReplicaKind.WITHOUT_RACK: lambda _: (
        "Set broker.rack there and restart, if they are not one place of their own."
    ),
    ReplicaKind.WITHOUT_LEVELS: lambda found: (
        f"If its parts are levels, name it /{found.rack} (broker.rack)."
    ),
    ReplicaKind.NOT_THERE: lambda _: "Bring them back, or correct the setting or the parameter.",
    ReplicaKind.PROPOSAL_TAKEN: lambda _: "The plan has its own way back: rollback.json.",
    ReplicaKind.IN_STEPS: lambda _: (
        "Until its last step is done, a partition keeps its old replicas beside the new ones. A "
        "cancel takes all steps back, and copies nothing."
    ),
}
