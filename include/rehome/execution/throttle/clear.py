"""Clears throttles: only our values, back to the earlier ones, byte for byte.

Works from the ledger alone, in any process. What cannot be cleared now is owed, and cleared later.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.errors import ClusterError
from rehome.cluster.interface.port import ClusterPort
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource, ResourceType
from rehome.domain.kafka import BrokerError, BrokerId, ConfigValue
from rehome.domain.run.states import PlanState
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.access.progress_timeout import ProgressTimeout, now_s, pause
from rehome.execution.throttle.configs import (
    VERIFY_POLL_S,
    VERIFY_TIMEOUT_S,
    alter_default,
    alter_marked,
)
from rehome.execution.throttle.keys import (
    CHANGED_SINCE,
    LISTS,
    Restored,
    first_step,
    never_asked,
    next_step,
    own_value,
    source_of,
    split,
)
from rehome.execution.throttle.ownership.leaving import Unsettled, in_place_of, leave_step
from rehome.execution.throttle.ownership.lost import (
    NOT_TOLD_APART,
    Lost,
    MovesOf,
    look_for_lost,
    unknown_moves,
)
from rehome.execution.throttle.ownership.marks import (
    DEFAULT,
    Marks,
    is_mark,
    read_marks,
)
from rehome.execution.throttle.still_needed import NeededThrottles, needs
from rehome.ledger.base.records import SetBy, ThrottleEntry, ThrottlePlace, ThrottleState
from rehome.ledger.store import Ledger

UNMARKED = (
    "no mark of this ledger is there, so what was set before may be another Rehome's and is not "
    "put back: set what is wanted there, and the sweep closes this"
)


@dataclass(frozen=True)
class Cleared:
    """What was cleared, and what is still owed (each entry's ``detail`` says why)."""

    cleared: tuple[ThrottleEntry, ...] = ()
    owed: tuple[ThrottleEntry, ...] = ()

    @property
    def changed_by_others(self) -> tuple[ThrottleEntry, ...]:
        """Of those that are cleared: nothing of ours is there, and not what was there before."""
        return tuple(entry for entry in self.cleared if entry.set_by is SetBy.OTHERS)


@dataclass(frozen=True, slots=True)
class _Made:
    """A change that was made to a key, and when that was answered, on ``now_s``'s clock."""

    operation: ConfigOperation
    at: float


def clear_throttle(plan_id: str, ledger: Ledger, cluster: OwnCluster) -> Cleared:
    """Clear every throttle of a plan, and prove it by reading. Idempotent.

    Never raises for what the cluster does or says: what it prevents is owed.
    """
    entries = ledger.throttles(plan_id, open_only=True)
    try:
        cluster_id = ledger.plan(plan_id).cluster_id
        lost = look_for_lost(ledger, cluster, cluster_id, entries, of_plan=plan_id)
    except ClusterError:  # the sweep looks again
        lost = Lost(tuple(entries))
    return _clear(lost, ledger, cluster)


def sweep(
    ledger: Ledger,
    cluster: OwnCluster,
    cluster_id: str | None = None,
    moves_of: MovesOf = unknown_moves,
) -> Cleared:
    """Take back what plans that no longer run still owe on this cluster.

    To be called under the cluster's lease: a plan that is resumed meanwhile sets up anew what
    is taken back here.

    :param cluster_id: of the cluster, where that is known; else it is asked.
    :param moves_of: moves of a plan that the ledger does not know any more, by its files.
    :raises ClusterError: the cluster cannot be reached at all.
    """
    if cluster_id is None:
        cluster_id = cluster.describe_cluster().cluster_id
    journalled = ledger.throttles(cluster_id=cluster_id, open_only=True)
    # States after entries: a plan that starts in between has entries that must not be read.
    states = {plan_id: ledger.plan(plan_id).state for plan_id in {e.plan_id for e in journalled}}
    entries = [e for e in journalled if states[e.plan_id] is not PlanState.RUNNING]
    lost = look_for_lost(ledger, cluster, cluster_id, entries, moves_of=moves_of)
    return _clear(lost, ledger, cluster)


def _clear(lost: Lost, ledger: Ledger, cluster: ClusterPort) -> Cleared:
    cleared = Cleared()
    if lost.entries:
        clearing = _Clearing(lost.entries, ledger, cluster)
        try:
            clearing.run()
        except ClusterError as error:
            clearing.owe_all(error.what)
        cleared = Cleared(tuple(clearing.cleared), tuple(clearing.owed))
    lost.unmark_lists(ledger, cluster, cleared.owed)
    return cleared


class _Clearing:
    """Reads, changes and reads again until nothing of ours is left."""

    def __init__(
        self, entries: Collection[ThrottleEntry], ledger: Ledger, cluster: ClusterPort
    ) -> None:
        self._left = {entry.place: entry for entry in entries}
        self._cluster_id = next(iter(entries)).cluster_id
        self._ledger = ledger
        self._cluster = cluster
        self._timeout = ProgressTimeout(VERIFY_TIMEOUT_S)
        self._read_at = 0.0
        self._made: dict[tuple[ConfigResource, str], _Made] = {}
        self._marks: list[ThrottleEntry] = []
        self.cleared: list[ThrottleEntry] = []
        self.owed: list[ThrottleEntry] = []

    def run(self) -> None:
        self._keep(needs(self._ledger, self._cluster, self._cluster_id))
        live = set(self._cluster.describe_cluster().brokers)
        dead = [e for e in self._left.values() if _broker(e.resource) not in (None, *live)]
        if dead:
            self._at_controllers(dead)
            self._record()
        self._leave_other_topics()
        self._round(first=True)
        while self._left and not self._timeout.exhausted:
            pause(VERIFY_POLL_S)
            self._round(first=False)
        self.owe_all("does not read back as restored")

    def _keep(self, relied_on: NeededThrottles) -> None:
        """Nothing in flight may lose its throttle, though its plan has ended, or owes it."""
        for entry in list(self._left.values()):
            if copy := relied_on.slowed_by(entry):
                self._owe(entry, str(copy))
        self._record()

    def _leave_other_topics(self) -> None:
        """A topic that was created anew under the name of one that is gone has its own lists: what
        is on them was never ours, whatever it reads.
        """
        lists = [e for e in self._left.values() if e.resource.type is ResourceType.TOPIC]
        if not lists:
            return
        planned = self._ledger.planned_topic_ids({entry.plan_id for entry in lists})
        shown = self._cluster.current_topics({entry.resource.name for entry in lists})
        for entry in lists:
            name = entry.resource.name
            topic_id, topic = planned.get((entry.plan_id, name)), shown.get(name)
            if topic_id is None or topic is None or topic.error is not None:
                continue
            if topic.topic_id not in ("", topic_id):
                self._mark_cleared(entry, "the topic is gone; another one has its name")
        self._record()

    def _at_controllers(self, entries: Collection[ThrottleEntry]) -> None:
        """Of brokers that are dead: their controllers take the change, where they can be reached.

        The present value cannot be read. It is ours, by the last reading; where that has shown
        another client's change, the entry waits for the broker.
        """
        marks = read_marks(self._cluster, self._ledger.ledger_id)
        steps: dict[ThrottlePlace, tuple[ConfigChange, ...]] = {}
        for entry in entries:
            if entry.set_by is SetBy.OTHERS:
                self._owe(entry, f"{CHANGED_SINCE}; {entry.resource} is not alive")
            elif isinstance(marks, BrokerError):
                self._owe(entry, str(marks))
            elif isinstance(
                step := in_place_of(entry, marks.at(entry.resource, entry.key)), Unsettled
            ):
                self._owe(entry, UNMARKED)
            else:
                steps[entry.place] = step
        values = [c for step in steps.values() for c in step if not is_mark(c.key)]
        verdicts = self._cluster.alter_configs(values) if values else {}
        taken = [e for e in entries if e.place in steps and verdicts[e.resource] is None]
        # Not before: a value whose mark is gone is not known to be ours.
        alter_default(self._cluster, [c for e in taken for c in steps[e.place] if is_mark(c.key)])
        for entry in (e for e in entries if e.place in steps):
            if entry in taken:
                self._mark_cleared(entry, "taken back at the controllers: its broker is not alive")
            else:
                self._owe(entry, f"{entry.resource} is not alive")

    def _round(self, *, first: bool) -> None:
        resources = {entry.resource for entry in self._left.values()}
        keys = {entry.key for entry in self._left.values()}
        before, self._read_at = len(self._left), now_s()
        marks = read_marks(self._cluster, self._ledger.ledger_id)
        answers = self._cluster.describe_configs(sorted(resources), keys) if resources else {}
        if isinstance(marks, Marks) and DEFAULT in answers:
            answers[DEFAULT] = dict(marks.default)
        changes: list[ConfigChange] = []
        rate_entries: list[ThrottleEntry] = []
        for entry in list(self._left.values()):
            if step := self._step(entry, answers[entry.resource], marks, first):
                changes += step
                rate_entries += [self._left[entry.place]] if entry.key not in LISTS else []
        another = any(self._is_new(change) for change in changes)
        self._record()
        verdicts = alter_marked(self._cluster, changes) if changes else {}
        made_at = now_s()
        for change in changes:
            self._made[change.resource, change.key] = _Made(change.operation, made_at)
        for entry in list(self._left.values()):
            touched = (entry.resource, DEFAULT) if entry in rate_entries else (entry.resource,)
            error = next((e for r in touched if (e := verdicts.get(r)) is not None), None)
            if error is not None and error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self._owe(entry, str(error))
        self._record()
        self._timeout.note_answer(progress=another or len(self._left) < before)

    def _is_new(self, change: ConfigChange) -> bool:
        made = self._made.get((change.resource, change.key))
        return made is None or made.operation is not change.operation

    def _step(
        self,
        entry: ThrottleEntry,
        configs: dict[str, ConfigValue] | BrokerError,
        marks: Marks | BrokerError,
        first: bool,
    ) -> tuple[ConfigChange, ...]:
        if isinstance(configs, BrokerError):
            if configs.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self._mark_cleared(entry, "the topic is gone, and its throttle with it")
            else:
                self._owe(entry, str(configs))
            return ()
        current = own_value(entry.resource, configs.get(entry.key))
        if entry.key not in LISTS:
            return self._leave(entry, current, marks, first)
        there = set(entry.ours) & set(split(current))
        marked = isinstance(marks, BrokerError) or marks.lists_of(entry.plan_id).items
        if there and (entry.set_by is SetBy.OTHERS or (marked and not entry.asked_values)):
            self._owe(replace(entry, set_by=SetBy.OTHERS), NOT_TOLD_APART)
            return ()
        if not entry.asked_values:
            found_now = never_asked(entry, current)
            self._mark_cleared(replace(entry, set_by=found_now.set_by), found_now.detail)
            return ()
        step = first_step(entry, current) if first else next_step(entry, current)
        if isinstance(step, ConfigChange):
            return (step,)
        if not self._is_behind(entry, current):
            self._mark_cleared(replace(entry, set_by=step.set_by), step.detail)
        return ()

    def _leave(
        self, entry: ThrottleEntry, current: str | None, marks: Marks | BrokerError, first: bool
    ) -> tuple[ConfigChange, ...]:
        """A rate or a cordon; what is handed over to another Rehome counts as ours as well."""
        if isinstance(marks, BrokerError):
            self._owe(entry, str(marks))
            return ()
        claims = marks.at(entry.resource, entry.key)
        entry = self._as_others_want_it_now(entry, claims.before(entry.prior_value))
        step = leave_step(entry, current, claims, first=first)
        if isinstance(step, Unsettled):
            self._owe(entry, UNMARKED)
            return ()
        if isinstance(step, Restored):
            self._mark_cleared(replace(entry, set_by=step.set_by), step.detail)
            return ()
        given = [c.value for c in step if c.key == entry.key and c.value in claims.values]
        ours = tuple(dict.fromkeys((*entry.ours, *(value for value in given if value))))
        self._left[entry.place] = replace(entry, ours=ours)
        return step

    def _as_others_want_it_now(self, entry: ThrottleEntry, before: str | None) -> ThrottleEntry:
        """What others want may have been revised by another Rehome: the ledger has to know before
        the mark goes that says so.
        """
        if before == entry.prior_value:
            return entry
        source = "NOT_SET" if before is None else source_of(entry.resource)
        revised = replace(entry, prior_value=before, prior_source=source)
        self._left[entry.place] = revised
        if entry.changed_at is not None:  # else its plan is unknown to this ledger
            self._ledger.journal_throttles([revised], revises=True)
        return revised

    def _is_behind(self, entry: ThrottleEntry, current: str | None) -> bool:
        """A SUBTRACT leaves an empty value where no key was: no key at all is an old reading.

        Or another client has deleted the key since; after a while that is assumed.
        """
        made = self._made.get((entry.resource, entry.key))
        if made is None or made.operation is not ConfigOperation.SUBTRACT or current is not None:
            return False
        return self._read_at - made.at < VERIFY_TIMEOUT_S / 2

    def _mark_cleared(self, entry: ThrottleEntry, detail: str) -> None:
        self.cleared.append(self._mark_ended(entry, ThrottleState.CLEARED, detail))

    def _owe(self, entry: ThrottleEntry, detail: str) -> None:
        items = entry.asked_values or entry.set_by is SetBy.OTHERS
        self.owed.append(
            self._mark_ended(entry, ThrottleState.OWED if items else entry.state, detail)
        )

    def _mark_ended(self, entry: ThrottleEntry, state: ThrottleState, detail: str) -> ThrottleEntry:
        del self._left[entry.place]
        marked = replace(entry, state=state, detail=detail)
        self._marks.append(marked)
        return marked

    def _record(self) -> None:
        """What has been found out since the last time, in one transaction."""
        if self._marks:
            self._ledger.mark_throttles(self._marks)
            self._marks = []

    def owe_all(self, detail: str) -> None:
        """Whatever is left could not be cleared, for this reason."""
        for entry in list(self._left.values()):
            self._owe(entry, detail)
        self._record()


def _broker(resource: ConfigResource) -> BrokerId | None:
    if resource.type is ResourceType.BROKER and resource.name:
        return int(resource.name)
    return None
