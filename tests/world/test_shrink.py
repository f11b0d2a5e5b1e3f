"""A failing script is shortened to what it takes to fail."""

from __future__ import annotations

from dataclasses import replace

from world.luck import script_of
from world.script import Do, Script, What
from world.shrink import shrunk

NEEDED = (Do(1.0, "A", What.START, (0,)), Do(9.0, "admin", What.DELETE_LIST, ("t", "x")))


def has_both(script: Script) -> bool:
    return set(NEEDED) <= set(script.does)


def test_only_what_it_takes_is_left() -> None:
    full = script_of(3)
    others = tuple(Do(float(n), "A", What.SWEEP) for n in range(2, 9))
    script = replace(full, does=(NEEDED[0], *others, NEEDED[1]), topics=full.topics)
    found = shrunk(script, has_both)
    assert found.does == NEEDED
    assert found.strikes == ()
    assert found.configs == ()
    assert all(len(plan.moves) == 1 for plan in found.plans)


def test_it_ends_after_so_many_runs() -> None:
    runs = []

    def fails(script: Script) -> bool:
        runs.append(script)
        return True

    shrunk(script_of(3), fails, most_runs=5)
    assert len(runs) <= 5
