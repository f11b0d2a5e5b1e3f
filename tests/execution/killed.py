"""Runs one step of an execution, as its run, in a process that kills or stops itself at a call.

``python -m tests.execution.killed STEP CALL WHEN SIGNAL < JSON``: STEP is set_up or advance, CALL
a method of ClusterPort (name#2: its second call), WHEN is before (the request is never sent) or
after (it was applied).
With SIGSTOP it goes on when it is told to (SIGCONT), and prints how that ended.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

from include.cluster.connection.settings import Connection
from include.cluster.gateway import ClusterGateway
from include.domain.plan.plan import Plan
from include.domain.run.policy import Policy
from include.errors import RehomeError
from include.execution.access.lease import hold
from include.execution.access.own_cluster import OwnCluster
from include.execution.advance import advance
from include.execution.throttle.set_up import set_up_throttle
from include.ledger.store import Ledger
from local.kafka.cluster import LocalCluster
from tests.ledger.small_plans import make_plan, move

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
    process = _start((step, call, when, "SIGKILL"), plan, ledger_url, cluster, rate)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, errors


def run_until_stopped(
    step: str, call: str, when: str, plan: Plan, ledger_url: str, cluster: LocalCluster, rate: int
) -> subprocess.Popen[str]:
    """As :func:`run_until_killed`, but it only stops. :func:`go_on` lets it go on."""
    process = _start((step, call, when, "SIGSTOP"), plan, ledger_url, cluster, rate)
    assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
    return process


def go_on(process: subprocess.Popen[str]) -> str:
    """Let a stopped process go on to its end; what became of it: an error's name, or "done"."""
    process.send_signal(signal.SIGCONT)
    told, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return told.strip()


def _start(
    args: tuple[str, ...], plan: Plan, ledger_url: str, cluster: LocalCluster, rate: int
) -> subprocess.Popen[str]:
    told = {
        "settings": cluster.client_settings(),
        "ledger_url": ledger_url,
        "plan_id": plan.plan_id,
        "cluster_id": plan.cluster_id,
        "moves": [
            [*m.partition, m.current, m.target, m.size_bytes, m.current_log_dirs, m.target_log_dirs]
            for m in plan.moves
        ],
        "rate": rate,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.execution.killed", *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(told) + "\n")
    process.stdin.flush()
    return process


def main() -> None:
    step, call, DeadlyGateway.when, name = sys.argv[1:]
    DeadlyGateway.call, _, number = call.partition("#")
    DeadlyGateway.number = int(number or 1)
    DeadlyGateway.signal = signal.Signals[name]
    told = json.loads(sys.stdin.readline())
    moves = [
        move(topic, number, tuple(current), tuple(target), size, *map(tuple, log_dirs))
        for topic, number, current, target, size, *log_dirs in told["moves"]
    ]
    plan = make_plan(told["plan_id"], *moves, cluster_id=told["cluster_id"])
    gateway = DeadlyGateway(Connection.from_settings(told["settings"]))
    with Ledger.open(told["ledger_url"]) as ledger, gateway:
        run_id = ledger.plan(plan.plan_id).run_id
        try:
            with hold(ledger, OwnCluster.of(gateway, plan.cluster_id), run_id, LEASE_S) as held:
                if step == "set_up":
                    set_up_throttle(plan, held.ledger, held.cluster, told["rate"])
                else:
                    advance(plan, held.ledger, held.cluster, Policy(told["rate"]))
        except RehomeError as error:
            print(type(error).__name__)
        else:
            print("done")


if __name__ == "__main__":
    main()
