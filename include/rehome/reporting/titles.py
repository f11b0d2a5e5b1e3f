"""What a plan does, in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rehome.domain.actions import ACTION_FACTS, Action
from rehome.domain.text import brokers_text, join_names
from rehome.ledger.base.records import PlanRecord


def title_of(record: PlanRecord) -> str:
    """``Drain broker 4``, ``Set the replication factor to 3``, ``Rebalance brokers 1 and 2``."""
    return title(record.action, record.request)


def title(action_name: str, request: Mapping[str, Any]) -> str:
    """The same of an action with its parameters, as JSON has them."""
    try:
        action = Action(action_name)
    except ValueError:  # a newer Rehome recorded it
        return action_name.replace("_", " ")
    facts = ACTION_FACTS[action]
    verb = facts.title
    match action:
        case Action.SET_REPLICATION_FACTOR:
            return f"{verb} to {request.get('replication_factor')}"
        case Action.REPLACE:
            pairs = (request.get("replacements") or {}).items()
            return f"{verb} {join_names([f'broker {old} by {new}' for old, new in pairs])}"
        case Action.EVACUATE_LOG_DIRS if request.get("log_dirs"):
            return f"{verb} {join_names(request['log_dirs'])}"
        case Action.ROLLBACK:
            return f"{verb} {request.get('plan_id')}"
        case _:
            brokers = _brokers(request)
            joint = " " if facts.has_object else " of "
            return f"{verb}{joint}{brokers_text(brokers)}" if brokers else verb


def _brokers(request: Mapping[str, Any]) -> list[int]:
    brokers = request.get("brokers") or []
    return [broker for broker in brokers if isinstance(broker, int)]
