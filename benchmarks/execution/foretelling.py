"""`decide` in a simulation, with a sample of each poll as production records it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

from rehome.domain.kafka import ReplicaId
from rehome.domain.plan.plan import Plan
from rehome.domain.run.flows import FLOWS_VIEWED, FlowSample
from rehome.domain.run.ledger_view import LedgerView, MoveSums
from rehome.domain.run.observation import Observation
from rehome.domain.run.progress import ProgressSample
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState
from rehome.execution.actions import Decision
from rehome.execution.admission.backlog import Backlog, Foreseen
from rehome.execution.decide import decide
from rehome.execution.estimate.projection import Course, play_out
from rehome.execution.progress import eta
from rehome.execution.progress.eta import Remaining, foretell
from rehome.execution.progress.flow_samples import Copied
from rehome.execution.progress.measured import measure
from rehome.execution.progress.progress import admitted_moves, copies_at, replica_statuses


@dataclass(frozen=True, slots=True)
class EtaParts:
    """What the prediction goes by; ``make bench-ablation`` measures what each brings.

    :param per_broker: what single brokers deliver; else all deliver the mean.
    :param reaction: how soon moves have started of late; else what the policy says.
    :param projection: the rest is played out; else the busiest broker decides.
    """

    per_broker: bool = True
    reaction: bool = True
    projection: bool = True

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Inside the context the prediction goes by these parts."""
        with patch.object(eta, "play_out", self._play_out):
            if self.reaction:
                yield
                return
            with patch.object(eta, "measured_reaction_s", lambda *of: of[-1].reaction_s):
                yield

    def _play_out(
        self, backlog: Backlog, copying: Any, seen: Observation, policy: Policy, pace: Any, now: Any
    ) -> Course:
        bytes_per_s = now if self.per_broker else replace(now.__self__, own={}).bytes_per_s
        if self.projection:
            return play_out(backlog, copying, seen, policy, pace, bytes_per_s)
        left = Remaining.of(backlog, seen, pace).left_bytes
        return Course(max(size / bytes_per_s(slot) for slot, size in left.items()), whole=True)


ALL_PARTS = EtaParts()


class Unasked(Foreseen):
    """Replaces the ETA where none is needed: playing the rest of a plan out takes long."""

    def holds(self, view: LedgerView, seen: Observation) -> bool:
        """Always."""
        return True

    def eta_at(self, seen: Observation) -> None:  # type: ignore[override]
        """No answer."""
        return


UNASKED = Unasked(datetime(2030, 1, 1, tzinfo=UTC), 0.0, 0, None, frozenset())


@dataclass
class Foretelling:
    """A ``decide`` that also writes down what each poll foretells.

    :param polls: how many polls there are for each whose sample has an ETA.
    :param parts: what the ETA goes by.
    """

    polls: int = 1
    parts: EtaParts = ALL_PARTS
    samples: list[ProgressSample] = field(default_factory=list)
    _flows: list[FlowSample] = field(default_factory=list)
    _before: dict[ReplicaId, Copied] = field(default_factory=dict)

    def __call__(
        self,
        plan: Plan,
        view: LedgerView,
        seen: Observation,
        now: datetime,
        policy: Policy,
        backlog: Backlog,
    ) -> list[Decision]:
        """Foretell, then decide."""
        states = {m.partition: view.moves.get(m.partition, MoveState.PENDING) for m in plan.moves}
        done = [m.bytes_to_copy for m in plan.moves if states[m.partition] is MoveState.DONE]
        whole = replace(view, moves=states, done=MoveSums(len(done), sum(done)))
        statuses = replica_statuses(admitted_moves(plan, whole), seen)
        with self.parts.alone():
            foretold = foretell(
                replace(whole, flows=tuple(self._flows[-FLOWS_VIEWED:])),
                backlog,
                seen,
                policy,
                self._before,
                self.samples[-1].sampled_at if self.samples else None,
                self.samples,
                UNASKED if len(self.samples) % self.polls else None,
            )
        if foretold.flows is not None:
            self._flows.append(foretold.flows)
        self._before = copies_at(now, statuses)
        sample = measure(plan, whole, seen, statuses)
        self.samples.append(
            replace(sample, busiest_bytes=foretold.busiest_bytes, eta_s=foretold.eta_s)
        )
        return decide(plan, view, seen, now, policy, backlog)
