"""Who may do what: ACLs as StandardAuthorizer reads them (KIP-11, KIP-290)."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import NamedTuple

ANY = "*"
CLUSTER_NAME = "kafka-cluster"


class Operation(enum.Enum):
    """Operations of ACLs, as DescribeCluster and Metadata name those that are allowed."""

    READ = "READ"
    WRITE = "WRITE"
    CREATE = "CREATE"
    DELETE = "DELETE"
    ALTER = "ALTER"
    DESCRIBE = "DESCRIBE"
    CLUSTER_ACTION = "CLUSTER_ACTION"
    DESCRIBE_CONFIGS = "DESCRIBE_CONFIGS"
    ALTER_CONFIGS = "ALTER_CONFIGS"
    IDEMPOTENT_WRITE = "IDEMPOTENT_WRITE"
    ALL = "ALL"


class AclResource(enum.Enum):
    """What an ACL is about."""

    CLUSTER = "cluster"
    TOPIC = "topic"
    GROUP = "group"


class Binding(NamedTuple):
    """An ACL. ``name`` is ``*`` for any; of the cluster there is one."""

    principal: str
    operation: Operation
    resource: AclResource
    name: str = ANY
    prefixed: bool = False
    allow: bool = True


ON = {
    AclResource.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
    AclResource.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
}
"""Operations that a kind of resource knows (``AclEntry.supportedOperations``)."""
_IMPLIED_BY = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}


def allowed(
    bindings: Iterable[Binding],
    principal: str,
    operation: Operation,
    resource: AclResource,
    name: str = CLUSTER_NAME,
) -> bool:
    """Whether the ACLs let a principal do this. A denial wins; without any ACL nothing is."""
    asked = (operation, Operation.ALL)
    enough = (*asked, *_IMPLIED_BY.get(operation, ()))
    found = False
    for one in bindings:
        if one.resource is not resource or one.principal not in (principal, "User:*"):
            continue
        if not _matches(one, name):
            continue
        if not one.allow and one.operation in asked:
            return False
        found = found or (one.allow and one.operation in enough)
    return found


def _matches(binding: Binding, name: str) -> bool:
    if binding.resource is AclResource.CLUSTER or (binding.name == ANY and not binding.prefixed):
        return True
    return name.startswith(binding.name) if binding.prefixed else binding.name == name
