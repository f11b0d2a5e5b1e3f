"""Prepares the nodes' directories, as ``kafka-storage.sh format`` does."""

from __future__ import annotations

import base64
import uuid

from local.kafka.jvm import VERSION, ClusterStartError, run_java, write_properties
from local.kafka.node_config import NodeLayout
from local.kafka.security import Security


def random_id() -> str:
    """A Kafka Uuid. One that begins with a dash would read as an option to the tools."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def format_broker(layout: NodeLayout, broker: int, cluster_id: str) -> None:
    """Write meta.properties version 1 to each of a broker's directories.

    A broker needs nothing else of StorageTool, and a JVM for each would slow every start.
    """
    for directory in (layout.metadata_dir(broker), *layout.log_dirs(broker)):
        directory.mkdir(parents=True, exist_ok=True)
        write_properties(
            directory / "meta.properties",
            {
                "version": "1",
                "cluster.id": cluster_id,
                "node.id": str(broker),
                "directory.id": random_id(),
            },
        )


def format_controller(
    layout: NodeLayout,
    controller: int,
    cluster_id: str,
    security: Security | None,
    release_version: str | None,
    version: str = VERSION,
) -> None:
    """Let StorageTool write the cluster's first metadata: features and SCRAM credentials.

    :param release_version: finalized metadata.version; None = the newest.
    :param version: of Kafka.
    :raises ClusterStartError: with the last line only; the output may hold SCRAM keys.
    """
    result = run_java(
        "kafka.tools.StorageTool",
        "format",
        "-t",
        cluster_id,
        "-c",
        str(layout.config_file(controller)),
        *(security.format_arguments() if security else ()),
        *(("--release-version", release_version) if release_version else ()),
        version=version,
    )
    if result.returncode:
        last = (result.stderr or result.stdout).strip().splitlines()[-1:]
        raise ClusterStartError(f"Formatting the controller failed: {' '.join(last)}")
