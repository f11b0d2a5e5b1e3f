"""What a plan changes on its cluster, as far as its moves do not say it: part of what is approved.

:data:`WHAT_CHANGES` is the one list of code that changes a cluster for a plan; a test compares it
with what the code calls.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rehome.domain.actions import Action, Trait, actions_with
from rehome.domain.kafka import BrokerId
from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import Cordon, ReassignmentRequest
from rehome.domain.text import bytes_text, count_text


class Effect(enum.StrEnum):
    """A way in which a plan, or new partitions, change a cluster."""

    REPLICAS = "replicas"  # and their order, and their log dirs: the plan's moves
    LEADERS = "leaders"
    THROTTLE = "throttle"
    CORDON = "cordon"
    PARTITIONS = "partitions"


WHAT_CHANGES: Mapping[str, Effect] = {
    "rehome.execution.advance": Effect.REPLICAS,
    "rehome.execution.control.cancel": Effect.REPLICAS,  # takes back
    "rehome.execution.observation.log_dir_copies": Effect.REPLICAS,  # takes back
    "rehome.execution.throttle.configs": Effect.THROTTLE,
    "rehome.execution.throttle.plan_throttle": Effect.THROTTLE,
    "rehome.execution.throttle.clear": Effect.THROTTLE,  # takes back, cordons too
    "rehome.execution.throttle.cordon": Effect.CORDON,
    "rehome.execution.completion.preferred_leaders": Effect.LEADERS,
    "rehome.execution.create_partitions": Effect.PARTITIONS,
    # Of no plan: what a person has named and approved, by the digest of it.
    "rehome.execution.foreign.cancel_foreign": Effect.REPLICAS,
    "rehome.execution.foreign.clean_throttles": Effect.THROTTLE,
    # Of no plan: calls of people's own tasks, refused where a policy asks for an approval.
    "rehome.hooks.reassignment": Effect.REPLICAS,
    "rehome.execution.direct.direct_throttle": Effect.THROTTLE,
}
"""Module that calls a request which changes a cluster → what it changes."""


@dataclass(frozen=True, slots=True)
class FollowUp:
    """That a drain may be followed up in the same run and window, and within what budget.

    :param budget_bytes, budget_moves: of both plans together; None = no limit.
    """

    budget_bytes: int | None = None
    budget_moves: int | None = None


@dataclass(frozen=True, slots=True)
class Effects:
    """What a plan does besides its moves, which have a hash.

    :param replication_factor: whether partitions get another number of replicas: Kafka's guard
        against that is off then.
    :param leaders: whether preferred leaders of its partitions are elected in the end.
    :param cordon: how long log dirs of the brokers ``cordoned`` are cordoned.
    :param follow_up: None = what appears meanwhile is not followed up.
    """

    replication_factor: bool = False
    leaders: bool = False
    cordon: Cordon = Cordon.NO
    cordoned: tuple[BrokerId, ...] = ()
    follow_up: FollowUp | None = None

    @classmethod
    def of(cls, plan: Plan, request: ReassignmentRequest, *, followed_up: bool = True) -> Effects:
        """Those of a plan that was made for a request.

        :param followed_up: False = the plan is itself one that follows up, and the last.
        """
        cordons = request.cordon is not Cordon.NO and bool(request.emptied)
        may_follow = followed_up and Action(request.action) in actions_with(Trait.FOLLOWED_UP)
        return cls(
            replication_factor=plan.allow_replication_factor_change,
            leaders=bool(plan.moves),
            cordon=request.cordon if cordons else Cordon.NO,
            cordoned=request.emptied if cordons else (),
            follow_up=FollowUp(request.budget_bytes, request.budget_moves) if may_follow else None,
        )

    @property
    def changes_cluster(self) -> bool:
        """Whether anything is changed: a plan without moves may cordon. A follow-up is a plan of
        its own.
        """
        return self.leaders or self.replication_factor or self.cordon is not Cordon.NO

    def lines(self) -> tuple[str, ...]:
        """In words, for a person; what a plan does not do is left out."""
        lines = [self.cordon_words] if self.cordon is not Cordon.NO else []
        if self.replication_factor:
            lines.append("with **other numbers of replicas**: Kafka's guard against that is off")
        if self.leaders:
            lines.append("preferred leaders of its partitions are elected in the end")
        if self.follow_up is not None:
            lines.append(self.follow_up_words)
        return tuple(lines)

    @property
    def cordon_words(self) -> str:
        """What is cordoned, and until when."""
        brokers = ", ".join(map(str, self.cordoned))
        until = {
            Cordon.NO: "no broker is cordoned",
            Cordon.UNDO: f"log dirs of brokers {brokers} are cordoned until the plan ends",
            Cordon.KEEP: f"log dirs of brokers {brokers} are cordoned **for good**: until a person "
            "takes that back",
        }
        return until[self.cordon]

    @property
    def follow_up_words(self) -> str:
        """Whether a second plan may come, and within what."""
        if self.follow_up is None:
            return "nothing that appears meanwhile is followed up"
        limits = []
        if self.follow_up.budget_bytes is not None:
            limits.append(bytes_text(self.follow_up.budget_bytes))
        if self.follow_up.budget_moves is not None:
            limits.append(count_text(self.follow_up.budget_moves, "move"))
        within = f", within {' and '.join(limits)} for both plans" if limits else ""
        return (
            "what appears on the emptied brokers or log dirs meanwhile is moved away by one more "
            f"plan in the same window{within}; where a person approves this one, that one is asked "
            "about, too"
        )

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types; :meth:`from_json` reads it back."""
        follow_up = self.follow_up
        return {
            "replication_factor": self.replication_factor,
            "leaders": self.leaders,
            "cordon": self.cordon.value,
            "cordoned": list(self.cordoned),
            "follow_up": follow_up
            and {
                "budget_bytes": follow_up.budget_bytes,
                "budget_moves": follow_up.budget_moves,
            },
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Effects:
        """The inverse of :meth:`to_json`."""
        follow_up = content["follow_up"]
        return cls(
            content["replication_factor"],
            content["leaders"],
            Cordon(content["cordon"]),
            tuple(content["cordoned"]),
            None if follow_up is None else FollowUp(**follow_up),
        )
