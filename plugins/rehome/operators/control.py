"""Passes an operator's request on to a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.standard.utils.skipmixin import SkipMixin

from rehome import installation
from rehome.fleet import bound
from rehome.operators.base import ClusterOperator
from rehome.run import drivers

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context


class ControlReassignmentOperator(ClusterOperator, SkipMixin):
    """Run, pause, resume, change_throttle, cancel or roll_back, by the parameters of the run.

    Returns the parameters of the run that has to be started; where none has, skips what follows.
    """

    inherits_from_skipmixin = True

    def step(self, context: Context) -> dict[str, Any] | None:
        """Ask, and say what happens now."""
        from include.domain.run.control_parameters import parse_control
        from include.domain.run.states import Control
        from include.execution.access.connection_policy import ANYTHING
        from include.execution.access.own_cluster import OwnCluster

        asked = parse_control(context["params"])
        # To stop a plan is never refused: not even by a policy that cannot be read.
        stops = asked.control in (Control.PAUSE, Control.CANCEL)
        policy = ANYTHING if stops else self.policy
        with installation.open_ledger() as ledger, self.gateway() as cluster:
            if not stops:
                own = OwnCluster.of_plan(cluster, ledger.plan(asked.plan_id))
                found_id = own.describe_cluster().cluster_id
                bound.require(ledger, self.kafka_config_id, found_id, context)
            controller = drivers.controller(context, ledger, cluster, policy)
            done = controller.control(asked.control, asked.plan_id, asked.rate_bytes_per_s)
        self.log.info("Plan %s: %s", asked.plan_id, done.message)
        if done.run is None:
            self.skip(ti=context["ti"], tasks=context["task"].get_flat_relatives(upstream=False))
            return None
        return {**done.run, "kafka_config_id": self.kafka_config_id}
