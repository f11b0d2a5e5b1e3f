"""The whole plan job, as an operator submits it: Spark's start, both gates, every file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil

from rehome.packaging import JOB_PATH, local_spark

ROOT = Path(__file__).parents[2]
EVERY_S = 0.2


def whole_job(uri: str, params: dict[str, Any], place: str) -> dict[str, Any]:
    """Run spark_jobs/plan.py by spark-submit on a snapshot; seconds, processor time and memory.

    :param params: the request; ``place``: a directory for it and for the plan.
    :raises RuntimeError: when the job fails.
    """
    request = Path(place) / "request.json"
    request.write_text(json.dumps(params))
    took, seen = submitted(
        "plan.py", *("--snapshot", uri, "--request", str(request), "--out", f"{place}/job")
    )
    summary = json.loads((Path(place) / "job" / "summary.json").read_text())
    return {
        "policy": "whole job",
        "replicas": sum(load["replicas_after"] for load in summary["brokers"]),
        "brokers": len(summary["brokers"]),
        "total_s": round(took, 2),
        "replica_moves": summary["replica_moves"],
        "bytes_moved": summary["bytes_to_move"],
        "moved_over_bound": round(summary["bytes_to_move"] / summary["lower_bound_bytes"], 4),
        "infeasible": len(summary["infeasible"]),
        "hard_violations": summary["rack_violations_after"],
        **seen,
    }


def submitted(script: str, *arguments: str) -> tuple[float, dict[str, float]]:
    """Run one of spark_jobs/ by spark-submit; seconds, and what its processes took.

    :raises RuntimeError: when the job fails.
    """
    command = [
        str(Path(sys.executable).parent / "spark-submit"),
        *("--master", "local[2]", "--driver-memory", "1g"),
        *(part for item in local_spark().items() for part in ("--conf", "=".join(item))),
        str(ROOT / "spark_jobs" / script),
        *arguments,
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": JOB_PATH,
        "PYSPARK_PYTHON": sys.executable,
    }
    started = time.perf_counter()
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as job:
        watch = _Watch(job.pid)
        output, _ = job.communicate()
    took = time.perf_counter() - started
    seen = watch.end()
    if job.returncode:
        raise RuntimeError(f"{script} ended with {job.returncode}: {output[-2000:]}")
    return took, seen


class _Watch:
    """Watches all processes below one: what they hold, and what they take of the processors.

    Of the largest Python and the largest JVM, the most memory that they had; of all together, the
    most that they had at once. Processor time is that of their last sight, by kind.
    """

    def __init__(self, pid: int) -> None:
        self._root, self._ended = psutil.Process(pid), threading.Event()
        self._peaks = {"python": 0, "java": 0, "all": 0}
        self._cpu: dict[tuple[str, int], float] = {}
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(EVERY_S):
            try:
                self._look([self._root, *self._root.children(recursive=True)])
            except psutil.NoSuchProcess:
                continue

    def _look(self, processes: list[psutil.Process]) -> None:
        together = 0
        for process in processes:
            kind = next((kind for kind in ("python", "java") if kind in process.name()), None)
            if kind is not None:
                size, times = process.memory_info().rss, process.cpu_times()
                self._cpu[kind, process.pid] = times.user + times.system
                self._peaks[kind] = max(self._peaks[kind], size)
                together += size
        self._peaks["all"] = max(self._peaks["all"], together)

    def end(self) -> dict[str, float]:
        """What was seen, as the benchmark's result names it."""
        self._ended.set()
        self._thread.join()
        cpu = {"python": 0.0, "java": 0.0}
        for (kind, _), seconds in self._cpu.items():
            cpu[kind] += seconds
        return {
            "cpu_s": round(sum(cpu.values()), 2),
            "jvm_cpu_s": round(cpu["java"], 2),
            "peak_rss_bytes": self._peaks["python"],
            "jvm_rss_bytes": self._peaks["java"],
            "all_rss_bytes": self._peaks["all"],
        }
