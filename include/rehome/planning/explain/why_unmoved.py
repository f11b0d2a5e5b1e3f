"""Why a plan could not move a partition that it leaves unchanged."""

from __future__ import annotations

import numpy as np

from rehome.domain.actions import Action, Trait
from rehome.domain.array_types import NONE
from rehome.domain.plan.infeasible import Obstacle
from rehome.domain.plan.infeasible_text import BUDGET_SPENT, obstacle_text
from rehome.domain.plan.plan import Plan
from rehome.domain.request.parameters import USED_BY
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.model.scope import has_source, partitions_in_scope

_BY_LIMITS = (
    *(Obstacle.OUTSIDE_SET, Obstacle.OUTSIDE_DESTINATIONS, Obstacle.SET_TOO_SMALL),
    Obstacle.CAPS_KEEP_UNEVEN,
    *(Obstacle.DISKS_KEEP_UNEVEN, Obstacle.CLOSED_KEEP_UNEVEN),
)


class Stays:
    """Reasons for the partitions that one plan leaves unchanged.

    :param tree: of the racks, as the plan spreads replicas over them.
    """

    def __init__(
        self, arrays: ClusterArrays, request: ReassignmentRequest, plan: Plan, tree: RackTree
    ) -> None:
        self._arrays, self._request, self._tree = arrays, request, tree
        self._infeasible = plan.summary.infeasible

    def why(self, p: int) -> str:
        """Why the plan could not have moved it; "" = it could."""
        arrays = self._arrays
        if arrays.in_flight[p]:
            return "it was being reassigned already"
        if self._is_unpaid(p):
            return BUDGET_SPENT
        if not has_source(arrays, np.array([p]))[0]:
            return "it had no live leader to copy from"
        harmed = arrays.offline is not None and bool(arrays.offline[p].any())
        if self._request.action is Action.FIX_OFFLINE_REPLICAS:
            if not harmed:
                return "none of its replicas was offline"
        elif harmed and not self._request.has(Trait.IS_ABOUT_LEADERS):
            return "one of its replicas was on a broker that was not live, or in a failed log dir"
        scoped = self._request.action in USED_BY["topics"]
        if scoped and not partitions_in_scope(arrays, self._request)[p]:
            return "its topic is not in the scope of the request, or is excluded"
        return self._limited_otherwise(p) or self._led_otherwise(p) or self._evacuated_otherwise(p)

    def _limited_otherwise(self, p: int) -> str:
        """Why caps or broker sets keep the partition; "" = they do not."""
        partition_name = str(self._arrays.partition(p))
        for item in self._infeasible:
            if item.obstacle in _BY_LIMITS and item.subject.name == partition_name:
                return obstacle_text(item)
        return ""

    def _led_otherwise(self, p: int) -> str:
        """Why an action on leaders leaves the partition; "" = another action."""
        partition_name = str(self._arrays.partition(p))
        for item in self._infeasible:
            if self._request.has(Trait.IS_ABOUT_LEADERS) and item.subject.name == partition_name:
                return obstacle_text(item)
        if self._request.action is Action.DEMOTE:
            return "no broker that is demoted leads it, or is preferred to"
        if self._request.action is Action.ELECT_PREFERRED:
            return "its preferred leader led it already"
        return ""

    def _evacuated_otherwise(self, p: int) -> str:
        """Why an evacuation leaves the partition; "" = another action."""
        if self._request.action is not Action.EVACUATE_LOG_DIRS:
            return ""
        partition_name = str(self._arrays.partition(p))
        for item in self._infeasible:
            if item.subject.name == partition_name:
                return obstacle_text(item)
        return "none of its replicas lay in a log dir that is to be emptied"

    def _is_unpaid(self, p: int) -> bool:
        """Whether the request asks for a change that the budget does not suffice for."""
        if not any(item.obstacle is Obstacle.BUDGET for item in self._infeasible):
            return False
        row, request = self._arrays.rows[p], self._request
        brokers = row[row != NONE]
        if request.action is Action.DRAIN:
            return bool(np.isin(self._arrays.brokers.ids[brokers], request.brokers).any())
        if request.action is Action.SET_REPLICATION_FACTOR:
            return len(brokers) != request.replication_factor
        if request.action is Action.FIX_OFFLINE_REPLICAS:
            return self._arrays.offline is not None and bool(self._arrays.offline[p].any())
        if request.action is Action.REPAIR_RACKS:
            return bool(self._tree.of(p).violations(row[None, :]).any())
        return False
