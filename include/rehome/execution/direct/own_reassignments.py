"""Whose the reassignments are that a call of the hook would cancel or replace. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from rehome.domain.kafka import OngoingReassignment, Replicas, TopicPartition
from rehome.domain.text import count_text, first_names
from rehome.errors import STEP_UNCHANGED, RehomeError
from rehome.execution.direct.wanted_copies import Targets
from rehome.execution.observation.foreign_reassignments import CANCELS, changes_text


@dataclass(frozen=True, slots=True)
class NotOwnReassignment:
    """A reassignment in flight that is not shown to be the caller's own.

    :param plan_id: the plan of this ledger that has started it; None = none has, as far as the
        ledger could be read. Kafka does not say which client has.
    :param own_target: the target that the caller states to have set; None = it states none.
    """

    partition: TopicPartition
    entry: OngoingReassignment
    plan_id: str | None
    own_target: Replicas | None


class NotOwnReassignmentError(RehomeError):
    """A call would cancel or replace what its caller has not started, as far as is known. Nothing
    was changed.

    :param reassignments: each of them, in partition order.
    :param plans_known: whether the ledger could be read.
    """

    def __init__(
        self, reassignments: Collection[NotOwnReassignment], *, plans_known: bool = True
    ) -> None:
        self.reassignments = tuple(reassignments)
        self.plans_known = plans_known
        lines = [_line(each, plans_known) for each in self.reassignments]
        super().__init__(
            "The hook cancels and replaces only what its caller states to have started, and this "
            f"does not hold for {count_text(len(lines), 'reassignment')} in flight: "
            f"{first_names(lines, '; ')}",
            state_left=STEP_UNCHANGED,
            next_step=" ".join(_steps(self.reassignments)),
        )


def not_own_reassignments(
    targets: Targets,
    ongoing: Mapping[TopicPartition, OngoingReassignment],
    own_targets: Mapping[TopicPartition, Replicas],
    plans: Mapping[TopicPartition, str],
) -> tuple[NotOwnReassignment, ...]:
    """What these targets would cancel or replace and is not the caller's own. A target that is
    asked for again replaces nothing.

    :param own_targets: targets that the caller has set before.
    :param plans: plans of the ledger that have started what is in flight.
    """
    return tuple(
        NotOwnReassignment(partition, entry, plans.get(partition), own_targets.get(partition))
        for partition, target in sorted(targets.items())
        if (entry := ongoing.get(partition)) is not None
        and not (target is not None and entry.leads_to(tuple(target)))
        and (
            partition in plans
            or partition not in own_targets
            or not entry.leads_to(own_targets[partition])
        )
    )


def _line(reassignment: NotOwnReassignment, plans_known: bool) -> str:
    entry, own_target, other = reassignment.entry, reassignment.own_target, ""
    if own_target is not None and not entry.leads_to(own_target):
        other = f", not to {list(own_target)}, as is stated"
    if reassignment.plan_id is not None:
        whose = f"plan {reassignment.plan_id} has started it"
    elif plans_known:
        whose = "no plan of the ledger has started it, and Kafka does not say which client has"
    else:
        whose = "the ledger could not be read, and Kafka does not say which client has started it"
    return f"{reassignment.partition} ({changes_text(entry)}{other}): {whose}"


def _steps(reassignments: Collection[NotOwnReassignment]) -> list[str]:
    steps = []
    if plans := sorted({each.plan_id for each in reassignments if each.plan_id is not None}):
        steps.append(f"Cancel the plan, with its page or control_reassignment: {', '.join(plans)}.")
    if any(each.plan_id is None for each in reassignments):
        steps.append(
            "State the targets that your code has set: own_targets={(topic, partition): replicas}. "
            f"What another client has started is cancelled {CANCELS}, which asks a person."
        )
    steps.append(
        "To go past this check, where it is known that the reassignment may be stopped, call with "
        "allow_reassignments_of_others=True."
    )
    return steps
