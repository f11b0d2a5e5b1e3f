"""Runs one step of an execution, as its run, in a process that kills or stops itself at a call.

The step is set_up or advance, the call a method of ClusterPort (name#2: its second call), and it is
before (the request is never sent) or after it (it was applied). A process that stops itself
continues after SIGCONT, and sends its result.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from typing import Any

import psutil

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.connection.settings import Connection
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.plan.plan import Plan
from rehome.domain.run.run_policy import Policy
from rehome.errors import RehomeError
from rehome.execution.access.lease import hold
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.advance import advance
from rehome.execution.throttle.set_up import set_up_throttle
from rehome.ledger.store import Ledger
from tests.processes import FORKED

LEASE_S = 60.0


class DeadlyGateway(ClusterGateway):
    """Sends its own process a signal before or after a call of a name."""

    call = ""
    number = 1
    when = ""
    signal = signal.SIGKILL

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name != DeadlyGateway.call:
            return found
        DeadlyGateway.number -= 1
        if DeadlyGateway.number:
            return found

        def die(*args: Any, **options: Any) -> Any:
            answer = found(*args, **options) if DeadlyGateway.when == "after" else None
            os.kill(os.getpid(), DeadlyGateway.signal)
            return found(*args, **options) if DeadlyGateway.when == "before" else answer

        return die


def run_until_killed(
    step: str, call: str, when: str, plan: Plan, ledger_url: str, cluster: LocalCluster, rate: int
) -> None:
    """Run a step of the plan in a process of its own, which must die at that call."""
    at = At(step, call, when, signal.SIGKILL)
    process = at.start(plan, ledger_url, cluster, rate).process
    process.join(120)
    assert process.exitcode == -signal.SIGKILL


def run_until_stopped(
    step: str, call: str, when: str, plan: Plan, ledger_url: str, cluster: LocalCluster, rate: int
) -> Started:
    """As :func:`run_until_killed`, but it only stops. :func:`go_on` lets it go on."""
    started = At(step, call, when, signal.SIGSTOP).start(plan, ledger_url, cluster, rate)
    process = psutil.Process(started.process.pid)
    wait_until(lambda: process.status() == psutil.STATUS_STOPPED, "it to stop itself")
    return started


def go_on(stopped: Started) -> str:
    """Let a stopped process go on to its end; what became of it: an error's name, or "done"."""
    os.kill(stopped.process.pid, signal.SIGCONT)
    assert stopped.reported.poll(120)
    reported: str = stopped.reported.recv()
    stopped.process.join(120)
    assert stopped.process.exitcode == 0
    return reported


@dataclass(frozen=True)
class Started:
    """A process, and the pipe on which it reports how it has ended."""

    process: Any
    reported: Pipe


@dataclass(frozen=True)
class At:
    """Where a step ends, or stops."""

    step: str
    call: str
    when: str
    signal: signal.Signals

    def start(self, plan: Plan, ledger_url: str, cluster: LocalCluster, rate: int) -> Started:
        reported, tell = FORKED.Pipe(duplex=False)
        args = (self, plan, ledger_url, cluster.client_settings(), rate, tell)
        process = FORKED.Process(target=_run, args=args, daemon=True)
        process.start()
        tell.close()
        return Started(process, reported)


def _run(
    at: At, plan: Plan, ledger_url: str, settings: dict[str, str], rate: int, tell: Pipe
) -> None:
    DeadlyGateway.call, _, number = at.call.partition("#")
    DeadlyGateway.number = int(number or 1)
    DeadlyGateway.when, DeadlyGateway.signal = at.when, at.signal
    gateway = DeadlyGateway(Connection.from_settings(settings))
    with Ledger.open(ledger_url) as ledger, gateway:
        run_id = ledger.plan(plan.plan_id).run_id
        try:
            with hold(ledger, OwnCluster.of(gateway, plan.cluster_id), run_id, LEASE_S) as held:
                if at.step == "set_up":
                    set_up_throttle(plan, held.ledger, held.cluster, rate)
                else:
                    advance(plan, held.ledger, held.cluster, Policy(rate))
        except RehomeError as error:
            tell.send(type(error).__name__)
        else:
            tell.send("done")
