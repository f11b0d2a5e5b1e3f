"""What seeds draw of the actors that came later, each by a generator of its own: what else a seed
draws stays as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from world.rehome.channel import Answers
from world.rehome.two_entries import OTHER
from world.script import Do, Script, What

CHANNELS = 0.05
"""Of seeds: in these the alerts of each installation go to a webhook, which falters."""
TWO_CONNECTIONS = 0.05
"""Of seeds: in these an installation has another connection that leads to the cluster."""
FALTERING = tuple(each for each in Answers if each is not Answers.AT_ONCE)


def with_actors(script: Script, seed: int) -> Script:
    """A script of a seed, and what its other actors do."""
    script = _with_two_connections(script, Random(f"connections {seed}"))
    return _with_channels(script, Random(f"channel {seed}"))


def _with_two_connections(script: Script, rng: Random) -> Script:
    """Another connection leads to the cluster: snapshots are taken through it, it is swept, plans
    are started through it, and a second entry of the clusters file names it.
    """
    if rng.random() >= TWO_CONNECTIONS:
        return script
    who = rng.choice(script.installations)

    def at(since: float, until: float) -> float:
        return round(rng.uniform(since, until), 1)

    taken = [
        Do(at(2, 200), who, What.SNAPSHOT_THROUGH, (OTHER,)) for _ in range(rng.choice((1, 2, 3)))
    ]
    swept = [Do(at(20, 300), who, What.SWEEP_THROUGH, (OTHER,)) for _ in range(rng.choice((0, 1)))]
    plans, does = list(script.plans), [*taken, *swept]
    own = [plan for plan in plans if plan.of == who]
    if own and rng.random() < 0.6:
        plans.append(replace(rng.choice(own), through=OTHER))
        does.append(Do(at(5, 200), who, What.START, (len(plans) - 1,)))
    if rng.random() < 0.5:
        lasts_s = rng.choice((60, 200, 600))
        does.append(Do(at(2, 150), who, What.ENTRY_ADDED, (lasts_s,)))
    return replace(_and(script, does), plans=tuple(plans))


def _with_channels(script: Script, rng: Random) -> Script:
    if rng.random() >= CHANNELS:
        return script
    names, does = script.installations, list[Do]()
    for _ in range(rng.choice((1, 1, 2))):
        at, who = round(rng.uniform(2, 200), 1), rng.choice(names)
        how = (rng.choice(FALTERING).value, rng.choice((30, 200, 600)))
        does.append(Do(at, who, What.CHANNEL_FALTERS, how))
        for _ in range(rng.choice((0, 1, 2))):  # what sends what others have left
            does.append(Do(round(at + rng.uniform(20, 250), 1), who, What.SWEEP))
    return replace(_and(script, does), channels=names)


def _and(script: Script, does: Sequence[Do]) -> Script:
    return replace(script, does=tuple(sorted((*script.does, *does), key=lambda each: each.at_s)))
