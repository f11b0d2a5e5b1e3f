"""What a cluster has, read without Rehome: by confluent-kafka and Kafka's own tools."""

from __future__ import annotations

import re
from collections.abc import Mapping

from confluent_kafka.admin import AdminClient

from local.kafka.cluster import LocalCluster
from tests.e2e.soak.judge import SeenPartition
from tests.versions.since import class_of_tool

REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
_WHERE = re.compile(r"^(?:Dynamic configs for (\w+ \S+) are:|(Default configs for brokers).*)$")
_VALUE = re.compile(r"^\s+(\S+?)=(.*?) sensitive=(?:true|false)")
_LISTED = re.compile(r"^\s*(\S+-\d+): replicas:.*(?:adding|removing)")


class Outside:
    """Reads of one cluster, which may have dead brokers."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self.admin = AdminClient(cluster.client_settings() | {"log_level": "0"})

    def partitions(self) -> dict[str, dict[int, SeenPartition]]:
        """By topic, internal ones too."""
        topics = self.admin.list_topics(timeout=60).topics
        return {
            name: {
                number: SeenPartition(tuple(each.replicas), tuple(each.isrs), each.leader)
                for number, each in topic.partitions.items()
            }
            for name, topic in topics.items()
        }

    def settings(self) -> dict[str, str]:
        """Every dynamic configuration of topics, of brokers, and of their default."""
        return {
            name: value
            for entity in ("topics", "brokers")
            for name, value in settings_in(self._described(entity)).items()
        }

    def in_flight(self) -> tuple[str, ...]:
        """Partitions whose reassignment goes on."""
        said = self._said(REASSIGN, "--list")
        return tuple(found[1] for line in said.splitlines() if (found := _LISTED.match(line)))

    def _described(self, entity: str) -> str:
        asked = ("--describe", "--entity-type", entity)
        return self._said(class_of_tool("ConfigCommand"), *asked)

    def _said(self, tool: str, *asked: str) -> str:
        """What it prints. One that fails prints nothing, and would be taken for "nothing there"."""
        done = self._cluster.run_tool(tool, *asked)
        if done.returncode:
            raise RuntimeError(f"{tool} has failed: {done.stdout}{done.stderr}")
        return done.stdout


def settings_in(said: str) -> Mapping[str, str]:
    """What and key → value, from what Kafka's tool prints of configurations."""
    found, where = {}, ""
    for line in said.splitlines():
        if header := _WHERE.match(line):
            where = header[1] or "default of brokers"
        elif value := _VALUE.match(line):
            found[f"{where} {value[1]}"] = value[2]
    return found
