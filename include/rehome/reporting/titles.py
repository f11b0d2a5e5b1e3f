"""What a plan does, in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rehome.domain.request.request import Action
from rehome.domain.text import brokers_text, listed
from rehome.ledger.base.records import PlanRecord

_VERBS = {
    Action.REBALANCE: "Rebalance",
    Action.DRAIN: "Drain",
    Action.REPLACE: "Replace",
    Action.EXPAND: "Fill",
    Action.SET_REPLICATION_FACTOR: "Set the replication factor",
    Action.REPAIR_RACKS: "Repair racks",
    Action.FIX_OFFLINE_REPLICAS: "Replace offline replicas",
    Action.BALANCE_LEADERS: "Balance preferred leaders",
    Action.DEMOTE: "Demote",
    Action.ELECT_PREFERRED: "Elect preferred leaders",
    Action.REASSIGN: "Reassign as given",
    Action.MOVE_LOG_DIRS: "Balance log dirs",
    Action.EVACUATE_LOG_DIRS: "Evacuate log dirs",
    Action.ROLLBACK: "Roll back",
}
_OF_BROKERS = {Action.DRAIN, Action.EXPAND, Action.DEMOTE}


def title_of(record: PlanRecord) -> str:
    """``Drain broker 4``, ``Set the replication factor to 3``, ``Rebalance brokers 1 and 2``."""
    return title(record.action, record.request)


def title(action_name: str, request: Mapping[str, Any]) -> str:
    """The same of an action with its parameters, as JSON has them."""
    try:
        action = Action(action_name)
    except ValueError:  # a newer Rehome recorded it
        return action_name.replace("_", " ")
    verb = _VERBS[action]
    match action:
        case Action.SET_REPLICATION_FACTOR:
            return f"{verb} to {request.get('replication_factor')}"
        case Action.REPLACE:
            pairs = (request.get("replacements") or {}).items()
            return f"{verb} {listed([f'broker {old} by {new}' for old, new in pairs])}"
        case Action.EVACUATE_LOG_DIRS if request.get("log_dirs"):
            return f"{verb} {listed(request['log_dirs'])}"
        case Action.ROLLBACK:
            return f"{verb} {request.get('plan_id')}"
        case _:
            brokers = _brokers(request)
            joint = " " if action in _OF_BROKERS else " of "
            return f"{verb}{joint}{brokers_text(brokers)}" if brokers else verb


def _brokers(request: Mapping[str, Any]) -> list[int]:
    found = request.get("brokers") or []
    return [broker for broker in found if isinstance(broker, int)]
