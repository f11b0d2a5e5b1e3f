"""What Rehome can be asked to do with a cluster: each action, declared once.

Forms, checks, the planner, the gate, titles and notes derive from :data:`ACTION_FACTS` what they
need. Which parameters an action takes, the parameters say
(:mod:`rehome.domain.request.parameters`).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass


class Action(enum.StrEnum):
    """What `reassign_partitions` can be asked to do."""

    REBALANCE = "rebalance"
    DRAIN = "drain"
    REPLACE = "replace"
    EXPAND = "expand"
    SET_REPLICATION_FACTOR = "set_replication_factor"
    REPAIR_RACKS = "repair_racks"
    FIX_OFFLINE_REPLICAS = "fix_offline_replicas"
    BALANCE_LEADERS = "balance_leaders"
    DEMOTE = "demote"
    ELECT_PREFERRED = "elect_preferred"
    REASSIGN = "reassign"
    MOVE_LOG_DIRS = "move_log_dirs"
    EVACUATE_LOG_DIRS = "evacuate_log_dirs"
    ROLLBACK = "rollback"


class Trait(enum.Enum):
    """What several actions have in common."""

    EMPTIES = "after it brokers hold nothing: proved at the end, and followed up"
    FOLLOWED_UP = "something is to be empty at its end: what appears there meanwhile is moved, too"
    REPAIRS_SETS = "brings replicas into the broker sets of their topics"
    SPREADS_TOPICS = "keeps topics spread over brokers unless the request says otherwise"
    TAKES_INTERNAL = "is about internal topics, too, where no topics are named"
    IS_ABOUT_LEADERS = "changes leaders: it is done only when its elections are"
    PLACES_REPLICAS = "chooses where replicas go: a budget may limit it, and brokers be left out"
    KEEPS_ORDER = "determines the order of replicas itself"


@dataclass(frozen=True, slots=True)
class ActionFacts:
    """All that is to be known of an action outside of its own module.

    :param about: what it is for, a sentence.
    :param title: of its plans, in a few words; the brokers follow.
    :param needs: the parameter that it cannot do without; "" = none.
    :param planned_by: what it plans by, where no tolerance says it.
    :param has_object: its brokers follow the title without "of": ``Drain broker 4``.
    """

    about: str
    title: str
    traits: tuple[Trait, ...] = ()
    needs: str = ""
    planned_by: str = "what was asked"
    has_object: bool = False


_BY_BYTES = "bytes on disk and number of replicas"
_BY_LEADERS = "number of leaders, and what they send where that is known"

ACTION_FACTS: Mapping[Action, ActionFacts] = {
    Action.DRAIN: ActionFacts(
        "Empty brokers: all that is on them goes to the others.",
        "Drain",
        (
            Trait.EMPTIES,
            Trait.FOLLOWED_UP,
            Trait.SPREADS_TOPICS,
            Trait.TAKES_INTERNAL,
            Trait.PLACES_REPLICAS,
        ),
        needs="brokers",
        planned_by=_BY_BYTES,
        has_object=True,
    ),
    Action.REPLACE: ActionFacts(
        "Put brokers in the place of others, one for one.",
        "Replace",
        (Trait.EMPTIES, Trait.FOLLOWED_UP, Trait.TAKES_INTERNAL, Trait.KEEPS_ORDER),
        needs="replacements",
    ),
    Action.REBALANCE: ActionFacts(
        "Bring brokers to their share of bytes, and of traffic where it is known.",
        "Rebalance",
        (Trait.REPAIRS_SETS, Trait.SPREADS_TOPICS, Trait.PLACES_REPLICAS),
    ),
    Action.EXPAND: ActionFacts(
        "Fill the brokers that you choose from the fullest others; nothing else moves.",
        "Fill",
        (Trait.SPREADS_TOPICS, Trait.PLACES_REPLICAS),
        needs="brokers",
        has_object=True,
    ),
    Action.REPAIR_RACKS: ActionFacts(
        "Spread replicas over racks where they are not.",
        "Repair racks",
        (Trait.REPAIRS_SETS, Trait.PLACES_REPLICAS),
        planned_by=_BY_BYTES,
    ),
    Action.SET_REPLICATION_FACTOR: ActionFacts(
        "Give topics more replicas, or fewer.",
        "Set the replication factor",
        (Trait.PLACES_REPLICAS,),
        needs="replication_factor",
        planned_by=_BY_BYTES,
    ),
    Action.FIX_OFFLINE_REPLICAS: ActionFacts(
        "Put replicas that are offline on brokers that are alive.",
        "Replace offline replicas",
        (Trait.TAKES_INTERNAL, Trait.PLACES_REPLICAS),
        planned_by=_BY_BYTES,
    ),
    Action.BALANCE_LEADERS: ActionFacts(
        "Let brokers lead their share; nothing is copied.",
        "Balance preferred leaders",
        planned_by=_BY_LEADERS,
    ),
    Action.DEMOTE: ActionFacts(
        "Take leadership away from brokers; nothing is copied.",
        "Demote",
        (Trait.TAKES_INTERNAL, Trait.IS_ABOUT_LEADERS, Trait.KEEPS_ORDER),
        needs="brokers",
        planned_by=_BY_LEADERS,
        has_object=True,
    ),
    Action.ELECT_PREFERRED: ActionFacts(
        "Let preferred leaders lead again; no replica and no order changes.",
        "Elect preferred leaders",
        (Trait.TAKES_INTERNAL, Trait.IS_ABOUT_LEADERS, Trait.KEEPS_ORDER),
        planned_by="who leads now",
    ),
    Action.MOVE_LOG_DIRS: ActionFacts(
        "Even out the log dirs of each broker.",
        "Balance log dirs",
        (Trait.PLACES_REPLICAS, Trait.KEEPS_ORDER),
        planned_by="bytes in each log dir",
    ),
    Action.EVACUATE_LOG_DIRS: ActionFacts(
        "Empty log dirs: those you name, or those that are cordoned.",
        "Evacuate log dirs",
        (Trait.FOLLOWED_UP, Trait.TAKES_INTERNAL, Trait.KEEPS_ORDER),
        planned_by="room in log dirs",
    ),
    Action.REASSIGN: ActionFacts(
        "Carry out a reassignment that you have written in Kafka's JSON.",
        "Reassign as given",
        (Trait.KEEPS_ORDER,),
        needs="reassignment",
    ),
    Action.ROLLBACK: ActionFacts("Take a plan back that has ended.", "Roll back", needs="plan_id"),
}
"""Each action, declared once: forms, checks, the planner, titles and notes derive the rest."""


def actions_with(trait: Trait) -> tuple[Action, ...]:
    """The actions that have something in common."""
    return tuple(action for action in Action if trait in ACTION_FACTS[action].traits)


def words(action: Action) -> str:
    """An action as people read it: ``Repair racks``."""
    return action.value.replace("_", " ").capitalize()
