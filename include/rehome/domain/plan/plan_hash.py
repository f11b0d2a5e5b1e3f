"""A plan's hash: what an approval is bound to, and what shows that stored moves were changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace

from rehome.domain.plan.move import Move
from rehome.domain.plan.move_columns import entries
from rehome.domain.plan.move_table import moves_table
from rehome.domain.plan.plan import Plan
from rehome.errors import PlanConflictError

FORMAT = 2
"""Of what is hashed; grows whenever more of a plan is covered."""

_MOVE = (
    *("[", "topic", ",", "topic_id", ",", "partition"),
    *(",[", "current", "],[", "current_log_dirs"),
    *("],[", "target", "],[", "target_log_dirs", "]]"),
)


class PlanChangedError(PlanConflictError):
    """A stored plan is not the one that was recorded: its hash is another."""


def plan_hash(
    cluster_id: str,
    action: str,
    moves: Iterable[Move],
    *,
    allow_replication_factor_change: bool = False,
) -> str:
    """SHA-256 (hex) over all of a plan that decides what will happen, in partition order.

    Covers the cluster, the action, whether the controller may change replication factors, and of
    each move its topic with its id, where its replicas are and where they go, in their order and
    with their log dirs. Not how it is explained or how large it is: same hash, same effect.
    """
    head = (
        f'{{"format":{FORMAT},"cluster_id":{json.dumps(cluster_id)},"action":{json.dumps(action)},'
        f'"allow_replication_factor_change":{json.dumps(allow_replication_factor_change)},'
        '"moves":['
    )
    digest = hashlib.sha256(head.encode())
    for number, text in enumerate(entries(moves_table(moves), _MOVE)):
        digest.update(f"{',' if number else ''}{text}".encode())
    digest.update(b"]}")
    return digest.hexdigest()


def hash_of(plan: Plan) -> str:
    """The hash of a plan's content as it is now, whatever its summary says."""
    return plan_hash(
        plan.cluster_id,
        plan.action,
        plan.moves,
        allow_replication_factor_change=plan.allow_replication_factor_change,
    )


def seal(plan: Plan) -> Plan:
    """The plan with the hash of what it holds."""
    return replace(plan, summary=replace(plan.summary, plan_hash=hash_of(plan)))


def refuse_changed(plan: Plan, plan_id: str, recorded_hash: str) -> None:
    """Let only the plan pass that was recorded.

    :param plan: as it was loaded, to act on.
    :param plan_id, recorded_hash: of the plan to act on, as the ledger has them.
    :raises PlanChangedError: it is another one.
    """
    loaded_hash = hash_of(plan)
    if plan.plan_id == plan_id and loaded_hash == recorded_hash == plan.plan_hash:
        return
    if plan.plan_id != plan_id:
        what = f"The files of plan {plan_id} are those of plan {plan.plan_id}"
    elif loaded_hash != recorded_hash:
        what = (
            f"The files of plan {plan_id} are not those that were recorded: their moves have the "
            f"hash {loaded_hash}, recorded is {recorded_hash}. They were changed, or another "
            "version of Rehome made them"
        )
    else:
        what = (
            f"The summary of plan {plan_id} was changed: its hash is {plan.plan_hash}, "
            f"recorded is {recorded_hash}"
        )
    raise PlanChangedError(
        what,
        state_left="This step has changed nothing; what it has in flight goes on as it has begun.",
        next_step="Put the plan's files back as they were written, or cancel the plan with "
        "control_reassignment and trigger a new run.",
    )
