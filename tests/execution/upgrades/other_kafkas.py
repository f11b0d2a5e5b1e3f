"""Versions of Kafka beside the one that the tests run on."""

from __future__ import annotations

import os
import subprocess

import pytest

from local.kafka.jvm import ROOT, jars_of


def bring(version: str) -> str:
    """Fetch the version's jars, where they are not here yet: a few seconds, with their checksums.

    :returns: the version.
    """
    if any(jars_of(version).glob("*.jar")):
        return version
    done = subprocess.run(
        [ROOT / "bin" / "setup", "kafka"],
        env={**os.environ, "KAFKA_VERSION": version},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if done.returncode:
        pytest.fail(f"Kafka {version} could not be fetched: {done.stdout}{done.stderr}")
    return version
