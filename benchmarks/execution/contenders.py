"""Ways to carry out the same moves at the same rate: Rehome, Kafka's own tool, barrier batches."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.clients.clients import batches
from rehome.cluster.connection.settings import Connection
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.actions import Action
from rehome.domain.plan.kafka_json import reassignment_json
from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import PlanState
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.admission.backlog import Backlog
from rehome.execution.advance import advance
from rehome.execution.decide import decide, needs_worker
from rehome.execution.governor.cluster_health import bystanders
from rehome.execution.governor.control_loop import first_rate
from rehome.execution.policy_from_request import policy_for
from rehome.execution.poll import poll
from rehome.execution.progress.eta import eta_errors
from rehome.execution.rolling import for_first_step, steps
from rehome.execution.throttle.set_up import clear_throttle, set_up_throttle
from rehome.ledger.store import Ledger
from rehome.settings import Settings

TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
BARRIER = 10
"""Partitions per batch; the next batch starts when the whole one has ended."""
WATCH_INTERVAL_S = 0.2


@dataclass(frozen=True)
class Ground:
    """What every contender is given.

    :param directory: where it may keep files.
    :param timeout_s: longest time for all moves.
    :param settings: how often Rehome polls, and how patient it is.
    :param wake_s: what Airflow takes to bring a deferred task back to a worker.
    """

    cluster: LocalCluster
    gateway: ClusterGateway
    plan: Plan
    rate_bytes_per_s: int
    directory: Path
    timeout_s: float
    settings: Settings
    wake_s: float

    @property
    def own_cluster(self) -> OwnCluster:
        """The plan's cluster, as Rehome's engine takes it."""
        return OwnCluster.of(self.gateway, self.plan.cluster_id, self.plan.plan_id)


class Watcher:
    """Sees from outside when the first reassignment is listed, and when the last one is gone."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._connection = Connection.from_settings(cluster.client_settings())
        self._stopping = threading.Event()
        self._began: float | None = None
        self._ended: float | None = None
        self._thread = threading.Thread(target=self._watch, name="watcher", daemon=True)

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stopping.set()
        self._thread.join()

    @property
    def makespan_s(self) -> float:
        """From the first one to the last.

        :raises RuntimeError: nothing was seen, or not the end.
        """
        if self._began is None or self._ended is None:
            raise RuntimeError("no reassignment was seen from its start to its end")
        return self._ended - self._began

    @property
    def ended_at(self) -> datetime:
        """When the last one was gone.

        :raises RuntimeError: the end was not seen.
        """
        if self._ended is None:
            raise RuntimeError("no reassignment was seen to end")
        return datetime.now(UTC) - timedelta(seconds=time.monotonic() - self._ended)

    def _watch(self) -> None:
        with ClusterGateway(self._connection) as gateway:
            while not self._stopping.wait(WATCH_INTERVAL_S):
                listed = bool(gateway.list_reassignments())
                now = time.monotonic()
                if listed:
                    self._began = self._began or now
                    self._ended = None
                elif self._began is not None:
                    self._ended = self._ended or now


def rehome(ground: Ground) -> dict[str, Any]:
    """The engine as the tasks of a run drive it: a trigger that polls, a worker that it wakes."""
    plan, cluster = ground.plan, ground.own_cluster
    request = ReassignmentRequest(Action.REASSIGN, throttle_bytes_per_s=ground.rate_bytes_per_s)
    policy = policy_for(request, ground.settings)
    with _approved(ground) as ledger:
        rate = ground.rate_bytes_per_s
        set_up_throttle(plan, ledger, cluster, first_rate(rate), rate)
        woken = _driven(ground, ledger, policy)
        clear_throttle(plan.plan_id, ledger, cluster)
        state = ledger.plan(plan.plan_id).state
        if state is not PlanState.DONE:
            raise RuntimeError(f"the plan ended {state}: {ledger.plan(plan.plan_id).cause}")
        samples = ledger.samples(plan.plan_id)
    errors = {f"{10 * found.tenth} %": round(found.worst, 3) for found in eta_errors(samples)}
    return {
        "steps_of_the_worker": 1 + woken,
        "poll_interval_s": policy.poll_interval_s,
        "wake_s": ground.wake_s,
        "eta_error_by_bytes_done": errors,
    }


def _driven(ground: Ground, ledger: Ledger, policy: Policy) -> int:
    """To the plan's end; how often the worker was woken."""
    plan, cluster, backlog, woken = ground.plan, ground.own_cluster, Backlog(), 0
    others = bystanders(plan, cluster.describe_topics())
    # The task execute; then progress makes its first step.
    advance(plan, ledger, cluster, for_first_step(policy, plan))
    if _stepped(plan, ledger, cluster, policy):
        return woken
    deadline = time.monotonic() + ground.timeout_s
    while time.monotonic() < deadline:
        time.sleep(policy.poll_interval_s)
        polled = poll(plan, ledger, cluster, policy, backlog, bystanders=others)
        if polled is None:
            return woken
        seen = polled.observation
        if needs_worker(decide(plan, polled.view, seen, seen.taken_at, policy, backlog)):
            time.sleep(ground.wake_s)
            woken += 1
            if _stepped(plan, ledger, cluster, policy):
                return woken
    raise TimeoutError(f"the plan has not ended within {ground.timeout_s:.0f} s")


def _stepped(plan: Plan, ledger: Ledger, cluster: OwnCluster, policy: Policy) -> bool:
    """What the task progress does before it waits again; whether the plan has ended."""
    return [step.finished for step in steps(plan, ledger, cluster, policy)][-1] is not None


def kafka_tool(ground: Ground) -> dict[str, Any]:
    """kafka-reassign-partitions --execute --throttle: everything at once."""
    file = ground.directory / "reassignment.json"
    file.write_text(json.dumps(reassignment_json(ground.plan.moves)))
    named = ("--reassignment-json-file", str(file))
    _run(ground, "--execute", "--throttle", str(ground.rate_bytes_per_s), *named)
    _until_all_have_ended(ground)
    _run(ground, "--verify", *named)  # takes the throttle down
    return {}


def barrier(ground: Ground) -> dict[str, Any]:
    """Batches, each started when the whole one before has ended, under the same throttle."""
    with _approved(ground) as ledger:
        set_up_throttle(ground.plan, ledger, ground.own_cluster, ground.rate_bytes_per_s)
        for moves in batches(ground.plan.moves, BARRIER):
            verdicts = ground.gateway.alter_reassignments({m.partition: m.target for m in moves})
            refused = [str(error) for error in verdicts.values() if error is not None]
            if refused:
                raise RuntimeError(f"a batch was refused: {refused[0]}")
            _until_all_have_ended(ground)
        clear_throttle(ground.plan.plan_id, ledger, ground.own_cluster)
    return {"batch": BARRIER}


CONTENDERS: dict[str, Callable[[Ground], dict[str, Any]]] = {
    "rehome": rehome,
    "kafka_tool": kafka_tool,
    "barrier": barrier,
}


def warm_up(ground: Ground) -> None:
    """Make all moves and take them back: the first to move would find brokers that have compiled
    none of it yet.
    """
    ground.gateway.alter_reassignments({move.partition: move.target for move in ground.plan.moves})
    _until_all_have_ended(ground)
    take_back(ground)


def take_back(ground: Ground) -> None:
    """Put every replica where it was, as fast as the disks allow."""
    moves = ground.plan.moves
    ground.gateway.alter_reassignments({move.partition: move.current for move in moves})
    _until_all_have_ended(ground)


def check_all_moved(ground: Ground) -> None:
    """See that each partition is where the plan says.

    :raises TimeoutError: one is not.
    """
    topics = {move.partition.topic for move in ground.plan.moves}

    def moved() -> bool:
        found = ground.gateway.describe_topics(topics)
        states = {m: found[m.partition.topic].partitions[m.partition.partition] for m in moves}
        return all(s.replicas == m.target and s.isr >= set(m.target) for m, s in states.items())

    moves = ground.plan.moves
    wait_until(moved, "every partition to be where the plan says")


@contextmanager
def _approved(ground: Ground) -> Iterator[Ledger]:
    file = ground.directory / "ledger.db"
    file.unlink(missing_ok=True)
    with Ledger.open(f"sqlite:///{file}") as ledger:
        plan = ground.plan
        ledger.create_plan(plan, {}, ground.directory.as_uri(), "benchmark", "benchmark")
        ledger.approve(plan.plan_id, plan.plan_hash, "benchmark")
        yield ledger


def _run(ground: Ground, *arguments: str) -> None:
    done = ground.cluster.run_tool(TOOL, *arguments)
    if done.returncode:
        raise RuntimeError(f"{TOOL} {arguments[0]} failed: {done.stdout}{done.stderr}")


def _until_all_have_ended(ground: Ground) -> None:
    wait_until(
        lambda: not ground.gateway.list_reassignments(),
        "every reassignment to end",
        ground.timeout_s,
        WATCH_INTERVAL_S,
    )
