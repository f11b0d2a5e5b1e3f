"""A script run and judged."""

from __future__ import annotations

import gc
from collections import Counter
from dataclasses import dataclass, field
from functools import cache

from world.coverage import Reached, reached, waits_counted
from world.judge.judge import judge
from world.judge.violations import Kind, Violation
from world.running.scheduler import Stuck
from world.running.trace import Trace
from world.script import Script
from world.stage import Stage


@dataclass(frozen=True)
class Outcome:
    """How a run has ended.

    :param unavoidable: see ``Verdict``.
    :param done: what was done, and which faults struck, by kind.
    :param reached: what of all that Rehome can say; see ``coverage``.
    :param sha256: of the trace; "" = it was not kept.
    :param calls: to brokers by Rehome.
    """

    script: Script
    violations: tuple[Violation, ...]
    unavoidable: int
    sha256: str
    done: Counter[str]
    calls: int
    hours: float
    states: Counter[str]
    reached: Reached = field(default_factory=Counter)
    lines: tuple[str, ...] = ()

    @property
    def kinds(self) -> frozenset[tuple[Kind, str]]:
        """Which faults were found."""
        return frozenset((each.kind, each.subject) for each in self.violations)


@cache
def _freeze() -> None:
    """What was imported lives for ever, and need not be looked through."""
    gc.collect()
    gc.freeze()


def run(script: Script, *, lines: int = 0, traced: bool = True) -> Outcome:
    """Run a script, and judge it.

    :param lines: so many of the trace's last are kept.
    :param traced: False = no hash of the trace: the outcome is the same, and is there sooner.
    """
    trace = Trace(keep=lines, kept=traced)
    _freeze()
    gc.disable()  # a run makes many cycles, which are taken away after it
    stage = Stage(script, trace)
    waits: Reached = Counter()
    try:
        try:
            with waits_counted(waits):
                stage.run()
        except Stuck as stuck:
            found = Violation(Kind.STUCK, "scheduler", str(stuck), stage.scheduler.at_s)
            violations: tuple[Violation, ...] = (found,)
            unavoidable = 0
        else:
            verdict = judge(stage.seen())
            violations, unavoidable = verdict.violations, verdict.unavoidable
        calls = stage.history.calls.items()
        return Outcome(
            script,
            violations,
            unavoidable,
            trace.sha256,
            stage.done,
            sum(count for (owner, _), count in calls if owner in stage.rehomes),
            stage.scheduler.at_s / 3600,
            Counter(str(record.state) for record in stage.records.values()),
            reached(stage) + waits,
            tuple(trace.lines),
        )
    finally:
        stage.end()
        gc.enable()
