"""Rights of a role on a secured cluster: exactly those that docs/security.md lists."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from local.kafka.cluster import LocalCluster
from rehome.cluster.interface.rights import readable

_DOCUMENT = Path(__file__).parents[1] / "docs" / "security.md"

Right = tuple[str, str]
"""Operation and resource type, as ``LocalCluster.allow`` takes them."""


def documented_commands(principal: str) -> list[list[str]]:
    """Arguments of the documented kafka-acls commands for a principal, from --add on."""
    lines = _DOCUMENT.read_text().splitlines()
    return [
        shlex.split(line)[5:]
        for line in lines
        if line.startswith("kafka-acls.sh") and f"User:{principal} " in line
    ]


def _documented(principal: str) -> tuple[Right, ...]:
    return tuple(
        (re.sub(r"(?<=[a-z])(?=[A-Z])", "_", after).lower(), resource)
        for command in documented_commands(principal)
        for resource in ("cluster", "topic")
        if f"--{resource}" in command
        for word, after in pairwise(command)
        if word == "--operation"
    )


REASSIGNER = _documented("rehome")
UNTHROTTLED = _documented("rehome-unthrottled")
PLANNER = _documented("rehome-planner")
PARTITION_ADDER = _documented("rehome-partitions")


def named(right: Right, topic: str) -> str:
    """How a missing right reads: "Cluster Alter", "Topic Describe on payments"."""
    operation, resource = right
    where = f" on {topic}" if resource == "topic" else ""
    return f"{resource.title()} {readable(operation)}{where}"


@contextmanager
def granted(cluster: LocalCluster, user: str, *rights: Right) -> Iterator[None]:
    """Give the user these rights, on every topic where topics are meant; then take them back."""
    cluster.allow_all(user, rights)
    try:
        yield
    finally:
        cluster.revoke_all(user, rights)
