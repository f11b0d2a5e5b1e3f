"""The hard rules on a plan, independent of the planner: suites/plan.

The tables are those of :mod:`rehome.quality.plan.tables`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import isinf
from typing import Any

from rehome.domain.actions import Action, Trait
from rehome.domain.request.request import ReassignmentRequest, spread_tolerance
from rehome.domain.resources import OPTIONAL, Resource, asked_resources
from rehome.quality.engine.rules import Rule, about_resource, at_level, rules_of
from rehome.quality.plan.leadership import ELECTS

_TABLES = (
    "moves",
    "files",
    "plan",
    "brokers_after",
    "log_dirs_after",
    "topics_after",
    "leaders_after",
)

EXPLICIT = (Action.REASSIGN, Action.ROLLBACK)
"""Actions whose targets the operator names."""

_CHANGES_FACTOR = (Action.SET_REPLICATION_FACTOR, Action.ROLLBACK)
"""Actions after which a partition may have more or fewer replicas, whatever else is asked."""

_LEAVES_NONE_OUT = (
    Action.SET_REPLICATION_FACTOR,
    Action.REASSIGN,
    Action.REPAIR_RACKS,
    Action.FIX_OFFLINE_REPLICAS,
    Action.DEMOTE,
    Action.ELECT_PREFERRED,
    Action.EVACUATE_LOG_DIRS,
)
_RACKS, _OPTIONAL = "racks", "share_of_optional"


def plan_rules(request: ReassignmentRequest, *, rack_levels: int) -> tuple[Rule, ...]:
    """The rules that apply to this request.

    :param rack_levels: depth of the cluster's rack tree; 0 = no racks.
    """
    rules = rules_of("plan", _TABLES, _names_that_apply(request))
    return tuple(_each(rules, rack_levels, asked_resources(request.tolerances)))


def plan_parameters(request: ReassignmentRequest) -> Mapping[str, Any]:
    """Values of ``$PARAMETER`` in the suites. Missing ones belong to rules that do not apply."""
    return {
        "replication_factor": request.replication_factor,
        "budget_bytes": request.budget_bytes,
        "budget_moves": request.budget_moves,
    }


def _each(
    rules: tuple[Rule, ...], rack_levels: int, resources: Collection[Resource]
) -> Iterator[Rule]:
    for rule in rules:
        if rule.only_for == _RACKS:
            yield from (at_level(rule, level) for level in range(1, rack_levels + 1))
        elif rule.only_for == _OPTIONAL:
            yield from (about_resource(rule, one) for one in OPTIONAL if one in resources)
        else:
            yield rule


def _names_that_apply(request: ReassignmentRequest) -> list[str]:
    """The ``only_for`` names of the suites that apply to this request."""
    action, explicit = request.action, request.action in EXPLICIT
    levels = action in (Action.REBALANCE, Action.EXPAND)
    budgeted = request.budget_bytes is not None or request.budget_moves is not None
    whole, drains = action in _LEAVES_NONE_OUT, action in (Action.DRAIN, Action.REPLACE)
    replicas = request.tolerances.get(Resource.REPLICAS)
    resizes = action in _CHANGES_FACTOR or request.allow_replication_factor_change
    names = {
        "chosen_by_planner": not explicit,
        "reassign": action is Action.REASSIGN,
        "drain": drains,
        "drain_budgeted": drains and budgeted,
        "drain_unbudgeted": drains and not budgeted,
        "new_homes": action is Action.FIX_OFFLINE_REPLICAS,
        "unpaid_left_out": whole and budgeted,
        "none_left_out": whole and not budgeted,
        "some_brokers": levels and bool(request.brokers),
        "leaders": action in (Action.BALANCE_LEADERS, Action.DEMOTE),
        "evacuate": action is Action.EVACUATE_LOG_DIRS,
        "replace": action is Action.REPLACE,
        "demote": action is Action.DEMOTE,
        "elections": action in ELECTS,
        "only_elections": action is Action.ELECT_PREFERRED,
        "log_dirs": action is Action.MOVE_LOG_DIRS,
        "factor_changes": resizes,
        "factor_stays": not resizes,
        "factor_asked": action is Action.SET_REPLICATION_FACTOR,
        _RACKS: not explicit and not request.ignore_racks,
        "excluded": bool(request.exclude_brokers),
        "destinations": bool(request.destinations),
        "brought": request.action is Action.REBALANCE and bool(request.destinations),
        "broker_sets": bool(request.broker_sets),
        "sets_repaired": bool(request.broker_sets) and request.has(Trait.REPAIRS_SETS),
        "caps": bool(request.caps),
        "budget_bytes": request.budget_bytes is not None,
        "budget_moves": request.budget_moves is not None,
        "bands": levels,
        "topics_spread": not isinf(spread_tolerance(request)),
        "min_leaders": bool(request.min_leaders),
        "share_of_bytes": levels and request.tolerance is not None,
        "share_of_replicas": levels and replicas is not None,
        _OPTIONAL: action is Action.REBALANCE,
    }
    return [name for name, is_asked in names.items() if is_asked]
