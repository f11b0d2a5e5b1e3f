"""How much memory Spark's driver needs for a snapshot (docs/howto/spark.md)."""

from __future__ import annotations

from collections.abc import Sequence

_MIB = 1024**2
SPARKS_OWN_MIB = 1024
"""What Spark gives a driver, and lets it collect, where nothing is set."""
ENOUGH_UP_TO = 1_000_000
"""Replicas that were planned and judged with that."""
HEAP_BYTES_PER_REPLICA = 600
"""Three times the evidence of a plan that changes every partition: 197 bytes for each replica."""
RESULT_BYTES_PER_REPLICA = 200
"""Three times the plan that a fleet's task returns, where that changes every partition: 61."""
PYTHON_BYTES = 640 * _MIB
PYTHON_BYTES_PER_REPLICA = 400
"""Both of Python's processes: 0.9 GB for a million replicas."""


def memory_conf(replicas: Sequence[int], *, in_cluster: bool) -> dict[str, str]:
    """Settings of the driver; none where Spark's own are enough.

    :param replicas: of each cluster that the job plans.
    :param in_cluster: whether a cluster manager reserves the driver's memory, that of Python too.
    """
    largest, total = max(replicas, default=0), sum(replicas)
    conf = {}
    collected = RESULT_BYTES_PER_REPLICA * total if len(replicas) > 1 else 0
    if largest > ENOUGH_UP_TO or collected > SPARKS_OWN_MIB * _MIB:
        heap = HEAP_BYTES_PER_REPLICA * largest + collected
        conf["spark.driver.memory"] = _mib_text(SPARKS_OWN_MIB * _MIB + heap)
    if collected > SPARKS_OWN_MIB * _MIB:
        conf["spark.driver.maxResultSize"] = _mib_text(collected)
    if in_cluster:
        python = PYTHON_BYTES + PYTHON_BYTES_PER_REPLICA * largest
        conf["spark.driver.memoryOverhead"] = _mib_text(python)
    return conf


def _mib_text(size_bytes: int) -> str:
    return f"{-(-size_bytes // _MIB)}m"
