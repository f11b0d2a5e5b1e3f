"""A failing script made as short as it can be while it still fails in the same way.

Delta debugging (Zeller and Hildebrandt 2002, ddmin) over what is done, which faults strike, what
was set before, and moves; then over what is simpler: fewer topics, fewer brokers, no inflow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from world.judge.violations import Kind
from world.outcome import run
from world.script import Plan, Script

Fails = Callable[[Script], bool]
ORDERS_TRIED = 4
"""A shorter script has other points; in another order of actors it may fail as before."""


def fails_as(kind: Kind) -> Fails:
    """Whether a script fails in this way."""
    return lambda script: any(found.kind is kind for found in run(script, traced=False).violations)


def shrunk(script: Script, fails: Fails, most_runs: int = 400) -> Script:
    """A script that fails too, of which nothing can be left out."""
    tries = _Tries(fails, most_runs)
    while True:
        before = len(script)
        for name in ("does", "strikes", "configs"):
            script = _fewer(script, name, tries)
        script = _fewer_moves(script, tries)
        script = _simpler(script, tries)
        if len(script) >= before or tries.left <= 0:
            return script


class _Tries:
    def __init__(self, fails: Fails, left: int) -> None:
        self._fails = fails
        self.left = left

    def failing(self, script: Script) -> Script | None:
        """The script, or the same in another order, if it fails."""
        for order in range(script.order, script.order + ORDERS_TRIED):
            if self.left <= 0:
                return None
            self.left -= 1
            tried = replace(script, order=order)
            if self._fails(tried):
                return tried
        return None


def _fewer(script: Script, name: str, tries: _Tries) -> Script:
    """Leave out ever smaller parts of one of its lists."""
    part = max(1, len(getattr(script, name)) // 2)
    while True:
        at = 0
        while at < len(getattr(script, name)):
            items: Sequence[Any] = getattr(script, name)
            left = (*items[:at], *items[at + part :])
            changed: dict[str, Any] = {name: left}
            found = tries.failing(replace(script, **changed))
            script = found or script
            at += 0 if found else part
        if part == 1:
            return script
        part = max(1, part // 2)


def _fewer_moves(script: Script, tries: _Tries) -> Script:
    for number, plan in enumerate(script.plans):
        for move in plan.moves:
            if len(script.plans[number].moves) == 1:
                break
            left = tuple(m for m in script.plans[number].moves if m != move)
            shorter = replace(script.plans[number], moves=left)
            script = tries.failing(_with_plan(script, number, shorter)) or script
    return script


def _with_plan(script: Script, number: int, plan: Plan) -> Script:
    plans = (*script.plans[:number], plan, *script.plans[number + 1 :])
    return replace(script, plans=plans)


def _simpler(script: Script, tries: _Tries) -> Script:
    for simpler in _simpler_ones(script):
        script = tries.failing(simpler) or script
    return script


def _simpler_ones(script: Script) -> Iterator[Script]:
    used = {topic for plan in script.plans for topic, _, _ in plan.moves}
    used |= {arg for does in script.does for arg in does.args if isinstance(arg, str)}
    used |= {config.name for config in script.configs if config.of_topic}
    topics = tuple(topic for topic in script.topics if topic.name in used)
    if topics != script.topics:
        yield replace(script, topics=topics)
    if any(topic.inflow for topic in topics):
        yield replace(script, topics=tuple(replace(topic, inflow=0) for topic in topics))
