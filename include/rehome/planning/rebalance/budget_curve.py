"""Budget curve: what smaller budgets would reach, bytes copied against balance.

The search does not depend on the budget; the budget only decides which of its moves are kept. So a
point costs a fraction of a plan, and a request with that budget makes exactly these moves on the
same snapshot.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rehome.domain.array_types import Floats, Mask
from rehome.domain.plan.figures import BudgetPoint
from rehome.planning.model.arrays import is_new
from rehome.planning.model.layout import Layout
from rehome.planning.result.resource_bands import ResourceBands, loads

FRACTIONS, FRACTIONS_OF_MANY = (0.1, 0.25, 0.5, 0.75), (0.25, 0.5)
"""Budgets, as fractions of the plan's bytes; the second tuple is for large clusters."""

_MANY = 300_000
"""Size, in replicas, above which there are fewer points because each takes long."""


def budget_curve(
    layout: Layout,
    bands: ResourceBands,
    brokers: Mask,
    cut_off: Callable[[int | None], bool],
    *,
    cut: bool,
    one_sided: bool,
) -> tuple[BudgetPoint, ...]:
    """Points from zero bytes to all moves of the search, including the plan itself; empty if the
    search moves nothing.

    :param layout: the finished plan; restored afterwards.
    :param brokers: (B,) those whose distance from their shares counts.
    :param cut_off: reduces ``layout`` to a budget in bytes (None = no limit); returns whether it
        took moves back.
    :param cut: whether a budget took moves of the plan back.
    :param one_sided: only brokers above their shares count.
    """
    finished = layout.rows.copy()

    def point(budget_bytes: int | None = None) -> BudgetPoint:
        furthest = {
            resource.value: _furthest(
                loads(layout, layout.rows, resource)[brokers], share[brokers], one_sided=one_sided
            )
            for resource, share in bands.share.items()
        }
        copied = int(layout.incoming.sum())
        copies = int(is_new(layout.rows, layout.origin).sum())
        return BudgetPoint(
            copied if budget_bytes is None else budget_bytes, copied, copies, furthest
        )

    most = chosen = point()
    if cut:
        cut_off(None)
        most = point()
    layout.lay_out(layout.origin)
    points = {0: point()}
    fractions = FRACTIONS if layout.rows.size <= _MANY else FRACTIONS_OF_MANY
    for budget_bytes in (int(part * most.bytes_to_move) for part in fractions):
        if cut_off(budget_bytes):
            points.setdefault(int(layout.incoming.sum()), point(budget_bytes))
    layout.lay_out(finished)
    points |= {each.bytes_to_move: each for each in (most, chosen)}
    return tuple(sorted(points.values(), key=_copied_bytes)) if most.bytes_to_move else ()


def _copied_bytes(point: BudgetPoint) -> int:
    return point.bytes_to_move


def _furthest(load: Floats, share: Floats, *, one_sided: bool) -> float:
    """The largest deviation of a broker from its share, as a fraction of the share."""
    off = load - share if one_sided else np.abs(load - share)
    return round(float(np.max(off / np.maximum(share, 1), initial=0.0)), 4)
