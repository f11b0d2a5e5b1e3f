"""Plan a cluster that is too large for one process, slice by slice.

A rebalance goes in rounds. In the first round all slices work in parallel; each takes its part of
every broker's distance to its band. Whole replicas leave a remainder: then one slice at a time
works on it, as long as brokers come closer. Leaders follow in the same way. Drains, replication
factors and rack repairs handle partitions independently, so one round is enough. A slice whose part
of the disks or of the budget was too small is planned again with all that is left.

The number of slices is part of the input: another number gives another plan. The machines, and the
order in which slices are planned, do not matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pyarrow as pa

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.array_types import UNLIMITED
from rehome.domain.plan.figures import Link, ResourceBalance
from rehome.domain.plan.infeasible import Infeasible, Obstacle, Subject, SubjectKind
from rehome.domain.plan.move_table import MoveCounts, MoveTable
from rehome.domain.plan.plan import Plan
from rehome.domain.plan.summary import BrokerLoad
from rehome.domain.request.param_types import TOPIC_SPREAD
from rehome.domain.request.request import ReassignmentRequest, spread_tolerance
from rehome.domain.resources import Resource
from rehome.errors import InvalidRequestError
from rehome.planning.model.scope import raise_if, shortened
from rehome.planning.options import PlanOptions
from rehome.planning.planner import PLANS_PER_REQUEST, assemble, check_hidden
from rehome.planning.rebalance.budget_cut import for_each_of, less
from rehome.planning.result.log_dir_choice import choose_log_dirs, tightened
from rehome.planning.result.lower_bounds import bands_bound
from rehome.planning.result.resource_bands import ResourceBands
from rehome.planning.result.summary_figures import planned_by
from rehome.planning.slices.rounds import Balance
from rehome.planning.slices.slice_steps import Part, ReportSlice, Survey, SurveySlice
from rehome.planning.slices.slices import BALANCING, PLACING, Context, PlaceInSlice, Report, Slices

_NOT_SPREAD = Infeasible(
    Subject(SubjectKind.ALL_TOPICS), Obstacle.PLANNED_IN_PARTS, wanted=0, nearest=0
)

OVERLAID = (*PLACING, *BALANCING)
"""Actions that can be planned in slices. The others change only what they name, or the replica
order.
"""


def plan_in_slices(
    snapshot: Snapshot,
    request: ReassignmentRequest,
    slices: Slices,
    options: PlanOptions,
) -> Plan:
    """Plan a request whose action is in :data:`OVERLAID`; see planner.make_plan.

    :param snapshot: without its replicas, which are in the slices.
    :raises InvalidRequestError: when the cluster contradicts the request; lists the problems.
    """
    check_hidden(snapshot, request)
    if request.min_leaders:
        raise_if(
            [
                "min_leaders cannot be kept by a plan that is made in slices, which see no whole "
                "topic: leave it out, or raise max_driver_replicas above this cluster's replicas."
            ]
        )
    if request.caps or request.broker_sets:
        raise InvalidRequestError(
            [
                "A cluster of this size is planned in slices, which keep neither caps nor broker "
                "sets: raise the setting max_driver_replicas, or lift them for this run."
            ]
        )
    if request.brought:
        raise InvalidRequestError(
            [
                "A cluster of this size is planned in slices, in which a rebalance brings nothing "
                "to destinations: raise the setting max_driver_replicas, or empty the other "
                "brokers of these topics by the action drain."
            ]
        )
    pace = options.pace(request.max_moves_per_broker)
    unspread = not np.isinf(spread_tolerance(request))
    if unspread:
        tolerances = {**request.tolerances, TOPIC_SPREAD: None}
        request = replace(request, tolerances=tolerances)
    context = Context(snapshot, slices.topics, request, options.min_free_disk_fraction, pace)
    # Requests that are invalid whatever the replicas are refused before any slice is planned.
    if request.action in PLACING:
        PLACING[request.action](context.empty(), request)
    else:
        Part(context, snapshot.replicas.slice(0, 0))
    reports, found, moves = _that_fit(context, slices)
    if unspread:
        found["infeasible"] += (_NOT_SPREAD,)
    copying = [r.copying_s for r in reports if r.copying_s is not None]
    busiest_s = float(np.sum(copying, axis=0).max()) if copying else 0.0
    return assemble(
        snapshot,
        moves,
        _added_up(reports),
        options,
        action=request.action,
        predicted_s=None if pace is None else pace.plan_s(busiest_s, len(moves)),
        rack_violations_before=sum(report.violations_before for report in reports),
        rack_violations_after=sum(report.violations_after for report in reports),
        bytes_across_racks=sum(report.bytes_across_racks for report in reports),
        links=_links(reports),
        **found,
    )


def _that_fit(context: Context, slices: Slices) -> tuple[list[Report], dict[str, Any], MoveTable]:
    """The planned slices, and all moves; their copies fit into the log dirs of each broker.

    :raises InvalidRequestError: some fit into no log dir.
    """
    plan = _placed if context.request.action in PLACING else _balanced
    brokers = context.brokers()
    order = [("topic", "ascending"), ("partition", "ascending")]
    planned_on = brokers
    for _ in range(PLANS_PER_REQUEST):
        reports, found = plan(replace(context, headrooms=planned_on.headrooms), slices)
        table = pa.concat_tables([report.moves for report in reports]).sort_by(order)
        moves, misfits = choose_log_dirs(MoveTable(table), brokers, name=True)
        if not misfits:
            break
        planned_on = tightened(planned_on, misfits)
    raise_if(shortened([misfit.problem for misfit in misfits]))
    return reports, found, moves


def _added_up(reports: Sequence[Report]) -> tuple[BrokerLoad, ...]:
    """Loads of brokers, summed over slices."""
    columns = np.sum([[astuple(b)[1:] for b in report.brokers] for report in reports], axis=0)
    ids = [load.broker for load in reports[0].brokers]
    return tuple(BrokerLoad(b, *row) for b, row in zip(ids, columns.tolist(), strict=True))


def _links(reports: Sequence[Report]) -> tuple[Link, ...]:
    """Bytes from rack to rack of all slices, largest first."""
    total: Counter[tuple[str, str]] = Counter()
    for link in (link for report in reports for link in report.links):
        total[link.source, link.target] += link.size_bytes
    ordered = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Link(*names, size_bytes) for names, size_bytes in ordered)


def _resources(
    reports: Sequence[Report], bands: ResourceBands | None
) -> tuple[ResourceBalance, ...]:
    """Each resource on all brokers, with the bands of the whole cluster."""
    return tuple(
        _whole(parts, bands)
        for parts in zip(*(report.resources for report in reports), strict=True)
    )


def _whole(parts: Sequence[ResourceBalance], bands: ResourceBands | None) -> ResourceBalance:
    resource = Resource(parts[0].resource)
    before, after, low, high = (
        tuple(np.sum(rows, axis=0).astype(np.int64).tolist()) if len(rows) else ()
        for rows in (
            [part.before for part in parts],
            [part.after for part in parts],
            [bands.low[resource]] if bands is not None and resource in bands.low else [],
            [bands.high[resource]] if bands is not None and resource in bands.high else [],
        )
    )
    return ResourceBalance(
        resource=resource.value,
        known=any(part.known for part in parts),
        tolerance=None if bands is None else bands.tolerance.get(resource),
        before=before,
        after=after,
        low=low,
        high=high,
    )


def _together(notes: Iterable[Infeasible]) -> tuple[Infeasible, ...]:
    """Merge the notes of all slices on the same target."""
    total: dict[Infeasible, Infeasible] = {}
    for note in notes:
        key = replace(note, wanted=0, nearest=0)
        wanted, nearest = note.wanted, note.nearest
        if key in total:
            wanted, nearest = total[key].wanted + wanted, total[key].nearest + nearest
        total[key] = replace(note, wanted=wanted, nearest=nearest)
    return tuple(total.values())


def _refuse(found: Sequence[Report] | Sequence[Survey]) -> None:
    problems = dict.fromkeys(problem for one in found for problem in one.problems)
    raise_if(shortened(list(problems)))


def _placed(context: Context, slices: Slices) -> tuple[list[Report], dict[str, Any]]:
    """Complete the replica sets. A slice whose part of the disks or of the budget was too small is
    planned again, with all that the others left.
    """
    headrooms, request = context.brokers().headrooms, context.request
    limited = (headrooms >= 0) & (headrooms < UNLIMITED)
    numbers = range(slices.count)
    part = np.where(limited, headrooms // slices.count, headrooms)
    each = replace(context, request=for_each_of(slices.count, request))
    reports: list[Report] = slices.each(dict.fromkeys(numbers, PlaceInSlice(each, part)))
    for number in numbers:
        report = reports[number]
        crowded = limited.any() and (report.problems or report.violations_after)
        if not crowded and not report.unpaid:
            continue
        others = [r for n, r in enumerate(reports) if n != number and not r.problems]
        taken = sum(r.packed for r in others if r.packed is not None)
        left = np.where(limited, np.maximum(headrooms - taken, 0), headrooms)
        rest = less(request, [MoveCounts.of(MoveTable(r.moves)) for r in others])
        place = PlaceInSlice(replace(context, request=rest), left)
        reports[number] = slices.each({number: place})[0]
    _refuse(reports)
    return reports, {
        "lower_bound_bytes": sum(report.lower_bound_bytes for report in reports),
        "asked_bound_bytes": _asked_bound(reports),
        "infeasible": _together(note for report in reports for note in report.infeasible),
        "planned_by": planned_by(None, (), context.request.action),
        "resources": _resources(reports, None),
    }


def _asked_bound(reports: Sequence[Report]) -> int | None:
    """Lower bound for plans without a budget, summed over slices."""
    asked = [report.asked_bound_bytes for report in reports]
    if all(bound is None for bound in asked):
        return None
    return sum(
        report.lower_bound_bytes if bound is None else bound
        for report, bound in zip(reports, asked, strict=True)
    )


def _balanced(context: Context, slices: Slices) -> tuple[list[Report], dict[str, Any]]:
    """Bring brokers into their bands and leader shares."""
    surveys: list[Survey] = slices.each(dict.fromkeys(range(slices.count), SurveySlice(context)))
    _refuse(surveys)
    balance = Balance(context, slices, surveys)
    balance.run(leads=False)
    balance.run(leads=True)
    goal = balance.goal
    before = reduce(add, (survey.held for survey in surveys)).load
    reports = slices.each(
        {
            number: ReportSlice(context, goal, balance.moved.get(number), before)
            for number in range(slices.count)
        }
    )
    domain = goal.domain if all(survey.even for survey in surveys) else np.zeros_like(goal.domain)
    held, after = before[0].astype(np.int64), goal.held.load[0].astype(np.int64)
    missed = balance.missed()
    cut = any(note.obstacle is Obstacle.BUDGET for note in missed)
    notes = tuple(note for survey in surveys for note in survey.infeasible)
    return reports, {
        "lower_bound_bytes": bands_bound(held, after, goal.low[0], goal.high[0], domain),
        "asked_bound_bytes": (
            bands_bound(held, goal.share[0], goal.low[0], goal.high[0], domain) if cut else None
        ),
        "infeasible": (*notes, *missed),
        "planned_by": planned_by(balance.bands(), balance.known, context.request.action),
        "resources": _resources(reports, balance.bands()),
    }
