"""What was said to people, and when."""

from __future__ import annotations

from dataclasses import dataclass

from rehome.domain.claims import Claim
from world.judge.described import Described
from world.judge.promises import TakenUp


@dataclass(frozen=True, slots=True)
class Statement:
    """Something that was said.

    :param by: the installation; ``where``: by what of it.
    :param since: when the first read began that it is made from; ``at``: when it was published.
        Virtual seconds.
    """

    by: str
    plan_id: str
    where: str
    claims: tuple[Claim | Described | TakenUp, ...]
    since: float
    at: float
