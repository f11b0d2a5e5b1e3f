"""What Rehome's operators share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rehome import installation
from rehome.fleet import policies
from rehome.run.causes.operator import RecordedOperator

if TYPE_CHECKING:
    from rehome.cluster.gateway import ClusterGateway
    from rehome.execution.access.connection_policy import ConnectionPolicy
    from rehome.ledger.base.records import PlanRecord


OF_THE_RUN = "{{ params.get('kafka_config_id', 'kafka_default') }}"
"""The connection that the run's parameters name."""


class ClusterOperator(RecordedOperator):
    """A step on one cluster. Subclasses write :meth:`step`.

    :param kafka_config_id: the Airflow connection of the cluster; by default the parameter of the
        run, or ``kafka_default`` where its DAG has none.
    """

    template_fields: Sequence[str] = ("kafka_config_id",)
    ui_color = "#e8eef5"

    def __init__(self, *, kafka_config_id: str = OF_THE_RUN, **kwargs: Any):
        super().__init__(**kwargs)
        self.kafka_config_id = kafka_config_id

    @property
    def policy(self) -> ConnectionPolicy:
        """What may be done through the operator's connection, on the cluster that it leads to."""
        return self.policy_for(None)

    def policy_for(self, plan: PlanRecord | None) -> ConnectionPolicy:
        """The same for a plan, on its cluster: see ``policy_of_cluster``."""
        connection = self.kafka_config_id
        with installation.open_ledger() as ledger:
            known = ledger.connections().get(connection) if plan is None else plan.cluster_id
            return policies.policy_of_cluster(ledger, known, connection, plan)

    def policy_on(self, cluster_id: str) -> ConnectionPolicy:
        """The same on a cluster, wherever the connection was last seen to lead."""
        with installation.open_ledger() as ledger:
            return policies.policy_of_cluster(ledger, cluster_id, self.kafka_config_id)

    def gateway(self) -> ClusterGateway:
        """A gateway on the cluster; use it as a context manager."""
        return policies.cluster_hook(self.kafka_config_id).gateway(installation.settings())
