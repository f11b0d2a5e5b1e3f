"""Archives the classes Kafka loads, once at set-up: a broker then starts with half the CPU time.

JVMs map the archive instead of parsing and verifying some 8,700 classes each (class data sharing,
JEP 310). What to put in is learned from a secured cluster and a tool: ``python -m
local.kafka.class_archive``.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from local.kafka.cluster import CONTROLLER_ID, LocalCluster
from local.kafka.jvm import CLASS_ARCHIVE, java_command
from local.kafka.security import Security


def main() -> None:
    """Learn what is loaded, write the archive."""
    CLASS_ARCHIVE.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="kafka-classes-") as name:
        directory = Path(name)
        _write_archive(directory, _loaded_classes(directory))


def _loaded_classes(directory: Path) -> list[str]:
    """Names of the classes, in the order of their first loading, as the JVM lists them."""
    # %p becomes the process id. Each JVM below inherits this, whatever starts it.
    os.environ["JDK_JAVA_OPTIONS"] = f"-XX:DumpLoadedClassList={directory}/%p.classes"
    with LocalCluster(directory / "cluster", brokers=1, security=Security()) as cluster:
        cluster.run_tool("org.apache.kafka.tools.TopicCommand", "--list")
        for node in (*cluster.broker_ids, CONTROLLER_ID):
            cluster.shutdown(node)  # a JVM that is killed loses the end of its list
    del os.environ["JDK_JAVA_OPTIONS"]
    lines: dict[str, None] = {}
    for listing in sorted(directory.glob("*.classes")):
        lines.update(dict.fromkeys(listing.read_text().splitlines()))
    return list(lines)


def _write_archive(directory: Path, classes: list[str]) -> None:
    listing = directory / "all.classes"
    listing.write_text("\n".join(classes) + "\n")
    unfinished = CLASS_ARCHIVE.with_suffix(".unfinished")
    # The later of two equal options counts.
    subprocess.run(
        java_command(
            512,
            "-Xshare:dump",
            f"-XX:SharedClassListFile={listing}",
            f"-XX:SharedArchiveFile={unfinished}",
        ),
        stdout=subprocess.DEVNULL,
        check=True,
    )
    unfinished.replace(CLASS_ARCHIVE)


if __name__ == "__main__":
    main()
