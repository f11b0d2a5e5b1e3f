"""The hook on a Kafka cluster: one Airflow connection feeds both clients."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.kafka.hooks.base import KafkaBaseHook
from airflow.providers.common.compat.sdk import AirflowNotFoundException

from rehome.cluster.connection.check import check_connection
from rehome.cluster.connection.settings import Connection
from rehome.cluster.gateway import ClusterGateway
from rehome.cluster.interface.rights import Role, rights_to_start
from rehome.domain.text import first_names
from rehome.errors import InvalidConnectionError, InvalidRequestError, RehomeError
from rehome.execution.access.connection_policy import KEY, ConnectionPolicy
from rehome.fleet import clusters
from rehome.hooks import connection_form

if TYPE_CHECKING:
    from rehome.settings import Settings

TESTED_WITHIN_S = 5.0
"""Each of the steps of a test of a connection."""


class KafkaClusterHook(KafkaBaseHook):
    """Opens a :class:`~rehome.cluster.gateway.ClusterGateway` on a connection to a cluster.

    :param kafka_config_id: the connection, of type `rehome_kafka`, or of the Kafka provider's
        `kafka`, whose extra holds librdkafka settings.
    """

    hook_name = "Apache Kafka cluster (Rehome)"

    @cached_property
    def connection(self) -> Connection:
        """The connection's settings, checked.

        :raises InvalidConnectionError: there is no such connection, or its settings are missing,
            unknown or contradictory.
        """
        try:
            return Connection.from_settings(connection_form.without_own(self._extra))
        except InvalidRequestError as error:
            raise InvalidConnectionError(self.kafka_config_id, error.problems) from error

    @cached_property
    def policy(self) -> ConnectionPolicy:
        """What may be done through the connection, by its extra or by the clusters file.

        :raises InvalidRequestError: there is no such connection, its policy is not one or stands
            in both places, or the clusters file cannot be used.
        """
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
        return self._settings_of(self.kafka_config_id, ())

    def _settings_of(self, name: str, through: tuple[str, ...]) -> dict[str, Any]:
        """Settings of a connection, and of those that it is the same as.

        :param through: the ones that have led here.
        """
        try:
            stored = self.get_connection(name)
        except AirflowNotFoundException:
            problem = connection_form.unread_variable(name) or "There is no such connection."
            raise InvalidConnectionError(name, [problem]) from None
        settings = connection_form.settings_of(name, stored)
        base = settings.get(connection_form.SAME_AS)
        if not base:
            return settings
        if base in (name, *through):
            raise InvalidConnectionError(name, [f"{connection_form.SAME_AS} leads back to itself."])
        others = self._settings_of(str(base), (name, *through))
        return connection_form.join_settings(name, settings, str(base), others)

    def gateway(self, settings: Settings) -> ClusterGateway:
        """A gateway with the settings' time limits; close it, or use it as a context manager."""
        return ClusterGateway(
            self.connection,
            name=self.kafka_config_id,
            request_timeout_s=settings.request_timeout_s,
            connect_timeout_s=settings.connect_timeout_s,
        )

    def test_connection(self) -> tuple[bool, str]:
        """What Airflow's UI shows: connected as whom, and what the principal may do; or the cause
        of the failure, within seconds.
        """
        try:
            self.policy  # noqa: B018 - read for what is wrong with it
            connected = check_connection(self.connection, TESTED_WITHIN_S)
            lacks_to_read, lacks = self._lacking_rights()
        except InvalidRequestError as error:
            return False, str(InvalidConnectionError("", error.problems))
        except RehomeError as error:
            return False, str(error)
        if lacks_to_read:
            return False, f"{connected} But it cannot read the cluster: it lacks {lacks_to_read}."
        if lacks:
            return True, (
                f"{connected} It may plan and try plans out. To carry them out it lacks {lacks}."
            )
        return True, f"{connected} It has every right that a plan needs."

    def _lacking_rights(self) -> tuple[str, str]:
        """What the principal lacks to make plans, and to carry them out; "" = nothing."""
        bounds = {"request_timeout_s": TESTED_WITHIN_S, "connect_timeout_s": TESTED_WITHIN_S}
        with ClusterGateway(self.connection, name=self.kafka_config_id, **bounds) as cluster:
            planner, reassigner = (
                first_names(rights_to_start(cluster, role))
                for role in (Role.PLANNER, Role.REASSIGNER)
            )
        return planner, reassigner


class RehomeKafkaHook(KafkaClusterHook):
    """The hook of Rehome's own type of connection: of any that it accepts it reads the same."""

    conn_type = connection_form.OWN_TYPE
    hook_name = "Kafka cluster (Rehome)"
