"""The hook on a Kafka cluster: one Airflow connection of type `kafka` feeds both clients."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.kafka.hooks.base import KafkaBaseHook
from airflow.providers.common.compat.sdk import AirflowNotFoundException

from rehome.errors import InvalidRequestError, RehomeError

if TYPE_CHECKING:
    from rehome.cluster.connection.settings import Connection
    from rehome.cluster.gateway import ClusterGateway
    from rehome.execution.access.connection_policy import ConnectionPolicy
    from rehome.settings import Settings


class KafkaClusterHook(KafkaBaseHook):
    """Opens a :class:`~rehome.cluster.gateway.ClusterGateway` on a `kafka` connection.

    :param kafka_config_id: the connection; its extra holds librdkafka settings.
    """

    hook_name = "Apache Kafka cluster (Rehome)"

    @cached_property
    def connection(self) -> Connection:
        """The connection's settings, checked.

        :raises InvalidRequestError: there is no such connection, or its settings are missing,
            unknown or contradictory.
        """
        from rehome.cluster.connection.settings import Connection

        return Connection.from_settings(self._extra)

    @cached_property
    def policy(self) -> ConnectionPolicy:
        """What may be done through the connection, by its extra or by the clusters file.

        :raises InvalidRequestError: there is no such connection, its policy is not one or stands
            in both places, or the clusters file cannot be used.
        """
        from rehome.execution.access.connection_policy import KEY, ConnectionPolicy
        from rehome.fleet import clusters

        own = ConnectionPolicy.parse(self._extra.get(KEY), self.kafka_config_id)
        entry = clusters.through(self.kafka_config_id)
        if entry is None or entry.policy is None:
            return own
        if KEY in self._extra:
            problem = (
                f"Connection {self.kafka_config_id} has a policy in its extra ({KEY}) and one in "
                "the clusters file. Leave one of them out."
            )
            raise InvalidRequestError([problem])
        return entry.policy

    @property
    def exists(self) -> bool:
        """Whether Airflow has the connection."""
        try:
            self.get_connection(self.kafka_config_id)
        except AirflowNotFoundException:
            return False
        return True

    @cached_property
    def _extra(self) -> dict[str, Any]:
        try:
            found = self.get_connection(self.kafka_config_id)
        except AirflowNotFoundException:
            problem = f"There is no Airflow connection {self.kafka_config_id!r}."
            raise InvalidRequestError([problem]) from None
        if found.conn_type != self.conn_type:  # a run's parameters may name any connection
            problem = f"Connection {self.kafka_config_id} is not of type {self.conn_type}."
            raise InvalidRequestError([problem])
        extra: dict[str, Any] = found.extra_dejson
        return extra

    def gateway(self, settings: Settings) -> ClusterGateway:
        """A gateway with the settings' time limits; close it, or use it as a context manager."""
        from rehome.cluster.gateway import ClusterGateway

        return ClusterGateway(
            self.connection,
            name=self.kafka_config_id,
            request_timeout_s=settings.request_timeout_s,
            connect_timeout_s=settings.connect_timeout_s,
        )

    def test_connection(self) -> tuple[bool, str]:
        """What Airflow's UI shows: connected as whom, or the cause of the failure."""
        from rehome.cluster.connection.check import check_connection

        try:
            self.policy  # noqa: B018 - read for what is wrong with it
            return True, check_connection(self.connection)
        except RehomeError as error:
            return False, str(error)
