"""Which parameters mean something to some actions only."""

from __future__ import annotations

from rehome.domain.request.request import EMPTIES, PLACES_REPLICAS, SPREADS_TOPICS, Action

USED_BY = {
    "brokers": (
        Action.REBALANCE,
        Action.EXPAND,
        Action.DRAIN,
        Action.DEMOTE,
        Action.FIX_OFFLINE_REPLICAS,
        Action.MOVE_LOG_DIRS,
        Action.EVACUATE_LOG_DIRS,
    ),
    "log_dirs": (Action.EVACUATE_LOG_DIRS,),
    "topics": (
        Action.REBALANCE,
        Action.EXPAND,
        Action.DRAIN,
        Action.REPLACE,
        Action.SET_REPLICATION_FACTOR,
        Action.REPAIR_RACKS,
        Action.FIX_OFFLINE_REPLICAS,
        Action.BALANCE_LEADERS,
        Action.DEMOTE,
        Action.ELECT_PREFERRED,
        Action.MOVE_LOG_DIRS,
    ),
    "replication_factor": (Action.SET_REPLICATION_FACTOR,),
    "replacements": (Action.REPLACE,),
    "tolerances": (Action.REBALANCE, Action.EXPAND, Action.DRAIN, Action.BALANCE_LEADERS),
    "min_leaders": (Action.REBALANCE, Action.EXPAND, Action.BALANCE_LEADERS),
    "topic_spread_of": SPREADS_TOPICS,
    "one_sided": (Action.REBALANCE,),
    "effort": (Action.REBALANCE, Action.EXPAND),
    "weights": (
        Action.REBALANCE,
        Action.EXPAND,
        Action.DRAIN,
        Action.DEMOTE,
        Action.SET_REPLICATION_FACTOR,
        Action.REPAIR_RACKS,
        Action.FIX_OFFLINE_REPLICAS,
    ),
    "budget_bytes": PLACES_REPLICAS,
    "budget_moves": PLACES_REPLICAS,
    "exclude_topics": (
        Action.REBALANCE,
        Action.EXPAND,
        Action.SET_REPLICATION_FACTOR,
        Action.REPAIR_RACKS,
        Action.FIX_OFFLINE_REPLICAS,
        Action.BALANCE_LEADERS,
        Action.ELECT_PREFERRED,
        Action.MOVE_LOG_DIRS,
    ),
    "exclude_brokers": PLACES_REPLICAS,
    "destinations": (
        Action.REBALANCE,
        Action.DRAIN,
        Action.REPLACE,
        Action.SET_REPLICATION_FACTOR,
        Action.REPAIR_RACKS,
        Action.FIX_OFFLINE_REPLICAS,
        Action.EVACUATE_LOG_DIRS,
        Action.REASSIGN,
    ),
    "reassignment": (Action.REASSIGN,),
    "allow_replication_factor_change": (Action.REASSIGN,),
    "cordon": EMPTIES,
}
"""Parameters that mean something to some actions only; elsewhere they are refused, not ignored."""
