"""The way through the code: how often a step enters a module, and one that it had left.

    python -m benchmarks.code.walks

Runs a drain of one broker in the simulated world. Of each function its first call within a step
counts. A stay is a run of calls within one module; a return is a stay in a module that was left
before. Also counted: the lines of all files of which a function was called.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, SimpleNamespace
from typing import Any
from unittest.mock import patch

from greenlet import getcurrent

from benchmarks.code import house
from rehome.execution import advance
from rehome.run import ports
from rehome.run.ports import Extras
from world.airflow import processes, task_runs
from world.cases import ONE, START
from world.outcome import Outcome, run
from world.script import Plan, Script

DRAIN = Script(1, 4, (ONE,), (Plan("A", (), 1_000_000, drains=(2,)),), (), (START,), quiet_s=300.0)

ROOT = Path(__file__).resolve().parents[2]
OURS = tuple(f"{ROOT / folder}/" for folder in ("include/rehome", "plugins/rehome", "dags"))


@dataclass
class Walk:
    """The modules that one call has entered, in their order."""

    stays: list[str] = field(default_factory=list)
    seen: set[tuple[str, str]] = field(default_factory=set)

    def enter(self, code: CodeType) -> None:
        """A function is called; what was called before is known to who reads along."""
        if (function := (code.co_filename, code.co_qualname)) in self.seen:
            return
        self.seen.add(function)
        if not self.stays or self.stays[-1] != code.co_filename:
            self.stays.append(code.co_filename)

    @property
    def returns(self) -> int:
        """Stays in a module that was left before."""
        return len(self.stays) - len(set(self.stays))


class Walks:
    """Walks of the calls that are followed, one at a time."""

    def __init__(self) -> None:
        self.done: dict[str, list[Walk]] = defaultdict(list)
        self.files: set[str] = set()
        self._open: list[tuple[Any, Walk]] = []

    def followed(self, function: Callable[..., Any], name: Callable[..., str]) -> Any:
        """The function; the walk of each call is kept under a name that its arguments give."""

        def follow(*arguments: Any, **named: Any) -> Any:
            walk = Walk()
            self._open.append((getcurrent(), walk))
            sys.setprofile(self._entered)
            try:
                return function(*arguments, **named)
            finally:
                self._open.remove((getcurrent(), walk))
                sys.setprofile(self._entered if self._open else None)
                self.done[name(*arguments)].append(walk)

        return follow

    def _entered(self, frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(OURS) or frame.f_code.co_name.startswith("<"):
            return
        self.files.add(file)
        here = getcurrent()
        for greenlet, walk in self._open:
            if greenlet is here:
                walk.enter(frame.f_code)


def drain(extras: Extras | None = None) -> tuple[Walks, Outcome]:
    """Drain a broker, and follow every task.

    :param extras: what is behind the ports of the core; None = what an installation has.
    """
    walks = Walks()
    tasks = walks.followed(processes.attempt, lambda task, *_: task.task_id)
    steps = walks.followed(advance.advance, lambda *_: "advance")
    others = {} if extras is None else {ports.COMPOSITION: SimpleNamespace(INSTALLED_EXTRAS=extras)}
    ports.extras.cache_clear()
    try:
        with (
            patch.dict(sys.modules, others),
            patch.object(task_runs, "attempt", tasks),
            patch.object(advance, "advance", steps),
        ):
            return walks, run(DRAIN, traced=False)
    finally:
        ports.extras.cache_clear()


def main() -> None:
    """Run the drain, and print a table."""
    walks, outcome = drain()
    print(f"plans: {dict(outcome.states)}")
    print(f"{'call':<32}{'times':>6}{'rooms':>7}{'stays':>7}{'returns':>9}   (of the longest)")
    for name, found in walks.done.items():
        longest = max(found, key=lambda walk: len(walk.stays))
        stays = len(longest.stays)
        print(
            f"{name:<32}{len(found):>6}{stays - longest.returns:>7}{stays:>7}{longest.returns:>9}"
        )
    print("files that were entered:")
    print(*house.table([Path(file) for file in walks.files]), sep="\n")


if __name__ == "__main__":
    main()
