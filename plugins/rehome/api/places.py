"""How many requests of one kind are open at once: for each user, and in all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rehome.errors import PickledAsRaised


class NoRoomError(PickledAsRaised, Exception):
    """All places are taken.

    :param own: whether they are the user's own; False = those of all users together.
    """

    def __init__(self, own: bool, at_most: int) -> None:
        self.own = own
        whose = "You have" if own else "All users together have"
        super().__init__(f"{whose} {at_most} of these requests open already. Try again later.")


@dataclass
class Places:
    """A counter of what is open, in one process of the API server. Its event loop alone uses it.

    :param per_user: at most so many for each user.
    :param in_all: at most so many for all users.
    """

    per_user: int
    in_all: int
    _taken: Counter[str] = field(default_factory=Counter)

    @property
    def open(self) -> int:
        """How many are taken now."""
        return self._taken.total()

    @contextmanager
    def take(self, user_id: str) -> Iterator[None]:
        """Within the block, a place is the user's.

        :raises NoRoomError: none is left.
        """
        if self._taken[user_id] >= self.per_user:
            raise NoRoomError(True, self.per_user)
        if self.open >= self.in_all:
            raise NoRoomError(False, self.in_all)
        self._taken[user_id] += 1
        try:
            yield
        finally:
            self._taken[user_id] -= 1
            self._taken += Counter()  # forget users who have none open
