"""What each part of the ETA brings, on modelled clusters."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import mean
from typing import Any

from benchmarks.execution.foretelling import ALL_PARTS, EtaParts, Foretelling
from benchmarks.execution.simulate import bound_s, random_plan
from benchmarks.simulation.cluster import ModelledCluster
from benchmarks.simulation.quota import ThrottledCopies
from benchmarks.simulation.simulator import Simulation
from rehome.domain.kafka import BrokerId
from rehome.domain.plan.plan import Plan
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import PlanState
from rehome.execution.admission.fair_share import Copies
from rehome.execution.progress.eta import eta_errors

START = datetime(2030, 1, 1, tzinfo=UTC)
WITHOUT: Mapping[str, EtaParts] = {
    "rate_regression per broker": EtaParts(per_broker=False),
    "reaction": EtaParts(reaction=False),
    "projection": EtaParts(projection=False),
    "all three": EtaParts(per_broker=False, reaction=False, projection=False),
}
SEEDS = range(3)
POLLS = 6
"""Polls of each run at which the remaining time is predicted."""


@dataclass(frozen=True)
class Course:
    """A kind of execution.

    :param moves: of each broker, on average; ``sigma``: of the log-normal sizes.
    :param least_s: that the busiest broker takes.
    :param at_once: the most partitions in flight.
    :param wake_s: until the worker acts; None = at once.
    :param slow: part of the throttle that one broker delivers; 1 = all.
    :param quotas: whether brokers keep throttles as Kafka's do, and the governor runs.
    """

    name: str
    brokers: int = 6
    moves: int = 20
    sigma: float = 0.7
    least_s: float = 600.0
    at_once: int = 200
    wake_s: float | None = 10.0
    slow: float = 1.0
    quotas: bool = False


COURSES = (
    Course("brokers that deliver what is expected"),
    Course("few moves for each broker", moves=4, sigma=0.8),
    Course("brokers that keep quotas, governed", quotas=True, wake_s=3.0, least_s=300),
    Course("one slow broker", slow=0.5),
    Course("few partitions in flight", brokers=24, moves=16, sigma=0.5, at_once=10),
    Course("few partitions in flight, a quick worker", 24, 16, 0.5, 600, 10, wake_s=2.0),
)


class OneSlow(Copies):
    """Broker 2 delivers only a part of the throttle."""

    part = 1.0

    def set_rate(self, rate_bytes_per_s: float, live: Collection[BrokerId]) -> None:
        """Set the rate of all, and the part of one."""
        super().set_rate(rate_bytes_per_s, live)
        self.set_rates(lambda slot: rate_bytes_per_s * (self.part if slot.broker == 2 else 1.0))


def rows() -> Iterator[dict[str, Any]]:
    """Each course with everything, and without each part."""
    for course in COURSES:
        whole, whole_cpu_s = _errors(course, ALL_PARTS)
        for part, parts in WITHOUT.items():
            error, cpu_s = _errors(course, parts)
            yield {
                "part": part,
                "on": course.name,
                "runs": len(SEEDS),
                "eta_error_with": round(whole, 4),
                "eta_error_without": round(error, 4),
                "cpu_s_with": round(whole_cpu_s, 2),
                "cpu_s_without": round(cpu_s, 2),
            }


def _errors(course: Course, parts: EtaParts) -> tuple[float, float]:
    """The mean of the worst error of each tenth of the bytes but the first, of the whole time; and
    processor seconds.
    """
    began = time.process_time()
    errors = [
        abs(found.worst)
        for seed in SEEDS
        for found in eta_errors(_samples(course, seed, parts))
        if found.tenth >= 1
    ]
    return mean(errors), (time.process_time() - began) / len(SEEDS)


def _samples(course: Course, seed: int, parts: EtaParts) -> Any:
    plan: Plan = random_plan(course.brokers, course.brokers * course.moves, course.sigma, seed)
    brokers = range(course.brokers)
    copies: Copies | ThrottledCopies
    if course.quotas:
        copies = ThrottledCopies(brokers)
    else:
        copies = OneSlow(brokers)
        copies.part = course.slow
    policy = replace(
        Policy(round(bound_s(plan, 1) / course.least_s)),
        max_partitions_in_flight=course.at_once,
    )
    foretelling = Foretelling(POLLS, parts)
    simulation = Simulation(
        plan,
        ModelledCluster(brokers, plan.moves, copies=copies),
        policy,
        START,
        decide_by=foretelling,
        governed=course.quotas,
        wake_s=course.wake_s,
    )
    if simulation.run() is not PlanState.DONE:
        raise RuntimeError(f"The plan of {course.name}, seed {seed}, ended {simulation.state}.")
    return foretelling.samples
