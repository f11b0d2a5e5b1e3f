"""What is to be known of a plan's brokers, racks and replicas, in words."""

from __future__ import annotations

from rehome.domain.text import brokers_text, count_text, first_names
from rehome.execution.dry_run.typed_finding import FoundKind as Kind
from rehome.execution.dry_run.typed_finding import Texts, TypedFinding


def _silent(finding: TypedFinding) -> str:
    return f"did not answer: {finding.why}"


def _weakened_text(finding: TypedFinding) -> str:
    return str(finding.weakened)


def _without_rack(finding: TypedFinding) -> str:
    one = finding.count == 1
    have, count = ("has", "counts") if one else ("have", "count together")
    return f"{have} no rack while others do, and {count} as one more rack"


def _not_there(finding: TypedFinding) -> str:
    are = "is" if len(finding.brokers) == 1 else "are"
    return (
        f"{brokers_text(finding.brokers)}, which it names, {are} not alive, or not of this cluster"
    )


def _is_to_hold(finding: TypedFinding) -> str:
    return f"and is to hold {first_names(finding.partitions)}"


REPLICA_TEXTS: Texts = {
    Kind.BROKER_DEAD: lambda finding: f"is not alive, {_is_to_hold(finding)}",
    Kind.BROKER_CORDONED: lambda finding: f"has its log dirs cordoned, {_is_to_hold(finding)}",
    Kind.BROKER_OFFLINE: lambda finding: f"has every log dir offline, {_is_to_hold(finding)}",
    Kind.BROKER_SILENT: _silent,
    Kind.OTHER_BROKER_SILENT: _silent,
    Kind.WEAKENED: _weakened_text,
    Kind.WEAKENED_AGAINST_SETTING: _weakened_text,
    Kind.WEAKENED_AS_ASKED: _weakened_text,
    Kind.NO_RACK: _without_rack,
    Kind.RACK_WITHOUT_LEVELS: "does not begin with a slash: it is one rack of this name, without "
    "levels",
    Kind.LIMITS_OF_NO_BROKER: _not_there,
    Kind.PROPOSAL_TAKEN: lambda finding: (
        "the pasted output of kafka-reassign-partitions --generate holds two assignments; the "
        f"proposed one was taken, with {count_text(finding.count, 'partition')}"
    ),
    Kind.IN_STEPS: lambda finding: (
        f"{count_text(finding.count, 'partition gets', 'partitions get')} new replicas in steps, "
        f"of {finding.most} at once at most: up to {count_text(finding.moves, 'step')}"
    ),
}
_OPEN = "Open a log dir of it, or plan without it."
_LEAVE = "Leave brokers of every rack to these topics, or accept that they outlive fewer failures."
REPLICA_STEPS: Texts = {
    Kind.BROKER_DEAD: "Bring it back, or plan without it.",
    Kind.BROKER_CORDONED: _OPEN,
    Kind.BROKER_OFFLINE: _OPEN,
    Kind.BROKER_SILENT: "Find out why, then run again.",
    Kind.OTHER_BROKER_SILENT: "No move of the plan needs it: the plan can go on without it.",
    Kind.WEAKENED: _LEAVE,
    Kind.WEAKENED_AGAINST_SETTING: _LEAVE,
    Kind.WEAKENED_AS_ASKED: "It was asked for.",
    Kind.NO_RACK: "Set broker.rack there and restart, if they are not one place of their own.",
    Kind.RACK_WITHOUT_LEVELS: "If its parts are levels, begin the name with a slash (broker.rack).",
    Kind.LIMITS_OF_NO_BROKER: "Bring them back, or correct the setting or the parameter.",
    Kind.PROPOSAL_TAKEN: "The plan has its own way back: rollback.json.",
    Kind.IN_STEPS: "Until its last step is done, a partition keeps its old replicas beside the new "
    "ones. A cancel takes all steps back, and copies nothing.",
}
