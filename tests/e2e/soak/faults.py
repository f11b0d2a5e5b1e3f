"""Random faults, each with its end: processes, brokers, other clients, and people."""

from __future__ import annotations

import enum
import itertools
import os
import random
import signal
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import httpx
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.cimpl import NewTopic

from local.kafka.cluster import CONTROLLER_ID
from local.process.waiting import wait_until
from tests.e2e.runs import CONTROL, DAG
from tests.e2e.soak.ground import TOPICS, Ground
from tests.e2e.soak.plans import Deck

RATE, LIST = "follower.replication.throttled.rate", "leader.replication.throttled.replicas"
BACK_S = 600.0


class Fault(enum.StrEnum):
    """What happens while a plan is carried out."""

    BROKER_KILLED = "broker killed"
    BROKER_STOPPED = "broker stopped, answers nothing"
    BROKER_SHUT_DOWN = "broker shut down"
    CONTROLLER_KILLED = "controller killed"
    TASK_KILLED = "process of a task killed"
    TRIGGERER_KILLED = "triggerer killed"
    SCHEDULER_KILLED = "scheduler killed with its tasks"
    API_SERVER_KILLED = "API server killed"
    FOREIGN_THROTTLES = "throttles of another client"
    TOPIC_CREATED = "topic created"
    TOPIC_DELETED = "topic deleted"
    PLAN_CANCELLED = "plan cancelled"
    PLAN_PAUSED = "plan paused and resumed"
    THROTTLE_CHANGED = "throttle changed"
    RUN_MARKED_FAILED = "run marked failed"


OF_AIRFLOW = frozenset({Fault.TRIGGERER_KILLED, Fault.SCHEDULER_KILLED, Fault.API_SERVER_KILLED})
"""They start components anew: memory is compared over a time without them."""
KILLS = frozenset({Fault.TASK_KILLED, Fault.SCHEDULER_KILLED, Fault.RUN_MARKED_FAILED})
"""They end processes of tasks, which then say nothing."""


@dataclass(frozen=True)
class Act:
    """How a fault is caused and ended.

    :param strike: False = there was nothing that it could strike.
    :param fix: None = it is over at once.
    """

    strike: Callable[[str], bool]
    fix: Callable[[], None] | None = None


class Faults:
    """Draws faults, strikes a run with them, and ends them."""

    def __init__(self, ground: Ground, chance: random.Random) -> None:
        self._ground = ground
        self._chance = chance
        self._deck = Deck(list(Fault), chance)
        self._serial = itertools.count()
        self._broker = 0
        self._others: list[str] = []

        def back() -> None:
            self._back([self._broker])

        self._acts: Mapping[Fault, Act] = {
            Fault.BROKER_KILLED: Act(self._on_broker(ground.cluster.kill), back),
            Fault.BROKER_STOPPED: Act(self._on_broker(ground.cluster.pause), back),
            Fault.BROKER_SHUT_DOWN: Act(self._on_broker(ground.cluster.shutdown), back),
            Fault.CONTROLLER_KILLED: Act(self._stop_controller, ground.cluster.start_controller),
            Fault.TASK_KILLED: Act(self._kill_task),
            Fault.TRIGGERER_KILLED: Act(self._on_component("triggerer"), self._revive),
            Fault.SCHEDULER_KILLED: Act(self._on_component("scheduler"), self._revive),
            Fault.API_SERVER_KILLED: Act(self._on_component("api-server", revive=True)),
            Fault.FOREIGN_THROTTLES: Act(self._set_foreign, self._delete_foreign),
            Fault.TOPIC_CREATED: Act(self._create_topic),
            Fault.TOPIC_DELETED: Act(self._delete_topic),
            Fault.PLAN_CANCELLED: Act(lambda run: self._ask(run, "cancel")),
            Fault.PLAN_PAUSED: Act(lambda run: self._ask(run, "pause")),
            Fault.THROTTLE_CHANGED: Act(self._change_throttle),
            Fault.RUN_MARKED_FAILED: Act(self._mark_failed),
        }

    def draw(self, *, airflow: bool) -> Fault:
        """The next one.

        :param airflow: whether components of Airflow may be ended now.
        """
        while True:
            fault = self._deck.draw()
            if airflow or fault not in OF_AIRFLOW:
                return fault

    def strike(self, fault: Fault, run_id: str) -> bool:
        """Cause it; False = there was nothing to strike."""
        return self._acts[fault].strike(run_id)

    def fix(self, fault: Fault) -> None:
        """End it."""
        act = self._acts[fault]
        if act.fix is not None:
            act.fix()

    def fix_all(self) -> None:
        """Everything runs again that may have been ended, and what others have set is deleted."""
        cluster, airflow = self._ground.cluster, self._ground.airflow
        if CONTROLLER_ID not in cluster.pids:
            cluster.start_controller()
        self._back(cluster.broker_ids)
        airflow.revive()
        wait_until(lambda: airflow.api.serves(airflow.dags), "Airflow to be back", BACK_S, 2.0)
        if self._others:
            self._delete_foreign()

    def _on_broker(self, harm: Callable[[int], None]) -> Callable[[str], bool]:
        def strike(_: str) -> bool:
            self._broker = self._chance.choice(self._ground.cluster.broker_ids)
            harm(self._broker)
            return True

        return strike

    def _back(self, brokers: Iterable[int]) -> None:
        """They live again, however they were ended."""
        cluster = self._ground.cluster
        for broker in brokers:
            if broker in cluster.pids:
                cluster.resume(broker)
            else:
                cluster.restart(broker)
        everyone = {*cluster.broker_ids}
        wait_until(lambda: cluster.live_brokers() == everyone, "every broker", BACK_S, 1.0)

    def _stop_controller(self, _: str) -> bool:
        self._ground.cluster.stop_controller()
        return True

    def _on_component(self, name: str, *, revive: bool = False) -> Callable[[str], bool]:
        def strike(_: str) -> bool:
            self._ground.airflow.kill_component(name)
            if revive:
                self._revive()
            return True

        return strike

    def _revive(self) -> None:
        airflow = self._ground.airflow
        wait_until(airflow.missing_components, "its end to be noticed", BACK_S)
        airflow.revive()
        wait_until(lambda: airflow.api.serves(airflow.dags), "Airflow to be back", BACK_S, 2.0)

    def _kill_task(self, run_id: str) -> bool:
        """One that runs at the moment, if there is one."""
        running = [
            task["pid"]
            for task in self._ground.airflow.api.task_instances(DAG, run_id)
            if task["state"] == "running" and task["pid"]
        ]
        if not running:
            return False
        try:
            os.kill(self._chance.choice(running), signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def _set_foreign(self, _: str) -> bool:
        broker = self._chance.choice(self._ground.cluster.broker_ids)
        topic = self._chance.choice(sorted(TOPICS))
        rate = str(self._chance.randint(2_000_000, 9_000_000))
        self._others = [f"broker {broker} {RATE}", f"topic {topic} {LIST}"]
        self._alter({self._others[0]: rate, self._others[1]: "0:1"})
        return True

    def _delete_foreign(self) -> None:
        self._alter(dict.fromkeys(self._others))

    def _alter(self, wanted: Mapping[str, str | None]) -> None:
        """Set or delete as another client does; what it wants is what has to stand in the end."""
        resources = []
        for name, value in wanted.items():
            kind, entity, key = name.split()
            operation = AlterConfigOpType.SET if value else AlterConfigOpType.DELETE
            entry = ConfigEntry(key, value or "", incremental_operation=operation)
            of = ConfigResource.Type.BROKER if kind == "broker" else ConfigResource.Type.TOPIC
            resources.append(ConfigResource(of, entity, incremental_configs=[entry]))
        for future in self._ground.outside.admin.incremental_alter_configs(resources).values():
            future.result(60)
        self._ground.owner.update(wanted)

    def _create_topic(self, _: str) -> bool:
        name = f"late-{next(self._serial)}"
        rows = [self._chance.sample(self._ground.cluster.broker_ids, 2) for _ in range(2)]
        new = NewTopic(name, num_partitions=2, replica_assignment=rows)
        self._ground.outside.admin.create_topics([new])[name].result(60)
        self._ground.factors[name] = {2}
        return True

    def _delete_topic(self, run_id: str) -> bool:
        """One of those that were created; if there is none, one is."""
        there = [name for name in self._ground.factors if name not in TOPICS]
        if not there:
            return self._create_topic(run_id)
        name = self._chance.choice(there)
        self._ground.outside.admin.delete_topics([name])[name].result(60)
        del self._ground.factors[name]
        return True

    def _ask(self, run_id: str, action: str, **more: int) -> bool:
        plan = self._ground.ledger.plan_of(run_id)
        if plan is None:
            return False
        self.control(plan.plan_id, action, **more)
        return True

    def control(self, plan_id: str, action: str, **more: int) -> str:
        """Ask for something of a plan as a person does, and wait for the answer: the state of the
        run that has asked.
        """
        api = self._ground.airflow.api
        run = api.trigger(CONTROL, {"plan_id": plan_id, "action": action, **more})
        return api.wait_for_run(CONTROL, run, BACK_S)

    def _change_throttle(self, run_id: str) -> bool:
        return self._ask(
            run_id, "change_throttle", throttle=self._chance.randint(300_000, 9_000_000)
        )

    def _mark_failed(self, run_id: str) -> bool:
        try:
            self._ground.airflow.api.set_run_state(DAG, run_id, "failed")
        except httpx.HTTPStatusError:
            return False  # it has ended meanwhile
        return True
