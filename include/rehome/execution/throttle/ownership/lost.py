"""What the cluster knows to be this installation's, and its ledger does not.

The ledger was restored from a backup, or a request of a process that died has arrived late.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from rehome.cluster.interface.errors import ClusterError
from rehome.cluster.interface.port import ClusterPort
from rehome.domain.configs import ConfigChange, ConfigResource
from rehome.domain.kafka import BrokerError
from rehome.domain.plan.move import Move
from rehome.domain.run.states import PlanState
from rehome.errors import PlanConflictError
from rehome.execution.throttle.configs import alter_default, read_what_can_be
from rehome.execution.throttle.keys import (
    LISTS,
    list_items,
    own_value,
    source_of,
    split,
    without,
)
from rehome.execution.throttle.ownership.marks import NONE_READ, Lists, Marks, read_marks
from rehome.ledger.base.records import SetBy, ThrottleEntry, ThrottlePlace, ThrottleState
from rehome.ledger.store import Ledger

RELIED_ON = "this ledger does not know what relies on it, and something is being reassigned"
NOT_TOLD_APART = (
    "this ledger does not know which of these items others have put on the list (it was restored "
    "from a backup, or a process died before it set them): take away what nobody needs, and the "
    "sweep closes this"
)
MovesOf = Callable[[str, str], Sequence[Move] | None]
"""Moves of a plan by its id and the beginning of its hash; None = they are not known."""


def unknown_moves(_plan_id: str, _digest: str) -> None:
    """Where no files of plans are at hand."""


@dataclass(frozen=True)
class Lost:
    """What is to be cleared.

    :param entries: the ledger's, and what it had lost, as if that had been journalled.
    :param on_lists: plans of whose items on lists nothing is unknown any more.
    """

    entries: tuple[ThrottleEntry, ...]
    marks: Marks = NONE_READ
    on_lists: frozenset[str] = frozenset()

    def unmark_lists(
        self, ledger: Ledger, cluster: ClusterPort, owed: Collection[ThrottleEntry]
    ) -> None:
        """Take away the marks of lists on which nothing is left of their plans.

        What cannot be taken away now is, by the next sweep.
        """
        left = {entry.plan_id for entry in owed if entry.key in LISTS}
        changes: list[ConfigChange] = []
        for plan_id in sorted(self.on_lists - left):
            if not ledger.throttles(plan_id, open_only=True, keys=LISTS):
                changes += self.marks.without_lists(plan_id)
        with suppress(ClusterError):
            alter_default(cluster, changes)


def look_for_lost(
    ledger: Ledger,
    cluster: ClusterPort,
    cluster_id: str,
    entries: Collection[ThrottleEntry],
    *,
    of_plan: str | None = None,
    moves_of: MovesOf = unknown_moves,
) -> Lost:
    """By the marks of this installation: of one plan, or of all that do not run.

    What is found is journalled where the ledger has its plan. It stays as long as anything is
    being reassigned: that may be a plan's that this ledger does not know any more.

    :param entries: open ones of these plans.
    :param moves_of: of plans that the ledger does not know.
    :raises ClusterError: no broker answers.
    """
    marks = read_marks(cluster, ledger.ledger_id)
    if isinstance(marks, BrokerError):
        return Lost(tuple(entries))
    if of_plan is None and (garbage := list(marks.without_needs())):
        alter_default(cluster, garbage)
    looking = _Looking(ledger, cluster, cluster_id, marks, moves_of)
    entry_by_place = {entry.place: entry for entry in entries}
    lost_by_place: dict[ThrottlePlace, ThrottleEntry] = {}
    for plan_id in sorted(marks.plans if of_plan is None else marks.plans & {of_plan}):
        if of_plan is None and looking.state_of(plan_id) is PlanState.RUNNING:
            continue
        lost_by_place |= {
            e.place: e for e in looking.rates(plan_id) if e.place not in entry_by_place
        }
        lost_by_place |= {e.place: e for e in looking.lists(plan_id)}
    recorded = [e for e in lost_by_place.values() if looking.state_of(e.plan_id) is not None]
    ledger.journal_throttles(recorded)
    if lost_by_place and cluster.list_reassignments():
        ledger.mark_throttles([_as_owed(entry, RELIED_ON) for entry in recorded])
        return Lost(
            tuple(entry for where, entry in entry_by_place.items() if where not in lost_by_place)
        )
    shared = [entry for entry in recorded if entry.set_by is SetBy.OTHERS]
    ledger.mark_throttles([_as_owed(entry, NOT_TOLD_APART) for entry in shared])
    return Lost(
        tuple((entry_by_place | lost_by_place).values()), marks, frozenset(looking.on_lists)
    )


@dataclass
class _Looking:
    """At what the marks of one installation say.

    :ivar on_lists: plans of whose items on lists nothing is unknown any more.
    """

    ledger: Ledger
    cluster: ClusterPort
    cluster_id: str
    marks: Marks
    moves_of: MovesOf
    on_lists: set[str] = field(default_factory=set)
    _states: dict[str, PlanState | None] = field(default_factory=dict)

    def state_of(self, plan_id: str) -> PlanState | None:
        """None = this ledger has no such plan."""
        if plan_id not in self._states:
            try:
                self._states[plan_id] = self.ledger.plan(plan_id).state
            except PlanConflictError:
                self._states[plan_id] = None
        return self._states[plan_id]

    def rates(self, plan_id: str) -> Iterator[ThrottleEntry]:
        """Rates and cordons of a plan."""
        mine = [need for need in self.marks.needs if need.ledger_id == self.marks.me]
        for resource, key in sorted({(m.resource, m.key) for m in mine if m.plan_id == plan_id}):
            claims = self.marks.at(resource, key)
            ours, before = tuple(sorted(m.value for m in claims.mine)), claims.before(None)
            source = "NOT_SET" if before is None else source_of(resource)
            yield ThrottleEntry(plan_id, self.cluster_id, resource, key, ours, before, source)

    def lists(self, plan_id: str) -> list[ThrottleEntry]:
        """Lists that hold items of a plan of which the ledger does not know."""
        said = self.marks.lists_of(plan_id)
        journalled = self.ledger.throttles(plan_id, keys=LISTS)
        if sum(len(entry.ours) for entry in journalled) >= said.items:
            self.on_lists.add(plan_id)
            return []
        moves = self._moves(said)
        if moves is None:
            return []
        topics = self.cluster.current_topics({move.partition.topic for move in moves})
        ids = {name: topic.topic_id for name, topic in topics.items() if topic.error is None}
        items = list_items(m for m in moves if m.is_of(ids.get(m.partition.topic, "")))
        resources = sorted({ConfigResource.topic(topic) for topic, _ in items})
        configs, unread = read_what_can_be(self.cluster, resources, LISTS)
        if not unread:
            self.on_lists.add(plan_id)
        entries = {(entry.resource, entry.key): entry for entry in journalled}
        lost = []
        for (topic, key), plan_items in items.items():
            resource = ConfigResource.topic(topic)
            present = own_value(resource, configs.get(resource, {}).get(key))
            blank = ThrottleEntry(plan_id, self.cluster_id, resource, key, (), None, "")
            entry = _with_lost(entries.get((resource, key), blank), plan_items, present)
            if entry is not None:
                set_by = SetBy.OTHERS if said.shared else SetBy.REHOME
                lost.append(replace(entry, set_by=set_by))
        return lost

    def _moves(self, said: Lists) -> Sequence[Move] | None:
        """None = they are not known; or it is not, what others had put on the lists, and there is
        no plan in the ledger of which that could be said.
        """
        if self.state_of(said.plan_id) is not None:
            return self.ledger.planned_moves(said.plan_id)
        return None if said.shared else self.moves_of(said.plan_id, said.digest)


def _with_lost(
    entry: ThrottleEntry, plan_items: Collection[str], present: str | None
) -> ThrottleEntry | None:
    """An entry with those of a plan's items on a list of which it does not know; None = none.

    A list with nothing in it is taken away as one that has them: the process that took them off it
    has died before it deleted the list.
    """
    own_items = entry.ours if entry.state.open else ()
    others = {*own_items, *split(entry.prior_value)}
    lost = [item for item in split(present) if item in plan_items and item not in others]
    if present == "" and not own_items:
        lost = list(plan_items)
    if not lost:
        return None
    prior = entry.prior_value if entry.prior_source else without(present, lost)
    source = "NOT_SET" if prior is None else source_of(entry.resource)
    ours = (*own_items, *lost)
    return replace(
        entry, ours=ours, prior_value=prior, prior_source=source, state=ThrottleState.JOURNALLED
    )


def _as_owed(entry: ThrottleEntry, detail: str) -> ThrottleEntry:
    return replace(entry, state=ThrottleState.OWED, detail=detail)
