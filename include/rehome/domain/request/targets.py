"""Targets of a cluster: its own defaults for the parameters of runs.

They fill the parameters that were left at their default by the person and by the preset. One that
the action has no use for is left out, as a person would leave it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from rehome.domain.actions import Action
from rehome.domain.request import param_types
from rehome.domain.request.param_maps import rates_by_broker
from rehome.domain.request.parameters import OF_A_RUN, USED_BY, ReassignmentParams
from rehome.domain.request.presets import Filled
from rehome.domain.request.validation import is_blank, read_params

_RATES = "throttle_by_broker"


def target_problems(targets: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with targets: a sentence for each problem."""
    for name in targets:
        if name in OF_A_RUN:
            yield f"{name} says what one run is for: it cannot be a target of a cluster."
    rest = {name: value for name, value in targets.items() if name not in OF_A_RUN}
    read = read_params(ReassignmentParams, rest)
    yield from read.problems
    values = read.values
    throttled = not read.problems and (values.throttle != "auto" or values.throttle_by_broker)
    if throttled and values.unthrottled:
        yield "unthrottled is given, and a throttle is, too: every run would be refused."


def with_targets(
    filled: Filled,
    targets: Mapping[str, Any],
    defaults: Mapping[str, Any],
    chosen: Collection[str] = (),
) -> Filled:
    """Parameters with the cluster's targets where nothing else was chosen.

    Rates of single brokers are set beside a throttle that was chosen, and never above it.

    :param defaults: what the form shows unless it is edited.
    :param chosen: parameters that stay even where they are at their default.
    """
    params = filled.params
    set_here = {
        name: value
        for name, value in of_use(targets, str(params.get("action") or "")).items()
        if name not in (*filled.by_preset, *_decided_targets(params, defaults), *chosen)
        and (is_blank(params.get(name)) or params[name] == defaults.get(name))
    }
    if _RATES in set_here and "throttle" not in set_here:
        set_here[_RATES] = _not_above(params.get("throttle"), set_here[_RATES])
    params = {**params, **set_here}
    return replace(filled, params=params, by_targets=set_here, chosen=frozenset(chosen))


def _decided_targets(params: Mapping[str, Any], defaults: Mapping[str, Any]) -> set[str]:
    """Targets about the throttle that a choice of a person, a preset or a plan rules out."""
    decided = set()
    goes_on = not is_blank(params.get("plan_id")) and params.get("action") != Action.ROLLBACK.value
    throttled = params.get("throttle") not in (None, "", defaults.get("throttle"))
    if goes_on or throttled or params.get(_RATES):
        decided.add("unthrottled")  # a plan that was made with a throttle does not lose it
    if _is_on(params.get("unthrottled")):
        decided |= {"throttle", _RATES}
    if _is_on(params.get("export")):
        decided.add(_RATES)  # Kafka's own tool takes one rate
    return decided


def _not_above(throttle: Any, rates: Any) -> Any:
    """Rates of single brokers that are targets, none above a throttle that was chosen."""
    try:
        most = param_types.rate(throttle)
    except (TypeError, ValueError):
        return rates  # auto; or no rate, which parse_request refuses
    return rates_by_broker(rates).limited_to(most).to_json()


def _is_on(value: Any) -> bool:
    try:
        return param_types.boolean(value or False)
    except (TypeError, ValueError):
        return False  # parse_request says what is wrong with it


def only_exported(filled: Filled) -> Filled:
    """Parameters of a run that exports files: it is a dry run, whatever else was said."""
    exports = _is_on(filled.params.get("export"))
    return replace(filled, params={**filled.params, "dry_run": True}) if exports else filled


def of_use(targets: Mapping[str, Any], action: str) -> dict[str, Any]:
    """Targets that an action takes."""
    targets_of_action = {
        name: value
        for name, value in targets.items()
        if name not in USED_BY or action in USED_BY[name]
    }
    if action == Action.DRAIN.value and isinstance(targets_of_action.get("tolerances"), Mapping):
        kept = {
            k: v
            for k, v in targets_of_action["tolerances"].items()
            if k == param_types.TOPIC_SPREAD
        }
        targets_of_action["tolerances"] = kept
        if not kept:
            del targets_of_action["tolerances"]
    return targets_of_action
