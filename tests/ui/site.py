"""The page over a ledger of its own, served as Airflow's API server serves it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import uvicorn
from airflow.api_fastapi.app import init_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from fastapi import FastAPI
from sqlalchemy import update

from local.process.waiting import wait_until
from rehome.clusters.watch_rules import WatchRules
from rehome.domain.kafka import PartitionState, ReplicaId, TopicPartition
from rehome.domain.plan.infeasible import Infeasible, Obstacle, Subject
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.plan.plan import Plan
from rehome.domain.plan.plan_hash import seal
from rehome.domain.plan.summary import BrokerLoad
from rehome.domain.request.parse_request import parse_request
from rehome.domain.resources import Resource
from rehome.domain.run.causes.cause import Cause, CauseKind
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.flows import BrokerFlow, FlowSample, RateReason
from rehome.domain.run.observation import Observation
from rehome.domain.run.progress import ProgressSample, ReplicaState, ReplicaStatus
from rehome.domain.run.states import MoveState, PlanState
from rehome.domain.run.watched.finding import Seen
from rehome.domain.run.watched.finding_kinds import FindingKind, WatchPolicy
from rehome.ledger.base.models import MOVES
from rehome.ledger.store import Ledger
from rehome.ledger.stores.by_run.causes import EndedRun
from rehome.ledger.stores.watched.starts import StartRecord
from rehome.links import URL_PREFIX
from rehome.ui.lazy_app import LazyPage
from rehome.warehouse import PlanDirectory, Warehouse
from rehome.watching.open_and_close import after_snapshot
from tests.ledger.set_clock import SetClock
from tests.ledger.small_plans import make_plan, move
from tests.planning.clusters import Cluster
from tests.reporting.reported_plans import dry_run_json, gates_json

EVIL = "<img src=x onerror=alert(1)>\"'"
"""Text that a page has to show as text."""
MB = 1_000_000
RATE = 50 * MB


@dataclass
class Site:
    """A ledger and a warehouse that hold what a test puts there.

    :param clock: what the ledger writes as the time of a change.
    """

    ledger: Ledger
    clock: SetClock
    warehouse: Path

    def plan(
        self,
        plan_id: str,
        *moves: Move,
        cluster_id: str = "c1",
        dag_id: str = "reassign_partitions",
        actor: str = "ann",
        figures: Mapping[str, Any] | None = None,
        through: str = "kafka_prod",
        empty: bool = False,
        **request: Any,
    ) -> Plan:
        """A drain of broker 4 as the plan job records it, with its files; or what is requested.

        :param figures: fields of its summary.
        :param through: the connection that it was planned through.
        :param empty: it moves nothing.
        """
        chosen = moves or (() if empty else drain_moves(12))
        made = replace(make_plan(plan_id, *chosen, cluster_id=cluster_id), moves=tuple(chosen))
        params = {"action": "drain", "brokers": [4], **request}
        action = params["action"]
        figures = {"action": action, "brokers": loads_of(chosen), **(figures or {})}
        summary = replace(made.summary, **figures)
        plan = seal(replace(made, action=action, summary=summary))
        directory = PlanDirectory((self.warehouse / "plans" / plan_id).as_uri())
        directory.save(plan, parse_request(params))
        directory.write_json("gates.json", list(gates_json()))
        directory.write_json("dry_run.json", dict(dry_run_json()))
        directory.write_text("report.html", "<!doctype html><title>the report</title>")
        self.ledger.create_plan(
            plan, params, directory.uri, f"manual__{plan_id}", actor, through, dag_id
        )
        return plan

    def run(self, plan: Plan, done: int = 0, flying: int = 0) -> None:
        """Start it: so many of its moves are done, and so many in flight."""
        ledger, plan_id = self.ledger, plan.plan_id
        ledger.approve(plan_id, plan.plan_hash, "bob")
        ledger.claim(plan_id)
        ledger.set_rate(plan_id, RATE, "set up", reason=RateReason.SET_UP)
        started = plan.moves[: done + flying]
        ledger.admit(plan_id, started, observed(plan.moves), RATE)
        ledger.mark_sent(plan_id, [item.partition for item in started])
        for item in started[:done]:
            ledger.settle(plan_id, item.partition, MoveState.DONE)
        with ledger.writing() as connection:  # a poll has read their copies: all is as planned
            ended = MOVES.c.state == MoveState.DONE
            whole = update(MOVES).where(ended).values(bytes_in_place=MOVES.c.bytes_to_move)
            connection.execute(whole)

    def poll(self, plan: Plan, bytes_done: int, eta_s: float | None = 60.0) -> None:
        """What one poll of the trigger writes; each move in flight is half way."""
        ledger, now = self.ledger, self.clock()
        states = ledger.moves(plan.plan_id)
        flying = [m for m in plan.moves if states[m.partition].state is MoveState.ADMITTED]
        statuses = [
            ReplicaStatus(
                ReplicaId(*item.partition, broker),
                ReplicaState.BEHIND,
                now,
                messages_behind=12_345,
                bytes_behind=item.size_bytes // 2,
            )
            for item in flying
            for broker in item.adding
        ]
        done = sum(record.state is MoveState.DONE for record in states.values())
        sample = ProgressSample(
            now,
            bytes_done,
            plan.bytes_to_copy,
            done,
            len(plan.moves),
            len(flying),
            12_345 * len(flying),
            48_700_000.0,
            eta_s,
            received_bytes=bytes_done,
            grown_bytes=0,
            shrunk_bytes=0,
        )
        flows = FlowSample(
            now - timedelta(seconds=5),
            now,
            (
                BrokerFlow("in", 2, 240 * MB, 100 * MB, len(flying)),
                BrokerFlow("out", 4, 243 * MB, 100 * MB, len(flying)),
            ),
        )
        ledger.add_samples(plan.plan_id, statuses, sample, flows)

    def tried_again(self, plan_id: str, dry_run: Mapping[str, Any]) -> None:
        """A run that was to resume a plan has tried it out."""
        PlanDirectory(self.ledger.plan(plan_id).plan_dir).write_json("dry_run.json", dict(dry_run))
        self.ledger.add_event(EventKind.REQUEST, "", plan_id=plan_id)

    def end(self, plan: Plan, state: PlanState = PlanState.DONE, cause: str = "all ended") -> None:
        """Bring it to its end."""
        if state is PlanState.DONE:
            for item in plan.moves:
                self.ledger.settle(plan.plan_id, item.partition, MoveState.DONE)
            PlanDirectory((self.warehouse / "plans" / plan.plan_id).as_uri()).write_json(
                "verification.json",
                {"ok": True, "partitions": len(plan.moves), "problems": {}, "findings": {}},
            )
        self.ledger.transition(plan.plan_id, state, cause)


def paused_heal(site: Site, plan_id: str, cluster_id: str = "test") -> Plan:
    """A plan that heals an open finding, and that the end of its window has paused."""
    ledger, at = site.ledger, site.clock()
    about = (FindingKind.EMPTY_BROKER, "broker 4")
    rules = WatchRules(snapshots_to_open=1)
    seen = [Seen(*about, {"broker": 4})]
    ledger.follow_findings(
        cluster_id, at, after_snapshot(seen, rules, longest_gap=timedelta(hours=1))
    )
    run = ("reassign_partitions", f"manual__{plan_id}")
    ledger.record_watch_start(StartRecord(*run, cluster_id, *about, at, WatchPolicy.HEAL, at))
    plan = site.plan(plan_id, cluster_id=cluster_id, actor="watch", through="kafka_default")
    site.run(plan, 3)
    ledger.transition(plan_id, PlanState.PAUSED, "the window has ended")
    ledger.end_watch_start(*run, failed=False, plan_id=plan_id)
    return plan


def staying_open(site: Site, plan_id: str, cluster_id: str = "test") -> None:
    """Two findings that are open though what was started for them has ended: a plan that has found
    nothing to move, and one that its gate has refused. What was open before stays so.
    """
    ledger, at = site.ledger, site.clock()
    uneven = {"count": 2, "deviation": {"3": 0.41, "1": -0.38}}
    seen = [
        *(Seen(each.kind, each.subject, each.facts) for each in ledger.open_findings(cluster_id)),
        Seen(FindingKind.IMBALANCE, "bytes", uneven),
        Seen(FindingKind.DEAD_BROKER, "broker 2", {"replicas": 40}),
    ]
    rules, gap = WatchRules(snapshots_to_open=1, grace_s=0), timedelta(hours=1)
    ledger.follow_findings(cluster_id, at, after_snapshot(seen, rules, longest_gap=gap))
    runs = {seen[-2].key: "uneven", seen[-1].key: "dead"}
    for about, name in runs.items():
        run = ("reassign_partitions", f"watch__{name}__20261121T040000Z__0a1b2c3d")
        start = StartRecord(*run, cluster_id, *about, at, WatchPolicy.HEAL, at)
        ledger.record_watch_start(start)
    limits = tuple(
        Infeasible(
            Subject.of_broker(broker), Obstacle.CAP, wanted=2e12, nearest=1e12,
            resource=Resource.BYTES,
        )
        for broker in range(1, 6)
    )  # fmt: skip
    loads = {"brokers": loads_of(drain_moves(1)), "infeasible": limits}
    plan = site.plan(
        plan_id, cluster_id=cluster_id, actor="watch", figures=loads, empty=True, action="rebalance"
    )
    ledger.approve(plan_id, plan.plan_hash, "watch")
    ledger.claim(plan_id)
    site.end(plan, cause="there was nothing to move")
    ledger.end_watch_start(
        "reassign_partitions", "watch__uneven__20261121T040000Z__0a1b2c3d", failed=False,
        plan_id=plan_id,
    )  # fmt: skip
    why = (
        "it does not hold that every partition that is moved has a leader: "
        f"topic {'payments-of-all-customers-' * 4}, partition 17 and 41 more",
        "it does not hold that every live broker answered: broker 3, error timed out",
    )
    dead = ("reassign_partitions", "watch__dead__20261121T040000Z__0a1b2c3d")
    cause = Cause(CauseKind.GATE, "\n".join(why), "", "", site.clock(), "plan")
    ledger.record_cause(EndedRun(*dead, cause))
    ledger.end_watch_start(*dead, failed=True)
    site.clock.pass_s(600)
    ledger.follow_findings(cluster_id, site.clock(), after_snapshot(seen, rules, longest_gap=gap))


def drain_moves(count: int, topic: str = "orders", size_bytes: int = 400 * MB) -> list[Move]:
    """Moves of replicas from broker 4 to broker 2."""
    return [
        replace(
            move(topic, number, (4, 1), (2, 1), size_bytes + number),
            reason=MoveReason.DRAIN,
        )
        for number in range(count)
    ]


def loads_of(moves: Sequence[Move]) -> tuple[BrokerLoad, ...]:
    moved, count = sum(item.bytes_to_move for item in moves), len(moves)
    return (
        BrokerLoad(1, moved, moved, count, count, 0, 0, 0, 0),
        BrokerLoad(2, 300 * MB, 300 * MB + moved, 1, count + 1, 1, count + 1, moved, 0),
        BrokerLoad(4, moved, 0, count, 0, count, 0, 0, moved),
    )


def observed(moves: Sequence[Move]) -> Observation:
    partitions = {
        item.partition: PartitionState(item.current[0], item.current, frozenset(item.current))
        for item in moves
    }
    return Observation(datetime.now(UTC), partitions, {}, frozenset({1, 2, 4}))


def page_app() -> FastAPI:
    """What Airflow's API server does with the plugin's application."""
    app = FastAPI()
    init_auth_manager(app)
    app.mount(URL_PREFIX, LazyPage())
    return app


def token_of(role: str, name: str = "") -> str:
    """What Airflow gives a user of a role at login: viewer, user, op or admin."""
    from airflow.api_fastapi.app import get_auth_manager

    user = SimpleAuthManagerUser(username=name or role, role=role)
    return str(get_auth_manager().generate_jwt(user))


def snapshot_of(
    site: Site,
    cluster_id: str = "test",
    adding: frozenset[tuple[TopicPartition, int]] = frozenset(),
) -> None:
    """A snapshot of a cluster of four brokers in two data centres, one of them dead.

    :param adding: replicas that reassignments add.
    """
    partitions = [TopicPartition("orders", number) for number in range(40)]
    cluster = Cluster(
        racks={1: "/dc0/r0", 2: "/dc0/r1", 3: "/dc1/r0", 4: "/dc1/r0"},
        replicas=dict.fromkeys(partitions, (1, 2, 3)),
        sizes=dict.fromkeys(partitions, 100 * MB),
        disks={n: (10_000 * MB, n * 2_000 * MB) for n in (1, 2, 3, 4)},
        dead=frozenset({2}),
        lagging=frozenset((partition, 2) for partition in partitions),
        adding=adding,
    )
    Warehouse(site.warehouse.as_uri()).write_snapshot(
        replace(cluster.snapshot(), cluster_id=cluster_id)
    )


@contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """Serve an application on a free loopback port; its address."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        server.config.load()
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            wait_until(lambda: server.started, "the page to be served")
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = server.force_exit = True
            thread.join(120)
