"""Stops without a worker: as the trigger and the sweep make them."""

from __future__ import annotations

from include.cluster.interface.errors import ClusterError, MissingRightError
from include.errors import RehomeError
from include.execution.access.lease import orphaned
from include.execution.access.own_cluster import OwnCluster
from include.execution.without_worker import keep_window, stop_now
from include.ledger.base.database import LedgerUnavailableError
from include.ledger.base.records import PlanRecord
from include.ledger.store import Ledger
from world.rehome.installation import Installation


def stop(site: Installation, plan_id: str, driver: str, ledger: Ledger, cluster: OwnCluster) -> str:
    """As ``PlanWatch``: why the worker is to be woken, "" = it is not."""
    plan, policy, lease_s = site.plans[plan_id], site.policy(plan_id), site.lease_s(plan_id)
    try:
        done = stop_now(plan, ledger, cluster, policy, driver, lease_s)
    except MissingRightError:
        return "there is something to do"
    except (ClusterError, LedgerUnavailableError):
        return ""
    except RehomeError:
        return "there is something to do"
    return f"the plan is {done.finished}" if done.finished is not None else ""


def keep(
    site: Installation, record: PlanRecord | None, ledger: Ledger, owner: str, within_s: float
) -> None:
    """As ``SweepThrottlesOperator``: the window's end of a plan that no run drives."""
    if record is None or not orphaned(record, ledger):
        return
    plan_id = record.plan_id
    plan, policy, lease_s = site.plans[plan_id], site.policy(plan_id), site.lease_s(plan_id)
    keep_window(plan, ledger, site.cluster_of(record), policy, owner, lease_s, within_s)
