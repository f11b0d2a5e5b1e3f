"""Samples of a soak: memory and processor of Airflow's components, sizes of what is kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.e2e.soak.judge import Memory

INTERVAL_S = 15.0
COMPONENTS = ("scheduler", "triggerer")


@dataclass(frozen=True, slots=True)
class Sample:
    """At one moment.

    :param at: seconds since the start.
    :param pids: by component; ``rss``: bytes of it and all its descendants; ``own``: of it alone;
        ``processes``: how many there are.
    """

    at: float
    pids: Mapping[str, int]
    rss: Mapping[str, int]
    own: Mapping[str, int]
    processes: Mapping[str, int]
    sizes: Mapping[str, int] = field(default_factory=dict)


class Sampler:
    """Takes a sample every 15 s, from a thread of its own.

    :param pids: of what is started, by name, asked each time.
    :param sizes: bytes of what is kept, by name, asked every fourth time.
    """

    def __init__(
        self, pids: Callable[[], Mapping[str, int]], sizes: Callable[[], Mapping[str, int]]
    ) -> None:
        self._pids = pids
        self._sizes = sizes
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._began = time.monotonic()
        self._used: dict[tuple[int, float], float] = {}
        self.samples: list[Sample] = []

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End; what was sampled stays."""
        self._stopping.set()
        self._thread.join(60)

    @property
    def processor_s(self) -> float:
        """Processor time of all processes that were seen, with their children that have ended."""
        return sum(self._used.values())

    def _run(self) -> None:
        while True:
            self.samples.append(self._sample())
            if self._stopping.wait(INTERVAL_S):
                return

    def _sample(self) -> Sample:
        pids = dict(self._pids())
        families = {name: _family(pid) for name, pid in pids.items()}
        for family in families.values():
            self._count(family)
        shown = {name: families[name] for name in COMPONENTS if families.get(name)}
        return Sample(
            time.monotonic() - self._began,
            {name: pids[name] for name in shown},
            {name: sum(map(_rss, family)) for name, family in shown.items()},
            {name: _rss(family[0]) for name, family in shown.items()},
            {name: len(family) for name, family in shown.items()},
            self._sizes() if len(self.samples) % 4 == 0 else {},
        )

    def _count(self, family: Sequence[psutil.Process]) -> None:
        for process in family:
            try:
                used = process.cpu_times()
                key = (process.pid, process.create_time())
            except psutil.Error:
                continue
            self._used[key] = sum(used[:4])


def _family(pid: int) -> list[psutil.Process]:
    try:
        return [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []


def _rss(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def memory_of(samples: Sequence[Sample], component: str) -> Memory:
    """The first and the last sixth of the second half: of an hour, five minutes each."""
    end = samples[-1].at
    half = [each for each in samples if each.at >= end / 2]
    with_it = [each for each in half if component in each.rss]
    first = tuple(each.rss[component] for each in with_it if each.at < end * 7 / 12)
    last = tuple(each.rss[component] for each in with_it if each.at >= end * 11 / 12)
    return Memory(component, first, last, len({each.pids[component] for each in with_it}) > 1)


def bytes_below(folder: Path) -> int:
    """Of all files; those that go meanwhile count as nothing."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue
    return total
