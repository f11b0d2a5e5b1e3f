"""The run that remedies a finding: its action and its parameters. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from rehome.clusters.watch_rules import WatchRules
from rehome.domain.actions import Action
from rehome.domain.kafka import BrokerId
from rehome.domain.request.parameters import USED_BY, ReassignmentParams
from rehome.domain.request.validation import read_params
from rehome.domain.resources import Resource
from rehome.domain.run.watched.finding import FindingRecord
from rehome.domain.run.watched.finding_kinds import FindingKind, WatchPolicy

_ACTIONS = {
    FindingKind.DEAD_BROKER: Action.FIX_OFFLINE_REPLICAS,
    FindingKind.OFFLINE_LOG_DIR: Action.FIX_OFFLINE_REPLICAS,
    FindingKind.EMPTY_BROKER: Action.EXPAND,
    FindingKind.RACK_VIOLATION: Action.REPAIR_RACKS,
    FindingKind.REPLICATION_FACTOR: Action.SET_REPLICATION_FACTOR,
    FindingKind.LEADER_SKEW: Action.ELECT_PREFERRED,
}
REMEDIES = frozenset({*_ACTIONS.values(), Action.REBALANCE})
"""Every action that may be started for a finding."""


def action_of(kind: FindingKind) -> Action:
    """The action that remedies a finding."""
    return _ACTIONS.get(kind, Action.REBALANCE)


def policy_for(finding: FindingRecord, rules: WatchRules) -> WatchPolicy:
    """What follows for a finding. Replicas are taken away by a plan that a person approves only:
    nothing that runs by itself lowers a replication factor.
    """
    policy = rules.policy_of(finding.kind)
    lowers = finding.kind is FindingKind.REPLICATION_FACTOR and finding.facts.get("lowers")
    return WatchPolicy.PROPOSE if lowers and policy is WatchPolicy.HEAL else policy


def remedy(
    finding: FindingRecord,
    policy: WatchPolicy,
    rules: WatchRules,
    targets: Mapping[str, Any],
    drained: Collection[BrokerId] = (),
) -> dict[str, Any]:
    """Parameters of the run that remedies a finding.

    The cluster's targets are within them where both say something: the run must not let a target
    replace what is here, even if that is the form's default.

    :param targets: of the cluster, as the clusters file has them.
    :param drained: brokers that a person has emptied, and means to keep empty.
    """
    action = action_of(finding.kind)
    own = read_params(ReassignmentParams, targets).values
    params: dict[str, Any] = {
        "action": action.value,
        **throttle_of(rules, targets),
        "approval": policy is WatchPolicy.PROPOSE or own.approval,
    }
    match action:
        case Action.FIX_OFFLINE_REPLICAS | Action.EXPAND:
            params["brokers"] = [broker_of(finding.subject)]
        case Action.SET_REPLICATION_FACTOR:
            declared = list(rules.replication_factors)
            params["topics"] = [finding.subject]
            if finding.subject in declared:  # the first pattern that matches a topic is its own
                earlier = declared[: declared.index(finding.subject)]
                params["exclude_topics"] = [*earlier, *own.exclude_topics]
            params["replication_factor"] = finding.facts["replication_factor"]
        case Action.REBALANCE:
            params |= _tolerances(finding, rules, own)
    if left_empty := excluded_brokers(action, targets, drained):
        params["exclude_brokers"] = left_empty
    if rules.budget_bytes is not None and action in USED_BY["budget_bytes"]:
        params["budget_bytes"] = rules.budget_bytes
    return params


def excluded_brokers(
    action: Action, targets: Mapping[str, Any], drained: Collection[BrokerId]
) -> list[BrokerId]:
    """Brokers on which a remedy places nothing; [] = it leaves that to the cluster's targets."""
    if not drained or action not in USED_BY["exclude_brokers"]:
        return []
    return sorted({*read_params(ReassignmentParams, targets).values.exclude_brokers, *drained})


def throttle_of(rules: WatchRules, targets: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of the cluster's throttle, but never more than the rules' largest."""
    own, largest = read_params(ReassignmentParams, targets).values, rules.largest_throttle
    most = min(own.throttle_max or largest, largest)
    throttle: dict[str, Any] = {
        "throttle": min(own.throttle, largest) if isinstance(own.throttle, int) else own.throttle,
        "throttle_max": most,
        "unthrottled": False,
    }
    if own.throttle_min is not None:
        throttle["throttle_min"] = min(own.throttle_min, most)
    return throttle


def _tolerances(
    finding: FindingRecord, rules: WatchRules, own: ReassignmentParams
) -> dict[str, Any]:
    """Half of each rule's tolerance: a plan that ends at the edge of a rule would leave a finding
    that comes and goes, and what evens out one resource must not unbalance another one.

    A narrower tolerance of the cluster stays, and any of its own for other resources than the
    finding's.
    """
    watched = {
        Resource.BYTES_IN: rules.traffic_tolerance,
        Resource.BYTES_OUT: rules.traffic_tolerance,
    }
    if finding.kind is FindingKind.IMBALANCE:  # no rule says how even disks that fill up are to be
        watched[Resource.BYTES] = rules.balance_tolerance
    tolerances: dict[str, float | None] = dict(own.tolerances)
    if "tolerance" in own.model_fields_set:
        tolerances[Resource.BYTES] = own.tolerance
    for resource, rule in watched.items():
        if rule is None:
            continue
        half, own_tolerance = min(rule, 1.0) / 2, tolerances.get(resource)
        if finding.subject == resource:
            tolerances[resource] = half if own_tolerance is None else min(half, own_tolerance)
        else:
            tolerances.setdefault(resource, half)
    params: dict[str, Any] = {}
    if Resource.BYTES in tolerances:  # it has a parameter of its own
        params["tolerance"] = tolerances.pop(Resource.BYTES)
    return params | {"tolerances": {str(name): value for name, value in tolerances.items()}}


def broker_of(subject: str) -> BrokerId:
    """The broker that a finding's subject names."""
    return int(subject.split()[1])
