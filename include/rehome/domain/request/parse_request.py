"""Reads the parameters of a run, and names every problem at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from math import inf
from typing import Any

from rehome.domain.actions import ACTION_FACTS, Action
from rehome.domain.clock import utc_now
from rehome.domain.request import param_types
from rehome.domain.request.parameters import USED_BY, ReassignmentParams
from rehome.domain.request.request import Cordon, ReassignmentRequest
from rehome.domain.request.validation import read_params
from rehome.domain.resources import LED
from rehome.domain.text import brokers_text
from rehome.errors import InvalidRequestError

_RATES = ("throttle", "throttle_min", "throttle_max")
_DEFAULT = ReassignmentRequest(Action.REBALANCE)


def parse_request(
    params: Mapping[str, Any], *, now: datetime | None = None, recorded: bool = False
) -> ReassignmentRequest:
    """The raw parameters of a DAG run, or of a request file, as a validated request.

    None and empty strings mean "not given". ``kafka_config_id`` and ``cluster_id`` are left to the
    caller, and so is filling in a preset. Whether topics, partitions and brokers exist is for the
    planner to say.

    :param now: the time a window must end after; the clock's when not given.
    :param recorded: whether it was accepted before: its window may be over by now, and an earlier
        Rehome has taken slower rates.
    :raises InvalidRequestError: lists every problem, unknown keys included: Airflow checks
        neither those nor the format of times.
    """
    read = read_params(ReassignmentParams, params)
    problems = [*read.problems, *_conflicts(read.values, read.failed)]
    end = read.values.window_end
    if not recorded:
        if end is not None and end <= (now or utc_now()):
            problems.append(f"window_end={params['window_end']!s} has passed already.")
        problems += param_types.slow_rates({n: getattr(read.values, n) for n in _RATES})
    if problems:
        raise InvalidRequestError(problems)
    values = {name: getattr(read.values, name) for name in ReassignmentParams.model_fields}
    throttle = values.pop("throttle")
    values["dry_run"] = values["dry_run"] or values["export"]
    for of_the_caller in ("kafka_config_id", "cluster_id"):
        del values[of_the_caller]
    values["action"] = _action_of(read.values)
    return ReassignmentRequest(
        **values, throttle_bytes_per_s=None if throttle == "auto" else throttle
    )


def _action_of(params: ReassignmentParams) -> Action | None:
    """The action; None = none was chosen. Of a plan that is resumed, the ledger has its own:
    what this says is not asked for.
    """
    return params.action or (Action.REBALANCE if params.plan_id else None)


def _conflicts(params: ReassignmentParams, failed: Collection[str]) -> list[str]:
    action = _action_of(params)
    if action is None:
        return [] if "action" in failed else ["An action is needed."]
    problems = []
    needed = ACTION_FACTS[action].needs
    if needed and needed not in failed and not getattr(params, needed):
        problems.append(f"Action {action} needs {needed}.")
    for name, actions in USED_BY.items():
        if action not in actions and getattr(params, name) != getattr(_DEFAULT, name):
            problems.append(f"{name} is given, but action {action} does not use it.")
    others = [name for name in params.tolerances if name != param_types.TOPIC_SPREAD]
    if action is Action.DRAIN and others:
        problems.append(
            f"tolerances of {', '.join(others)} are given, but a drain does not balance them."
        )
    copied = [name for name in params.tolerances if name not in LED]
    if action is Action.BALANCE_LEADERS and copied:
        problems.append(
            f"tolerances of {', '.join(copied)} are given, but balance_leaders copies nothing."
        )
    if params.destinations:
        problems += _conflicts_of_destinations(params, action)
    if params.unthrottled:
        problems += _conflicts_without_throttle(params)
    return [*problems, *_conflicts_of_rates(params)]


def _conflicts_of_rates(params: ReassignmentParams) -> Iterator[str]:
    if params.export and params.throttle_by_broker:
        yield "export is given, and throttle_by_broker is, too: Kafka's own tool takes one rate."
    if params.export and params.max_new_replicas_at_once:
        yield "export is given, and max_new_replicas_at_once is, too: files have no steps."
    least, most = params.throttle_min or 0, params.throttle_max or inf
    if least > most:
        yield f"throttle_min={least} is above throttle_max={most}."


def _conflicts_of_destinations(params: ReassignmentParams, action: Action) -> list[str]:
    """Brokers that are to get replicas, and by another parameter are not."""
    problems = []
    if action is Action.REBALANCE and params.brokers:
        problems.append(
            "brokers and destinations are given: a rebalance evens out the first, or brings "
            "everything to the second. Name one of them."
        )
    shut = {
        "brokers, which are to be emptied": params.brokers if action is Action.DRAIN else (),
        "replacements, as one that is to be emptied": tuple(params.replacements),
        "exclude_brokers, which get no new replicas": params.exclude_brokers,
    }
    for where, brokers in shut.items():
        both = sorted(set(brokers) & set(params.destinations))
        if both:
            problems.append(f"{brokers_text(both).capitalize()}: in destinations, and in {where}.")
    apart = sorted(set(params.replacements.values()) - set(params.destinations))
    if apart:
        problems.append(
            f"{brokers_text(apart).capitalize()}: in replacements, and not in destinations, which "
            "alone get new replicas."
        )
    return problems


def _conflicts_without_throttle(params: ReassignmentParams) -> list[str]:
    problems = []
    if params.throttle != "auto":
        problems.append("unthrottled is given, and a throttle is, too.")
    if params.throttle_by_broker:
        problems.append("unthrottled is given, and throttle_by_broker is, too.")
    if params.cordon is not Cordon.NO:
        problems.append(
            f"cordon={params.cordon} is given, but a run without a throttle changes no "
            "configuration."
        )
    return problems
