"""Samples of a soak: memory and processor of Airflow's components, sizes of what is kept."""

from __future__ import annotations

import os
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
    :param pids: by component.
    :param standing: bytes (RSS) of a component and the processes that it has started itself: those
        of its executor, and of its triggers. They stay while tasks come and go.
    :param whole: of all its descendants, the tasks that run at the moment too.
    :param processes: RSS of each standing process.
    :param sizes: bytes of what is kept, by name.
    :param counts: of what leaves data, by name.
    """

    at: float
    pids: Mapping[str, int]
    standing: Mapping[str, int]
    whole: Mapping[str, int]
    processes: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)


class Sampler:
    """Takes a sample every 15 s, from a thread of its own.

    :param pids: of what is started, by name, asked each time.
    :param sizes: bytes of what is kept, by name, asked every fourth time; ``counts``: of what
        leaves data, asked with them.
    """

    def __init__(
        self,
        pids: Callable[[], Mapping[str, int]],
        sizes: Callable[[], Mapping[str, int]],
        counts: Callable[[], Mapping[str, int]],
    ) -> None:
        self._pids = pids
        self._sizes, self._counts = sizes, counts
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._began = time.monotonic()
        self._used: list[float] = []
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
        """Processor time of this process and all that it has started, from the first sample on."""
        return self._used[-1] - self._used[0]

    def _run(self) -> None:
        while True:
            self.samples.append(self._sample())
            if self._stopping.wait(INTERVAL_S):
                return

    def _sample(self) -> Sample:
        self._used.append(sum(map(_processor_s, _family(os.getpid(), everyone=True))))
        pids = dict(self._pids())
        shown = {name: pids[name] for name in COMPONENTS if _family(pids.get(name, 0))}
        standing = {
            name: {each.pid: _rss(each) for each in _family(pid)} for name, pid in shown.items()
        }
        with_sizes = len(self.samples) % 4 == 0
        whole = {name: sum(map(_rss, _family(pid, everyone=True))) for name, pid in shown.items()}
        return Sample(
            time.monotonic() - self._began,
            shown,
            {name: sum(each.values()) for name, each in standing.items()},
            whole,
            standing,
            self._sizes() if with_sizes else {},
            self._counts() if with_sizes else {},
        )


def _family(pid: int, *, everyone: bool = False) -> list[psutil.Process]:
    """A process and its children, or all its descendants; nothing where it is not there."""
    if not pid:
        return []
    try:
        first = psutil.Process(pid)
        return [first, *first.children(recursive=everyone)]
    except psutil.Error:
        return []


def _rss(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def _processor_s(process: psutil.Process) -> float:
    """With that of its children that have ended, of which it knows."""
    try:
        return float(sum(process.cpu_times()[:4]))
    except psutil.Error:
        return 0.0


def memory_of(samples: Sequence[Sample], component: str) -> Memory:
    """The first and the last sixth of the second half: of an hour, five minutes each."""
    end = samples[-1].at
    half = [each for each in samples if each.at >= end / 2]
    with_it = [each for each in half if component in each.standing]
    first = tuple(each.standing[component] for each in with_it if each.at < end * 7 / 12)
    last = tuple(each.standing[component] for each in with_it if each.at >= end * 11 / 12)
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
