"""One look at a running plan: what the ledger says, what the cluster shows, how far it is."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from include.cluster.model import TopicPartition
from include.cluster.port import ClusterPort
from include.execution.backlog import Backlog
from include.execution.model import LedgerView, Observation, PlanState, Policy
from include.execution.observe import observe
from include.execution.progress import Progress, admitted, moves_to_watch, record_progress
from include.ledger.database import Clock, utc_now
from include.ledger.store import Ledger
from include.planning.plan import Plan


@dataclass(frozen=True)
class Poll:
    """What `decide` judges by, and the progress that was written to the ledger."""

    view: LedgerView
    seen: Observation
    progress: Progress


def poll(
    plan: Plan,
    ledger: Ledger,
    cluster: ClusterPort,
    policy: Policy,
    backlog: Backlog,
    clock: Clock = utc_now,
    beside: Collection[TopicPartition] = (),
) -> Poll | None:
    """Look once, and record how far the plan is; None where it does not run.

    The trigger and the worker's step look alike. Nothing is changed on the cluster.

    :param backlog: follows the plan from look to look.
    :param beside: partitions outside the plan to watch, too.
    :raises ClusterError: the cluster could not be observed.
    """
    view = ledger.view(plan.plan_id)
    if view.state is not PlanState.RUNNING:
        return None
    in_flight = {move.partition for move in admitted(plan, view)}
    watched = moves_to_watch(plan, view)
    seen = observe(cluster, watched, clock(), in_flight=in_flight, beside=beside)
    backlog.follow(plan.moves, view, seen)
    progress = record_progress(plan, view, ledger, seen, policy, backlog)
    view = ledger.view(plan.plan_id)
    backlog.follow(plan.moves, view, seen)
    return Poll(view, seen, progress)
