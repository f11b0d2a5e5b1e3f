"""Who has asked for what a person is to approve: for the plan, for the run, and for its terms."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from rehome.domain.request.request import upgraded_params
from rehome.errors import STEP_UNCHANGED, RehomeError


class AskerKind(enum.StrEnum):
    """What stands behind a run."""

    PERSON = "person"
    SCHEDULE = "schedule"
    WINDOW = "window"
    WATCHING = "watching"
    ASSET = "asset"
    BACKFILL = "backfill"
    TASK = "task"
    NOT_KNOWN = "not_known"


class RunDoor(enum.StrEnum):
    """Through which a task has a run started."""

    CONTROL = "control"
    """`control_reassignment`: a person has asked."""
    WATCH = "watch"
    """`watch_clusters`: the watch rules have asked, or a person who triggered it."""


STARTED_DAG = "reassign_partitions"
"""The DAG of the runs that tasks start, but for heals in windows."""


class NotAsked(enum.StrEnum):
    """Why nobody who may ask stands behind a run, or not any more."""

    NO_REQUEST = "no_request"
    """A task has started it, and has not written down for whom."""
    BY_HAND = "by_hand"
    """A person has triggered it under the id of a run that a task was to start."""
    OTHER_PARAMETERS = "other_parameters"
    CARRIED_OUT = "carried_out"
    """It was done before."""
    BACKFILL = "backfill"
    """A later backfill gives a run other parameters under the name of who had asked for it."""
    TOO_OLD = "too_old"
    """It was cleared when the request counted no longer."""


class NotAskedForError(RehomeError):
    """A run that nobody who may ask stands behind; it has started nothing."""

    def __init__(self, why: NotAsked, what: str, *, next_step: str) -> None:
        self.why = why
        super().__init__(what, state_left=STEP_UNCHANGED, next_step=next_step)


_ASKERS = {
    AskerKind.PERSON: "a person",
    AskerKind.SCHEDULE: "the schedule",
    AskerKind.WINDOW: "the maintenance window",
    AskerKind.WATCHING: "watching",
    AskerKind.ASSET: "an asset's event",
    AskerKind.BACKFILL: "a backfill",
    AskerKind.TASK: "a task that has not recorded for whom",
    AskerKind.NOT_KNOWN: "a person or program that Airflow does not name",
}


@dataclass(frozen=True, slots=True)
class Asker:
    """Who has asked for a run.

    :param person: the user's name; None = no person has.
    """

    kind: AskerKind
    person: str | None = None

    @classmethod
    def through(cls, door: RunDoor, person: str | None) -> Asker:
        """Who has asked for a run that a task has started."""
        if person is not None:
            return cls(AskerKind.PERSON, person)
        return cls(AskerKind.WATCHING if door is RunDoor.WATCH else AskerKind.NOT_KNOWN)

    def __str__(self) -> str:
        return self.person if self.person is not None else _ASKERS[self.kind]


class Term(enum.StrEnum):
    """What is approved with a plan, and may be asked for by others: what was asked of it after it
    was made, and the plan that it follows up.
    """

    RATE = "rate"
    WINDOW = "window"
    ADDITIONAL = "additional"
    UNTHROTTLED = "unthrottled"
    FOLLOWED_UP = "followed_up"


PARAMETERS: Mapping[Term, tuple[str, ...]] = {
    Term.RATE: ("throttle", "throttle_by_broker", "throttle_min", "throttle_max"),
    Term.WINDOW: ("window_end", "on_window_end"),
    Term.ADDITIONAL: ("additional",),
    Term.UNTHROTTLED: ("unthrottled", "max_moves_per_broker"),
    Term.FOLLOWED_UP: (),
}
"""What a run with these parameters asks for, where it resumes a plan."""

_NAMES = {
    Term.RATE: "the throttle",
    Term.WINDOW: "the window",
    Term.ADDITIONAL: "the value of additional",
    Term.UNTHROTTLED: "the value of unthrottled",
    Term.FOLLOWED_UP: "the plan that it follows up",
}


@dataclass(frozen=True, slots=True)
class Askers:
    """Who has asked for what is to be approved.

    :param plan: who has asked for the plan.
    :param run: who has triggered the run that asks for the approval; None = it is not known.
    :param terms: who has asked for a term that is not the plan's own.
    """

    plan: str
    run: str | None = None
    terms: Mapping[Term, str] = field(default_factory=dict)

    @property
    def what(self) -> Mapping[str, tuple[str, ...]]:
        """What each of them has asked for, in words; who has asked for the plan comes first."""
        words_by_asker: dict[str, list[str]] = {self.plan: ["the plan"]}
        if self.run not in (None, self.plan):
            words_by_asker[str(self.run)] = ["the run"]
        for term in Term:
            if (who := self.terms.get(term, self.plan)) != self.plan:
                words_by_asker.setdefault(who, []).append(_NAMES[term])
        return {who: tuple(words) for who, words in words_by_asker.items()}


def changed_terms(before: Mapping[str, Any], after: Mapping[str, Any]) -> frozenset[Term]:
    """Terms that parameters of a run change; those that it does not name stay as they were."""
    before, after = upgraded_params(before), upgraded_params(after)
    changed = {name for name in after if after[name] != before.get(name)}
    if not after.get("unthrottled"):
        changed.discard("max_moves_per_broker")  # with a throttle, it is no term
    return frozenset(term for term, names in PARAMETERS.items() if changed & set(names))


def asks_for_rate(before: int | None, after: int | None, *, own: bool) -> bool:
    """Whether who names a throttle has asked for it. To lower it is open to those who approve; it
    stays what another person has asked for, unless who has asked for the plan lowers it.

    :param before, after: bytes per second; None = Rehome finds it, which may be more.
    :param own: whether it is named by who has asked for the plan.
    """
    if before is None or after is None:
        return before != after
    return after > before or (own and after < before)


def asked_anew(terms: Mapping[Term, str], changed: Collection[Term], actor: str) -> dict[Term, str]:
    """Who has asked for which term, once an actor has asked for some of them."""
    return {**terms, **dict.fromkeys(changed, actor)}
