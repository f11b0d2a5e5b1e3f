"""Scripts from a seed: mostly what a client may well do, now and then what brokers refuse."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from rehome.domain.kafka import TopicPartition
from tests.world.kafka.against_brokers.sides import ModelSide
from tests.world.kafka.against_brokers.steps import Step, do, settles_in
from world.kafka.world_state import WorldState

BROKERS = (1, 2, 3, 4)
LISTS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
SLOW = "1"
"""Bytes per second: one fetch, of up to 1 MB, passes every 11 seconds."""
MESSAGES, MESSAGE_BYTES = 400, 100_000
"""40 MB: more than pass in a script's time."""


class Writer:
    """Writes a script step by step, by what the model has made of the steps before.

    :param deadly: whether brokers are killed, stopped and started.
    """

    def __init__(self, seed: int, model: ModelSide, topics: Sequence[str], deadly: bool) -> None:
        self._rng = Random(seed)
        self._model = model
        self._topics = topics
        self._dead: list[int] = []
        self._kinds = [
            *(["alter"] * 6),
            *(["cancel"] * 2),
            *(["lists"] * 4),
            *(["rate"] * 3),
            *(["topic_config"] * 2),
            *("new_topic", "delete_topic", "more_partitions", "elect", "move_log_dir"),
            *("fill", "delete_records", "describe", "broker_config", "cordon", "wrong"),
        ]
        if deadly:
            self._kinds += ["die"] * 3 + ["start"] * 3

    def script(self, steps: int) -> list[Step]:
        """A script of this many steps, that begins with topics that hold something."""
        made = []
        for name in self._topics[:2]:
            rows = [self._replicas(), self._replicas(2)]
            rows[1] = self._replicas(len(rows[0]))
            made += [Step("new_topic", (name, rows, {}, False)), self._fill(name, 0)]
        if self._rng.random() < 0.7:
            made += self._crawl()
        for step in made:
            self._do(step)
        while len(made) < steps:
            step = self._next()
            if step is not None:
                self._do(step)
                made.append(step)
        for broker in list(self._dead):
            made.append(Step("start", (broker, False)))
        return made

    def _do(self, step: Step) -> None:
        do(self._model, step)
        self._model.settle(settles_in(step))

    def _next(self) -> Step | None:
        kind = self._rng.choice(self._kinds)
        made: Step | None = getattr(self, f"_{kind}")()
        return made

    # -- pieces -------------------------------------------------------------------------------

    @property
    def _world(self) -> WorldState:
        return self._model.model.world

    def _replicas(self, count: int | None = None) -> list[int]:
        return self._rng.sample(BROKERS, count or self._rng.choice((1, 2, 3)))

    def _partition(self) -> TopicPartition | None:
        there = [
            TopicPartition(name, number)
            for name in self._topics
            for number in self._world.image.of_topic(name)
        ]
        return self._rng.choice(there) if there else None

    def _name(self) -> str:
        return self._rng.choice(self._topics)

    def _led(self, part: TopicPartition) -> bool:
        found = self._world.partition(part)
        return found is not None and found[1].leader is not None and len(found[1].isr) > 0

    def _crawl(self) -> list[Step]:
        """From now on copies of the first topic do not end.

        Each of its partitions has something to bring: when an empty one joins the ISR, while others
        use a quota up, depends on the brokers' threads.
        """
        listed = ("topic", self._topics[0], LISTS[1], "SET", "*")
        rate = ("broker", "", RATES[1], "SET", SLOW)
        return [self._fill(self._topics[0], 1), Step("configs", ([listed, rate], False))]

    def _moving(self) -> TopicPartition | None:
        """Rather one that is in flight."""
        moving = [
            TopicPartition(self._world.image.names[key.topic_id], key.number)
            for key, part in self._world.image.partitions.items()
            if part.reassigning
        ]
        return self._rng.choice(moving) if moving else self._partition()

    # -- steps --------------------------------------------------------------------------------

    def _alter(self) -> Step | None:
        part = self._moving() if self._rng.random() < 0.4 else self._partition()
        if part is None:
            return None
        targets = [(part.topic, part.partition, self._replicas())]
        other = self._partition()
        if other is not None and other != part and self._rng.random() < 0.3:
            targets.append((other.topic, other.partition, self._replicas()))
        return Step("alter", (targets, self._rng.random() < 0.8))

    def _cancel(self) -> Step | None:
        part = self._moving()
        return part and Step("alter", ([(part.topic, part.partition, None)], False))

    def _lists(self) -> Step | None:
        part = self._partition()
        if part is None:
            return None
        operation = self._rng.choice(("SET", "APPEND", "APPEND", "SUBTRACT", "DELETE"))
        items = [f"{self._rng.randrange(3)}:{self._rng.choice(BROKERS)}" for _ in range(2)]
        value: str | None = ",".join(items)
        if operation == "SET" and self._rng.random() < 0.3:
            value = self._rng.choice(("*", "", "junk", "0:1, 1:2", "0:1,0:1"))
        if operation == "DELETE":
            value = None
        change = ("topic", part.topic, self._rng.choice(LISTS), operation, value)
        return Step("configs", ([change], self._rng.random() < 0.1))

    def _rate(self) -> Step:
        broker = self._rng.choice((*BROKERS, ""))
        if broker in self._dead:
            broker = ""
        operation = self._rng.choice(("SET", "SET", "DELETE"))
        value = SLOW if operation == "SET" else None
        change = ("broker", str(broker), self._rng.choice(RATES), operation, value)
        return Step("configs", ([change], self._rng.random() < 0.1))

    def _topic_config(self) -> Step:
        key, value = self._rng.choice(
            (
                ("min.insync.replicas", "2"),
                ("min.insync.replicas", "1"),
                ("min.insync.replicas", "0"),
                ("retention.ms", "86400000"),
                ("retention.ms", "-5"),
                ("cleanup.policy", "compact"),
                ("cleanup.policy", "delete"),
                ("unclean.leader.election.enable", "true"),
                ("unclean.leader.election.enable", "false"),
                ("no.such.config", "1"),
            )
        )
        operation = self._rng.choice(("SET", "SET", "SET", "DELETE", "APPEND"))
        change = ("topic", self._name(), key, operation, None if operation == "DELETE" else value)
        return Step("configs", ([change], False))

    def _broker_config(self) -> Step:
        key, value = self._rng.choice(
            (
                (RATES[0], "-5"),
                (RATES[1], "abc"),
                ("broker.rack", "x"),
                ("log.retention.ms", "3600000"),
                ("replica.alter.log.dirs.io.max.bytes.per.second", "1000000"),
                ("no.such.config", "1"),
                (RATES[0], str(2**63)),
            )
        )
        alive = [broker for broker in BROKERS if broker not in self._dead]
        name = str(self._rng.choice((*alive, "")))
        operation = self._rng.choice(("SET", "SET", "DELETE", "APPEND"))
        change = ("broker", name, key, operation, None if operation == "DELETE" else value)
        return Step("configs", ([change], False))

    def _new_topic(self) -> Step:
        rows = [self._replicas(2) for _ in range(self._rng.choice((1, 2)))]
        config = self._rng.choice(({}, {}, {LISTS[0]: "*"}, {"retention.ms": "x"}))
        return Step("new_topic", (self._name(), rows, config, self._rng.random() < 0.2))

    def _delete_topic(self) -> Step:
        return Step("delete_topic", (self._name(),))

    def _more_partitions(self) -> Step:
        name = self._name()
        parts = self._world.image.of_topic(name)
        total = len(parts) + self._rng.choice((-1, 0, 1, 1))
        if total < 1:
            total = 1
        more = total - len(parts)
        factor = len(parts[0].replicas) if parts else 2
        rows = [self._replicas(min(factor, 4)) for _ in range(more)] if more > 0 else None
        return Step("more_partitions", (name, total, rows, self._rng.random() < 0.2))

    def _elect(self) -> Step | None:
        part = self._partition()
        return part and Step("elect", ([(part.topic, part.partition), (part.topic, 77)],))

    def _move_log_dir(self) -> Step | None:
        part = self._partition()
        found = part and self._world.partition(part)
        if part is None or not found:
            return None
        broker = self._rng.choice(found[1].replicas)
        return Step("move_log_dir", (*part, broker, self._rng.choice((0, 1))))

    def _fill(self, topic: str = "", number: int = 0) -> Any:
        if topic:
            return Step("fill", (topic, number, MESSAGES, MESSAGE_BYTES))
        part = self._partition()
        if part is None or not self._led(part):
            return None
        found = self._world.partition(part)
        if found is None or len(found[1].isr) < 2:  # min ISR may be 2
            return None
        return Step("fill", (*part, 5, MESSAGE_BYTES))

    def _delete_records(self) -> Step | None:
        part = self._partition()
        if part is None or not self._led(part):
            return None
        found = self._world.partition(part)
        end = self._world.replica(part, found[1].leader or 0) if found else None
        if end is None or end.log.end < 2:
            return None
        return Step("delete_records", (*part, self._rng.randrange(1, int(end.log.end))))

    def _describe(self) -> Step:
        keys = self._rng.sample((*LISTS, *RATES, "segment.bytes", "num.io.threads"), 3)
        kind = self._rng.choice(("topic", "broker"))
        name = self._name() if kind == "topic" else ""
        return Step("describe", (kind, name, keys))

    def _cordon(self) -> Step:
        alive = [broker for broker in BROKERS if broker not in self._dead]
        numbers = self._rng.choice(([], [0], [1], [0, 1]))
        return Step("cordon", (self._rng.choice(alive), numbers))

    def _wrong(self) -> Step:
        name = self._name()
        target: Any = self._rng.choice(([], [9, 1], [1, 1], [-1], [2, 9, 8]))
        return self._rng.choice(
            (
                Step("alter", ([(name, 0, target)], True)),
                Step("alter", ([(name, 99, [1])], True)),
                Step("alter", ([("no-such-topic", 0, [1])], True)),
                Step("new_topic", ("bad/name", [[1]], {}, False)),
                Step("new_topic", (name, [[1, 2], [3]], {}, False)),
                Step("describe", ("topic", "no-such-topic", [LISTS[0]])),
                Step("delete_topic", ("no-such-topic",)),
            )
        )

    def _die(self) -> Step | None:
        if self._dead:
            return None
        broker = self._rng.choice(BROKERS)
        self._dead.append(broker)
        return Step(self._rng.choice(("kill", "stop")), (broker,))

    def _start(self) -> Step | None:
        if not self._dead:
            return None
        return Step("start", (self._dead.pop(), self._rng.random() < 0.3))
