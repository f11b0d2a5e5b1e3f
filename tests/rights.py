"""Rights of a role on a secured cluster, given for the length of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from local.kafka_cluster import LocalCluster

Right = tuple[str, str]
"""Operation and resource type, as ``LocalCluster.allow`` takes them."""

REASSIGNER: tuple[Right, ...] = (
    ("alter", "cluster"),
    ("alter_configs", "cluster"),
    ("describe", "topic"),
    ("alter_configs", "topic"),
)
PLANNER: tuple[Right, ...] = (
    ("describe", "cluster"),
    ("describe_configs", "cluster"),
    ("describe", "topic"),
    ("describe_configs", "topic"),
)


@contextmanager
def granted(cluster: LocalCluster, user: str, *rights: Right) -> Iterator[None]:
    """Give the user these rights, on every topic where topics are meant; then take them back."""
    with ExitStack() as undo:
        for operation, resource in rights:
            cluster.allow(user, operation, resource)
            undo.callback(cluster.revoke, user, operation, resource)
        yield
