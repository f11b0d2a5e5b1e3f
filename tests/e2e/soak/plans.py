"""Random plans: every action in turn, with legal parameters that a seed draws."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from rehome.domain.actions import Action
from tests.e2e.soak.ground import TOPICS, Ground

T = TypeVar("T")
RATES = (500_000, 5_000_000)
"""Bytes per second: copies of a partition take seconds to a minute."""


class Deck(Generic[T]):
    """All of some values in random order, again and again: none is drawn much more often."""

    def __init__(self, values: Sequence[T], chance: random.Random) -> None:
        self._values = values
        self._chance = chance
        self._left: list[T] = []

    def draw(self) -> T:
        """The next one."""
        if not self._left:
            self._left = self._chance.sample(self._values, len(self._values))
        return self._left.pop()

    def put_back(self, value: T) -> None:
        """It came to nothing: it is drawn once more before the others come again."""
        self._left.insert(self._chance.randint(0, len(self._left)), value)


class Plans:
    """Draws what runs of `reassign_partitions` are asked for, as the cluster is then."""

    def __init__(self, ground: Ground, chance: random.Random) -> None:
        self._ground = ground
        self._chance = chance
        self._actions = Deck(list(Action), chance)
        self._draw: Mapping[Action, Callable[[], dict[str, Any]]] = {
            Action.REBALANCE: self._rebalance,
            Action.DRAIN: self._drain,
            Action.REPLACE: self._replace,
            Action.EXPAND: lambda: {"brokers": [self._broker()]},
            Action.SET_REPLICATION_FACTOR: self._factor,
            Action.REPAIR_RACKS: dict,
            Action.FIX_OFFLINE_REPLICAS: dict,
            Action.BALANCE_LEADERS: dict,
            Action.DEMOTE: lambda: {"brokers": [self._broker()]},
            Action.ELECT_PREFERRED: dict,
            Action.REASSIGN: self._reassign,
            Action.MOVE_LOG_DIRS: dict,
            Action.EVACUATE_LOG_DIRS: self._evacuate,
            Action.ROLLBACK: self._rollback,
        }

    def draw(self) -> dict[str, Any]:
        """The parameters of a run."""
        action = self._actions.draw()
        asked: dict[str, Any] = {
            "action": action.value,
            "throttle": self._chance.randint(*RATES),
            "max_moves_per_broker": self._chance.randint(1, 4),
            **self._draw[action](),
        }
        if self._chance.random() < 0.05:
            asked["dry_run"] = True
        elif self._chance.random() < 0.15:
            asked["approval"] = True
        return asked

    def put_back(self, asked: Mapping[str, Any]) -> None:
        """Its action is drawn once more: another plan had the cluster."""
        self._actions.put_back(Action(asked["action"]))

    def _broker(self) -> int:
        return self._chance.choice(self._ground.cluster.broker_ids)

    def _topics(self) -> list[str]:
        return sorted(self._chance.sample(sorted(TOPICS), self._chance.randint(1, len(TOPICS))))

    def _rebalance(self) -> dict[str, Any]:
        asked: dict[str, Any] = {"topics": self._topics(), "seed": self._chance.randint(0, 99)}
        if self._chance.random() < 0.3:
            asked["tolerances"] = {"leaders": 0.3}
        if self._chance.random() < 0.3:
            asked["budget_moves"] = self._chance.randint(1, 5)
        return asked

    def _drain(self) -> dict[str, Any]:
        asked: dict[str, Any] = {"brokers": [self._broker()]}
        if self._chance.random() < 0.4:
            asked["topics"] = self._topics()
        if self._chance.random() < 0.4:
            asked["cordon"] = "undo"
        return asked

    def _replace(self) -> dict[str, Any]:
        """Of partitions that the one broker has and the other has not: else it is refused."""
        away, to = self._chance.sample(self._ground.cluster.broker_ids, 2)
        topics = [
            f"{topic}:{number}"
            for topic in TOPICS
            for number, seen in self._ground.outside.partitions()[topic].items()
            if away in seen.replicas and to not in seen.replicas
        ]
        return {"replacements": {str(away): to}, "topics": topics}

    def _factor(self) -> dict[str, Any]:
        topic, factor = self._chance.choice(sorted(TOPICS)), self._chance.choice((2, 3))
        self._ground.factors[topic].add(factor)
        return {"topics": [topic], "replication_factor": factor}

    def _reassign(self) -> dict[str, Any]:
        seen = self._ground.outside.partitions()
        places = [(topic, number) for topic in TOPICS for number in seen[topic]]
        rows = []
        for topic, number in self._chance.sample(places, self._chance.randint(1, 4)):
            replicas = list(seen[topic][number].replicas)
            free = sorted({*self._ground.cluster.broker_ids} - {*replicas})
            replicas[self._chance.randrange(len(replicas))] = self._chance.choice(free)
            rows.append({"topic": topic, "partition": number, "replicas": replicas})
        return {"reassignment": {"version": 1, "partitions": rows}}

    def _evacuate(self) -> dict[str, Any]:
        broker = self._broker()
        path = self._chance.choice(self._ground.cluster.log_dirs(broker))
        return {"log_dirs": [f"{broker}:{path}"]}

    def _rollback(self) -> dict[str, Any]:
        """The last one that has moved something; of none, one that is not there."""
        ended = [
            plan.plan_id
            for plan in self._ground.ledger.plans()
            if plan.started_at and plan.ended_at and plan.moves and plan.action != "rollback"
        ]
        return {"plan_id": ended[-1] if ended else "20300131T040000Z-drain-0123456789"}
