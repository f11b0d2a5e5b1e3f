"""Java command lines on Kafka's jars."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSION = os.environ.get("KAFKA_VERSION") or "4.4.0"
"""Kafka's version; another one than the usual is brought by ``make setup KAFKA_VERSION=…``."""
_LOG4J = Path(__file__).with_name("log4j2.properties")


def jars_of(version: str) -> Path:
    """Where the jars of a version are, or will be."""
    return ROOT / ".cache" / f"kafka-{version}"


def archive_of(version: str) -> Path:
    """The archive of the version's classes, where one was made."""
    return jars_of(version) / "classes.jsa"


JARS = jars_of(VERSION)
CLASS_ARCHIVE = archive_of(VERSION)


class ClusterStartError(RuntimeError):
    """A process of the cluster did not come up; carries the tail of its log."""


def java_command(heap_mb: int, *arguments: str, version: str = VERSION) -> list[str]:
    """The command line that runs a class of Kafka's: ``arguments`` are its name and its own.

    :param version: of Kafka.
    :raises ClusterStartError: when Java or the jars are missing.
    """
    java = shutil.which("java")
    jars = sorted(map(str, jars_of(version).glob("*.jar")))
    archive = archive_of(version)
    if java is None or not jars:
        missing = "java is" if java is None else "Kafka's jars are"
        raise ClusterStartError(f"{missing} missing: run `make setup` first.")
    return [
        java,
        f"-Xmx{heap_mb}m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        # A file in /tmp for each JVM, which one that is killed leaves behind.
        "-XX:-UsePerfData",
        # A path that is not there would cost us Java's own archive too.
        *([f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []),
        # Mapped anywhere else, as Java does by default, each pointer in it has to be changed.
        "-XX:+UnlockDiagnosticVMOptions",
        "-XX:ArchiveRelocationMode=0",
        # The JVM's warnings belong on stderr: a tool's stdout is read.
        "-Xlog:disable",
        "-Xlog:all=error:stderr",
        f"-Dlog4j2.configurationFile={_LOG4J}",
        "-cp",
        ":".join(jars),  # in one order always: the archive holds for the order it was made with
        *arguments,
    ]


def run_java(
    main_class: str, *args: str, timeout_s: float = 240.0, version: str = VERSION
) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's command-line classes to its end."""
    return subprocess.run(
        java_command(256, main_class, *args, version=version),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def write_properties(path: Path, settings: Mapping[str, str]) -> Path:
    """Write a Java properties file."""
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return path
