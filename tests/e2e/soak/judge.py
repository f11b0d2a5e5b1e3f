"""What must not be at the end of a soak, judged by facts that were read outside of Rehome. Pure."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

MOST_GROWTH = 0.05
"""Part by which memory may grow over the second half of an hour."""
MOST_DATA = 1.5
"""Times what the documents state for as many plans."""
ENDED = frozenset({"done", "cancelled", "rolled_back", "failed", "planned"})
"""States of plans of which nothing is going on; one that was only planned has never begun."""
TAKEN_BACK = frozenset({"cleared", "kept"})

REFUSALS = frozenset(
    {"request", "policy", "busy", "stale", "not_approved", "plan_state", "planner", "dry_run"}
    | {"gate", "rejected", "no_answer", "not_healed", "snapshot", "not_asked"}
)
"""Kinds of causes by which a run is refused before it changes anything."""
OF_FAULTS = frozenset(
    {"cluster", "cluster_away", "plan_failed", "not_verified", "not_empty", "not_led", "owed"}
    | {"cancelled", "trigger", "timeout", "ended_otherwise", "not_done", "not_judged", "spark"}
)
"""Kinds that a fault may bring about, and nothing else."""
OF_KILLS = frozenset({"silent"})
"""A process that is killed says nothing."""


class Wrong(enum.StrEnum):
    """What the judge finds."""

    LOST = "acknowledged messages lost"
    SETTING_LEFT = "a setting left"
    SETTING_CHANGED = "a setting changed or gone"
    REPLICAS = "replicas not as intended"
    IN_FLIGHT = "a reassignment in flight"
    STUCK = "a plan that is not at its end"
    OWED = "something owed in the ledger"
    HELD = "a lease that is held"
    RUN = "a run that failed unexpectedly"
    RUN_OPEN = "a run that has not ended"
    MEMORY = "memory that grows"
    NOT_MEASURED = "memory that could not be measured"
    DATA = "data that grow by more than the documents state"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong, and of what."""

    wrong: Wrong
    about: str


@dataclass(frozen=True, slots=True)
class SeenPartition:
    """A partition as a broker's metadata show it; ids of brokers."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int


@dataclass(frozen=True, slots=True)
class RunEnd:
    """A run of any DAG.

    :param state: Airflow's.
    :param kind: of the cause that the ledger has for it; None = it has none.
    :param began: whether a plan of it has been started.
    :param faults: those in its time; ``killed``: whether one killed processes that it needs.
    """

    dag_id: str
    run_id: str
    state: str
    kind: str | None = None
    began: bool = False
    faults: tuple[str, ...] = ()
    killed: bool = False

    @property
    def refused(self) -> bool:
        """Whether it was refused for a reason that it names."""
        return self.state == "failed" and self.kind in REFUSALS


@dataclass(frozen=True, slots=True)
class Memory:
    """RSS of a component with its descendants, bytes, one number for each sample of a span.

    :param restarted: whether the component was started anew in between.
    """

    component: str
    first: tuple[int, ...]
    last: tuple[int, ...]
    restarted: bool = False

    @property
    def growth(self) -> float:
        """Of the median: 0.05 is 5 %."""
        return median(self.last) / median(self.first) - 1

    @property
    def grows(self) -> bool:
        """Whether that is more than may be."""
        return median(self.last) > median(self.first) * (1 + MOST_GROWTH)


@dataclass(frozen=True, slots=True)
class Growth:
    """Bytes by which data have grown, and by how many the documents state that they do."""

    data: str
    grown: int
    stated: int


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that is judged.

    :param lost: acknowledged messages that a consumer from the beginning did not read; ``unread``:
        in words, by partition.
    :param settings_before, settings: dynamic configurations, by what and key, as Kafka's own tool
        shows them.
    :param owner: what another client last wanted of those that it has set; None = deleted.
    :param replicas: by topic and partition; ``factors``: how many a topic's partitions may have.
    :param in_flight: what Kafka's own tool lists.
    :param plans: state by plan; ``owed``: settings that the ledger does not know to be taken back;
        ``held``: owners of leases.
    """

    lost: int
    unread: tuple[str, ...]
    settings_before: Mapping[str, str]
    settings: Mapping[str, str]
    owner: Mapping[str, str | None]
    replicas: Mapping[str, Mapping[int, SeenPartition]]
    factors: Mapping[str, Collection[int]]
    brokers: frozenset[int]
    in_flight: tuple[str, ...] = ()
    plans: Mapping[str, str] = field(default_factory=dict)
    owed: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    runs: tuple[RunEnd, ...] = ()
    memory: tuple[Memory, ...] = ()
    growth: tuple[Growth, ...] = ()


def judged(facts: Facts) -> list[Finding]:
    """Everything that is wrong."""
    found = [Finding(Wrong.LOST, text) for text in facts.unread]
    if facts.lost and not found:
        found.append(Finding(Wrong.LOST, f"{facts.lost} messages"))
    found += _settings(facts)
    found += _replicas(facts)
    found += [Finding(Wrong.IN_FLIGHT, each) for each in facts.in_flight]
    found += [
        Finding(Wrong.STUCK, f"{plan}: {state}")
        for plan, state in facts.plans.items()
        if state not in ENDED
    ]
    found += [Finding(Wrong.OWED, each) for each in facts.owed]
    found += [Finding(Wrong.HELD, each) for each in facts.held]
    found += _runs(facts.runs)
    return [*found, *_memory(facts.memory), *_data(facts.growth)]


def _settings(facts: Facts) -> Iterator[Finding]:
    wanted: dict[str, str | None] = {**facts.settings_before, **facts.owner}
    for name in sorted({*wanted, *facts.settings}):
        has, ought = facts.settings.get(name), wanted.get(name)
        if has == ought:
            continue
        wrong = Wrong.SETTING_LEFT if ought is None else Wrong.SETTING_CHANGED
        yield Finding(wrong, f"{name}: {has}, and not {ought}")


def _replicas(facts: Facts) -> Iterator[Finding]:
    for topic, factors in facts.factors.items():
        partitions = facts.replicas.get(topic, {})
        if not partitions:
            yield Finding(Wrong.REPLICAS, f"{topic} is not there")
        for number, seen in partitions.items():
            problem = _problem(seen, factors, facts.brokers)
            if problem:
                yield Finding(Wrong.REPLICAS, f"{topic}-{number}: {problem}")


def _problem(seen: SeenPartition, factors: Collection[int], brokers: frozenset[int]) -> str:
    if len(set(seen.replicas)) != len(seen.replicas) or not set(seen.replicas) <= brokers:
        return f"replicas {seen.replicas}"
    if len(seen.replicas) not in factors:
        return f"{len(seen.replicas)} replicas, and not {sorted(factors)}"
    if set(seen.isr) != set(seen.replicas):
        return f"in sync are {seen.isr} of {seen.replicas}"
    return "" if seen.leader in seen.replicas else f"leader {seen.leader}"


def _runs(runs: Sequence[RunEnd]) -> Iterator[Finding]:
    for run in runs:
        name = f"{run.dag_id} {run.run_id}"
        if run.state not in ("success", "failed"):
            yield Finding(Wrong.RUN_OPEN, f"{name}: {run.state}")
        elif run.state == "failed" and not _expected(run):
            faults = ", ".join(run.faults) or "no fault"
            yield Finding(Wrong.RUN, f"{name}: {run.kind or 'no reason'}, with {faults}")


def _expected(run: RunEnd) -> bool:
    if run.refused:
        return True
    return bool(run.kind in OF_FAULTS and run.faults) or (run.kind in OF_KILLS and run.killed)


def _memory(memory: Sequence[Memory]) -> Iterator[Finding]:
    for each in memory:
        if each.restarted or not each.first or not each.last:
            yield Finding(Wrong.NOT_MEASURED, each.component)
        elif each.grows:
            yield Finding(Wrong.MEMORY, f"{each.component}: {each.growth:+.1%}")


def _data(growth: Sequence[Growth]) -> Iterator[Finding]:
    for each in growth:
        if each.grown > each.stated * MOST_DATA:
            about = f"{each.data}: {each.grown:,} bytes, and {each.stated:,} are stated"
            yield Finding(Wrong.DATA, about)
