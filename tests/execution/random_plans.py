"""Random plans, and the least time that their execution needs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rehome.domain.plan.plan import Plan
from rehome.execution.admission.backlog import Backlog
from rehome.execution.progress.eta import Remaining
from tests.execution.observed import POLICY, running, seen
from tests.ledger.small_plans import make_plan, move

MB = 1_000_000


def random_plan(
    brokers: int,
    moves_per_broker: int,
    sigma: float,
    seed: int,
    adding: int = 1,
    *,
    leaders: bool = False,
) -> Plan:
    """Each move brings replicas to random brokers; sizes are log-normal.

    One replica takes the place of a follower, or the leader's; several are added to what is there.
    """
    random = np.random.default_rng(seed)
    count = moves_per_broker * brokers
    sizes = random.lognormal(np.log(30 * MB), sigma, count).astype(int).tolist()
    moves = []
    for number, size in enumerate(sizes):
        a, b, *new = (random.permutation(brokers)[: 2 + adding] + 1).tolist()
        kept = (a, b) if adding > 1 else (b,) if leaders else (a,)
        target = (*new, *kept) if leaders else (*kept, *new)
        moves.append(move("t", number, (a, b), target, size))
    return make_plan("p", *moves)


def tiny(plan: Plan) -> Plan:
    """Its moves, so small that ten of them share a slot."""
    return make_plan("p", *(replace(m, size_bytes=m.size_bytes // 100) for m in plan.moves))


def busiest_bytes(plan: Plan) -> int:
    """What the broker and direction with most bytes has to copy."""
    view, sight = running(plan), seen(plan)
    return Remaining.of(Backlog.of(plan, view, sight), sight, POLICY.pace(1)).busiest_bytes
