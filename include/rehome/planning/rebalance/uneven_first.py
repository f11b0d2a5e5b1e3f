"""The start of the search of a large cluster many of whose partitions are uneven over racks.

A replica moves only where that makes its partition even at once: moved otherwise, it would leave
it uneven, and a repair would copy one more of its replicas. Such moves change what domains hold, so
in the end domains that hold too much give to others. Then only even partitions move on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask
from rehome.planning.effort.shed_options import Inner
from rehome.planning.model.arrays import broker_sums
from rehome.planning.placement.even_destinations import destinations
from rehome.planning.search.broker_shed import BYTES_ROW
from rehome.planning.search.fill import fill
from rehome.planning.search.shed import narrow, shed, transfers, wanted_loads
from rehome.planning.search.state import Problem, Search


def make_even_first(search: Search, inner: Inner) -> Problem | None:
    """Bring brokers close to their bands by moves after which each partition is even. Returns the
    problem of the partitions that are even then. None, with nothing moved, where that is no way:

    - all partitions are even, or some have more replicas than there are racks;
    - brokers take no part, are to be emptied, or have caps or sets;
    - most replicas have no such move.

    :param search: of all partitions. What is returned needs a search of its own.
    :param inner: see ShedOptions.
    """
    problem, layout = search.problem, search.problem.layout
    if search.racks.even() or not search.racks.plain() or layout.arrays.limits is not None:
        return None
    if problem.leaving.any() or not problem.gives[problem.tree.hosts].all():
        return None
    search.racks.evens, search.strict = True, False
    movable = ((search.rows != NONE) & problem.partitions[:, None]).reshape(-1)
    if (_destinations(search) != NONE)[movable].mean() < 0.5:
        search.racks.evens = False
        return None
    _fill(search, wanted_loads(search, inner))
    _fill(search, wanted_loads(search, inner), np.less_equal)
    for _ in range(2):  # what has found no broker is tried again
        if not _totals_fit(search):
            _fill(search, transfers(search), np.less)
    layout.refresh()
    return replace(problem, partitions=problem.partitions & search.racks.apart())


def keeps_off_bands(problem: Problem, even: Problem) -> bool:
    """Whether what domains hold, or what partitions hold that are not even, keeps brokers off
    their bands: then a search that moves all partitions may come closer.
    """
    search = Search(problem)
    return not (_totals_fit(search) and _rest_fits(search, ~even.partitions))


def _fill(search: Search, wanted_load: Floats, towards: np.ufunc | None = None) -> None:
    """Shed and fill.

    :param towards: how bytes beyond its share in the domain that a replica goes to compare with
        those in its own; None = in any way.
    """
    domain, into = search.problem.targets.domain, _destinations(search)
    among = into != NONE
    if towards is not None:
        surplus = np.bincount(domain, search.load[BYTES_ROW] - search.share[BYTES_ROW])
        among &= towards(surplus[into], surplus[domain[search.flat]])
    short = narrow(search, wanted_load)
    replicas = shed(search, wanted_load, short, among=among)
    fill(search, wanted_load, replicas, short, into[replicas])


def _totals_fit(search: Search) -> bool:
    """Whether all brokers of each domain can be inside their bands with what it holds."""
    domain = search.problem.targets.domain
    for row in np.flatnonzero(search.scale.any(axis=1)).tolist():
        least, total, most = (
            np.bincount(domain, of[row]) for of in (search.low, search.load, search.high)
        )
        if (total < least).any() or (total > most).any():
            return False
    return True


def _rest_fits(search: Search, stays: Mask) -> bool:
    """Whether no broker is above a band by the partitions (P,) that stay where they are alone."""
    rows, brokers = search.rows[stays], len(search.problem.gives)
    banded = np.flatnonzero(search.scale.any(axis=1)).tolist()
    return all(
        (broker_sums(rows, search.weights[row][stays], brokers) <= search.high[row]).all()
        for row in banded
    )


def _destinations(search: Search) -> Ints:
    return destinations(search.racks, search.rows, search.problem.targets.domain, search.receivers)
