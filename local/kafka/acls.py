"""Gives rights to users of a secured cluster and takes them away, known to every live broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from kafka.protocol.admin import DescribeAclsRequest
from local.process.waiting import wait_until
from rehome.cluster.clients.wire import Wire
from rehome.cluster.connection.settings import Connection

_RESOURCES = {
    "cluster": ResourceType.BROKER,  # librdkafka's name for Kafka's CLUSTER
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
}
_TIMEOUT_S = 60.0

Right = tuple[str, str, str, str]
"""Operation, resource type, its name, and the pattern that this is: literal or prefixed."""


class Acls:
    """The cluster's ACLs, changed with an administrator's client.

    :param settings: librdkafka settings of a super user.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._admin = AdminClient({**settings, "log_level": "0"})
        self._wire = Wire(
            Connection.from_settings(settings),
            client_id="local-acls",
            request_timeout_s=_TIMEOUT_S,
            connect_timeout_s=_TIMEOUT_S,
        )

    def close(self) -> None:
        """Close the connections."""
        self._wire.close()

    def allow(self, user: str, rights: Sequence[Right]) -> None:
        """Let ``user`` do this from any host; returns when every live broker knows."""
        bindings = [_acl(AclBinding, user, right) for right in rights]
        for answer in self._admin.create_acls(bindings, request_timeout=_TIMEOUT_S).values():
            answer.result()
        self._await(bindings[-1], there=True)  # brokers learn of one request's ACLs at once

    def revoke(self, user: str, rights: Sequence[Right]) -> None:
        """Undo :meth:`allow`; returns when every live broker knows.

        :raises LookupError: when there was no such right.
        """
        bindings = [_acl(AclBindingFilter, user, right) for right in rights]
        answers = self._admin.delete_acls(bindings, request_timeout=_TIMEOUT_S)
        for right, binding in zip(rights, bindings, strict=True):
            if not answers[binding].result():
                raise LookupError(f"{user} had no right to {' '.join(right[:3])}")
        self._await(bindings[-1], there=False)

    def _await(self, binding: AclBinding, *, there: bool) -> None:
        request = DescribeAclsRequest(
            resource_type_filter=binding.restype.value,
            resource_name_filter=binding.name,
            pattern_type_filter=binding.resource_pattern_type.value,
            principal_filter=binding.principal,
            host_filter=binding.host,
            operation=binding.operation.value,
            permission_type=binding.permission_type.value,
            min_version=1,
        )

        def known() -> bool:
            live = [broker.node_id for broker in self._wire.metadata().brokers]
            answers, missing = self._wire.ask_each(dict.fromkeys(live, request))
            return not missing and all(
                answer.error_code == 0 and bool(answer.resources) == there
                for answer in answers.values()
            )

        wait_until(known, f"every broker to know {binding}", _TIMEOUT_S, 0.02)


def _acl(kind: type[AclBinding], user: str, right: Right) -> AclBinding:
    operation, resource_type, name, pattern = right
    restype = _RESOURCES[resource_type.lower()]
    return kind(
        restype,
        "kafka-cluster" if restype == ResourceType.BROKER else name,
        ResourcePatternType[pattern.upper()],
        f"User:{user}",
        "*",
        AclOperation[operation.upper()],
        AclPermissionType.ALLOW,
    )
