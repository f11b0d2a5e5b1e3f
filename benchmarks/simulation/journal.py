"""What the ledger holds during a simulation: written before the cluster is changed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from rehome.domain.kafka import TopicPartition
from rehome.domain.run.states import MoveState


class Crash(BaseException):
    """The process dies here. Not an Exception: nothing may catch it but the simulation."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A move's new state; ``sent`` where the controller has accepted it."""

    partition: TopicPartition
    state: MoveState
    at: datetime
    sent: bool = False


class Journal:
    """Entries in their order, and what follows from them.

    :param partitions: of the plan's moves: each is pending at first.
    :param crash_after: the process dies right after so many entries, once for each number.
    """

    def __init__(
        self, partitions: Collection[TopicPartition], crash_after: Collection[int] = ()
    ) -> None:
        self.entries: list[Entry] = []
        self._partitions = partitions
        self._crash_after = frozenset(crash_after)
        self.states = dict.fromkeys(partitions, MoveState.PENDING)
        self.sent: dict[TopicPartition, datetime] = {}

    def write(self, entry: Entry) -> None:
        """Append an entry.

        :raises Crash: this was the last one before the process dies.
        """
        self._append(entry)
        if len(self.entries) in self._crash_after:
            raise Crash

    def reread(self) -> Journal:
        """What a new process knows: the entries alone."""
        journal = Journal(self._partitions, self._crash_after)
        for entry in self.entries:
            journal._append(entry)
        return journal

    def _append(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.states[entry.partition] = entry.state
        if entry.sent:
            self.sent[entry.partition] = entry.at
        elif entry.state is not MoveState.ADMITTED:
            self.sent.pop(entry.partition, None)
