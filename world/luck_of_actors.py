"""What seeds draw of the actors that came later, each by a generator of its own: what else a seed
draws stays as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from rehome.fleet.clusters import DEFAULT_CONNECTION
from world.rehome.channel import Answers
from world.rehome.two_entries import OTHER
from world.script import Do, Script, Topic, Watch, What

CHANNELS = 0.05
"""Of seeds: in these the alerts of each installation go to a webhook, which falters."""
UNANSWERED = 0.03
"""Of seeds: in these an installation has windows in which nobody answers, or late."""
ONE_RUN = 0.05
"""Of seeds: in these one run of each DAG is active at a time, and more are triggered."""
TWO_CONNECTIONS = 0.05
"""Of seeds: in these an installation has another connection that leads to the cluster."""
FOREIGN = 0.05
"""Of seeds: in these another client moves with a throttle of its own, and people list it, follow
it, and have it cancelled, with its throttles, or adopted.
"""
FALTERING = tuple(each for each in Answers if each is not Answers.AT_ONCE)


def with_actors(script: Script, seed: int) -> Script:
    """A script of a seed, and what its other actors do."""
    script = _with_two_connections(script, Random(f"connections {seed}"))
    script = _without_answers(script, Random(f"unanswered {seed}"))
    script = _one_run(script, Random(f"one run {seed}"))
    script = _with_foreign(script, Random(f"others {seed}"))
    return _with_channels(script, Random(f"channel {seed}"))


def _without_answers(script: Script, rng: Random) -> Script:
    """Windows of one cluster, in each of which people are asked; a person answers once, or nobody
    does before the world becomes quiet.
    """
    if rng.random() >= UNANSWERED or script.watches:
        return script
    who = rng.choice((*script.installations, "W"))
    lasts_s = rng.choice((120, 180))
    watch = Watch(
        *(who, rng.choice(("heal", "propose")), 120, 150, (120, lasts_s)),
        rate=rng.choice((1_000_000, 5_000_000)),
        own_plan=rng.random() < 0.8,
        later=((360, lasts_s), (600, lasts_s)),
        approval=True,
    )
    does = []
    if rng.random() < 0.4:
        answered = rng.choice(("approve", "reject"))
        does.append(Do(round(rng.uniform(130, 800), 1), who, What.ANSWER, (answered,)))
    if rng.random() < 0.4:
        broker = rng.randint(1, script.brokers)
        does.append(Do(round(rng.uniform(60, 400), 1), "fate", What.BROKER_LOST, (broker,)))
    quiet_s = max(script.quiet_s, 900.0)
    return replace(_and(script, does), watches=(watch,), quiet_s=quiet_s)


def _one_run(script: Script, rng: Random) -> Script:
    own = [number for number, plan in enumerate(script.plans)]
    if rng.random() >= ONE_RUN or not own:
        return script
    does = []
    for _ in range(rng.choice((1, 2))):
        number = rng.choice(own)
        who, at = script.plans[number].of, round(rng.uniform(5, 150), 1)
        does.append(Do(at, who, What.START, (number,)))
    return replace(_and(script, does), one_run=script.installations)


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


def _with_foreign(script: Script, rng: Random) -> Script:
    if rng.random() >= FOREIGN:
        return script
    who, at = rng.choice(script.installations), round(rng.uniform(15, 200), 1)
    topic = rng.choice(script.topics)
    named = rng.choice((topic.name, topic.name, ""))

    def later(least: float, most: float) -> float:
        return round(at + rng.uniform(least, most), 1)

    does = [_begins(rng, script, topic, later(-10, 5))]
    if rng.random() < 0.3:
        does.append(_begins(rng, script, rng.choice(script.topics), later(-8, 40)))
    if rng.random() < 0.6:
        does.append(Do(later(-15, -10), who, What.SNAPSHOT_THROUGH, (DEFAULT_CONNECTION,)))
    for what in (What.LIST_FOREIGN, What.FOLLOW_FOREIGN):
        if rng.random() < 0.5:
            does.append(Do(later(0, 40), who, what, (rng.choice((topic.name, "")),)))
    if rng.random() < 0.5:
        does.append(Do(at, who, What.CANCEL_FOREIGN, (named, rng.random() < 0.7)))
    elif rng.random() < 0.7:
        does.append(Do(at, who, What.ADOPT_FOREIGN, (named, rng.choice((500_000, 2_000_000)))))
    answer = rng.choice(("approve", "approve", "approve", "reject"))
    does.append(Do(later(6, 40), who, What.ANSWER, (answer,)))
    return _and(script, does)


def _begins(rng: Random, script: Script, topic: Topic, at: float) -> Do:
    """Another client begins a reassignment, with a throttle or without."""
    number = rng.randrange(len(topic.partitions))
    count = min(script.brokers, len(topic.partitions[number]))
    target = tuple(rng.sample(range(1, script.brokers + 1), count))
    if rng.random() < 0.3:
        return Do(max(1.0, at), "admin", What.REASSIGN, (topic.name, number, target))
    args = (topic.name, number, target, rng.choice((300_000, 1_000_000)))
    return Do(max(1.0, at), "admin", What.TOOL_EXECUTE, args)


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
