"""The parameters of DAGs, as Airflow's form shows and checks them."""

from __future__ import annotations

from dataclasses import fields

from airflow.sdk import Param

from include.domain.request.param_types import TOLERANCES
from include.domain.request.request import (
    SPREAD_TOLERANCE,
    Action,
    Cordon,
    OnWindowEnd,
    ReassignmentRequest,
)
from include.domain.run.states import Control

_WHAT, _LIMITS, _HOW = "What to do", "Balance and limits", "How to do it"


def _count(description: str, section: str) -> Param:
    """A whole number from 1 on that may be left out."""
    return Param(
        None, type=["null", "integer"], minimum=1, description=description, section=section
    )


def connection_param() -> Param:
    """Which cluster."""
    return Param(
        "kafka_default",
        type="string",
        minLength=1,
        title="Cluster",
        description="Airflow connection of type kafka.",
    )


def reassignment_params() -> dict[str, Param]:
    """Airflow checks types; parse_request checks the rest at the start of the run."""
    return {
        "kafka_config_id": connection_param(),
        **_what_to_do(),
        **_balance_and_limits(),
        **_how_to_do_it(),
    }


def _brokers_param(description: str, section: str) -> Param:
    """A list by API; in the form a line of text, as for every anyOf with text as its default."""
    return Param(
        "",
        anyOf=[
            {"type": "array", "items": {"type": "integer", "minimum": 0}},
            {"type": "string", "pattern": r"^[\d\s,]*$"},
        ],
        description=description,
        section=section,
    )


def _topics_param(description: str, section: str) -> Param:
    return Param(
        [],
        type="array",
        items={"type": "string", "minLength": 1},
        description=description,
        section=section,
    )


def _what_to_do() -> dict[str, Param]:
    return {
        "action": Param(
            Action.REBALANCE.value,
            type="string",
            enum=[action.value for action in Action],
            description="What to do.",
            section=_WHAT,
        ),
        "brokers": _brokers_param(
            "Broker ids, such as 3, 4. drain: to empty; expand: to fill; rebalance: all if none; "
            "fix_offline_replicas: whose replicas are offline, all if none.",
            _WHAT,
        ),
        "topics": _topics_param(
            "Topic names or patterns (* ? []); none means all. Internal topics only by name, "
            "except that a drain empties the broker of everything, and fix_offline_replicas "
            "takes all of them along.",
            _WHAT,
        ),
        "replication_factor": _count("For set_replication_factor.", _WHAT),
        "reassignment": Param(
            None,
            type=["null", "object"],
            description='For reassign: Kafka\'s JSON, {"version":1,"partitions":[…]}, '
            "log_dirs too.",
            section=_WHAT,
        ),
        "plan_id": Param(
            None,
            type=["null", "string"],
            description="For rollback: the plan to take back. Else: a paused plan to go on with, "
            "or one that a dry run has made, to be run as it is.",
            section=_WHAT,
        ),
        "cluster_id": Param(
            None,
            type=["null", "string"],
            description="Kafka's id of the cluster that is meant: a connection that leads to "
            "another one is refused. None: whatever it leads to.",
            section=_WHAT,
        ),
    }


def _balance_and_limits() -> dict[str, Param]:
    defaults = {item.name: item.default for item in fields(ReassignmentRequest)}
    return {
        "tolerance": Param(
            defaults["tolerance"],
            type="number",
            minimum=0,
            exclusiveMaximum=1,
            description="rebalance, expand: how far a broker may be off its share of bytes; "
            "move_log_dirs: a log dir; set_replication_factor: how much fuller than others a "
            "branch may get and still have its turn. 0.02 means 2 %.",
            section=_LIMITS,
        ),
        "tolerances": Param(
            None,
            type=["null", "object"],
            additionalProperties={"type": ["null", "number"], "minimum": 0, "exclusiveMaximum": 1},
            propertyNames={"enum": list(TOLERANCES)},
            description='The same for other resources, such as {"replicas": 0.05}; null means '
            f"any. Known: {', '.join(TOLERANCES)}. Left out: traffic 0.05 where it is known, "
            f"counts any, and topic_spread {SPREAD_TOLERANCE}: each topic's replicas and leaders "
            "stay spread over brokers, also in a drain.",
            section=_LIMITS,
        ),
        "one_sided": Param(
            defaults["one_sided"],
            type="boolean",
            description="rebalance: brokers may hold as little as they like; only too much counts.",
            section=_LIMITS,
        ),
        "move_overhead_bytes": Param(
            defaults["move_overhead_bytes"],
            type="integer",
            minimum=0,
            description="What a move costs beside its bytes: more means fewer, larger moves.",
            section=_LIMITS,
        ),
        "exclude_topics": _topics_param("Names or patterns that stay where they are.", _LIMITS),
        "exclude_brokers": _brokers_param("Broker ids that get nothing new.", _LIMITS),
        "weights": Param(
            None,
            type=["null", "object"],
            additionalProperties={"type": "number", "exclusiveMinimum": 0},
            propertyNames={"pattern": r"^\d+$"},
            description='Relative size of brokers on top of their disks, such as {"3": 2}; '
            "1 for the others.",
            section=_LIMITS,
        ),
        "budget_bytes": _count(
            "The most bytes to copy: the moves that help most, and what is left is named.",
            _LIMITS,
        ),
        "budget_moves": _count("The most replicas to copy.", _LIMITS),
        "ignore_racks": Param(
            defaults["ignore_racks"],
            type="boolean",
            description="Plan as if no broker had a rack.",
            section=_LIMITS,
        ),
        "seed": Param(
            defaults["seed"],
            type="integer",
            minimum=0,
            description="Breaks ties: the same cluster, request and seed give the same plan.",
            section=_LIMITS,
        ),
    }


def _how_to_do_it() -> dict[str, Param]:
    return {
        "throttle": Param(
            "auto",
            anyOf=[
                {"type": "integer", "minimum": 1},
                {"type": "string", "pattern": r"^\s*(auto|[1-9]\d*)\s*$"},
            ],
            description='Bytes per second per broker and direction, or "auto".',
            section=_HOW,
        ),
        "throttle_min": _count(
            "The least throttle: auto chooses no less, and partitions that suffer "
            "beside the copies do not bring it lower. None: a tenth of the throttle.",
            _HOW,
        ),
        "throttle_max": _count("The most that auto chooses.", _HOW),
        "window_end": Param(
            None,
            type=["null", "string"],
            format="date-time",
            description="Time at which nothing may be in flight; none means no window.",
            section=_HOW,
        ),
        "on_window_end": Param(
            OnWindowEnd.DRAIN.value,
            type="string",
            enum=[choice.value for choice in OnWindowEnd],
            description="drain: stop admitting in time; cancel: cancel what is in flight.",
            section=_HOW,
        ),
        "cordon": Param(
            Cordon.NO.value,
            type="string",
            enum=[choice.value for choice in Cordon],
            description="drain, from Kafka 4.3 on: cordon the brokers' log dirs, so that Kafka "
            "places nothing new there, and keep that or undo it at the end.",
            section=_HOW,
        ),
        "max_moves_per_broker": Param(
            4,
            type="integer",
            minimum=1,
            description="Moves at once per broker and direction.",
            section=_HOW,
        ),
        "dry_run": Param(
            False,
            type="boolean",
            description="Stop after the dry run: the report is the result, nothing is changed.",
            section=_HOW,
        ),
        "approval": Param(
            False,
            type="boolean",
            description="Wait for a person to approve the plan.",
            section=_HOW,
        ),
        "additional": Param(
            False,
            type="boolean",
            description="Run although another client's reassignment is in flight (KIP-455).",
            section=_HOW,
        ),
    }


def window_params() -> dict[str, Param]:
    """Those of `reassign_partitions` that mean something in every window."""
    once = ("window_end", "plan_id", "reassignment")
    return {name: param for name, param in reassignment_params().items() if name not in once}


def partition_params() -> dict[str, Param]:
    """Which topics get how many partitions, and how."""
    shared = reassignment_params()
    return {
        "kafka_config_id": connection_param(),
        "partitions": Param(
            {},
            type="object",
            additionalProperties={"type": "integer", "minimum": 1},
            description='Number of partitions that each topic is to have: {"orders": 12}.',
        ),
        "exclude_brokers": Param(
            "",
            anyOf=[
                {"type": "array", "items": {"type": "integer", "minimum": 0}},
                {"type": "string", "pattern": r"^[\d\s,]*$"},
            ],
            description="Broker ids that get none of them, such as 3, 4.",
        ),
        "ignore_racks": Param(
            False, type="boolean", description="Place as if no broker had a rack."
        ),
        "dry_run": shared["dry_run"],
        "approval": shared["approval"],
    }


def control_params() -> dict[str, Param]:
    """Which plan, and what is asked of it."""
    return {
        "kafka_config_id": connection_param(),
        "plan_id": Param("", type="string", minLength=1, description="The plan."),
        "action": Param(
            Control.PAUSE.value,
            type="string",
            enum=[control.value for control in Control],
            description="What to do with it.",
        ),
        "throttle": Param(
            None,
            type=["null", "integer"],
            minimum=1,
            description="For change_throttle, and for what runs, resumes or rolls back a plan: "
            "bytes per second per broker and direction.",
        ),
    }
