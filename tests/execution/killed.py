"""Runs one step of an execution in a process that kills itself at a named call.

``python -m tests.execution.killed STEP CALL WHEN < JSON``: STEP is set_up or advance, CALL a
method of ClusterPort, WHEN is before (the request is never sent) or after (it was applied).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

from include.cluster.connection import Connection
from include.cluster.gateway import ClusterGateway
from include.execution.advance import advance
from include.execution.model import Policy
from include.execution.throttle import set_up_throttle
from include.ledger.store import Ledger
from include.planning.plan import Plan
from local.kafka_cluster import LocalCluster
from tests.ledger.small_plans import make_plan, move


class DeadlyGateway(ClusterGateway):
    """Ends its process with SIGKILL before or after a call."""

    call = ""
    when = ""

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name != DeadlyGateway.call:
            return found

        def die(*args: Any, **options: Any) -> None:
            if DeadlyGateway.when == "after":
                found(*args, **options)
            os.kill(os.getpid(), signal.SIGKILL)

        return die


def run_until_killed(
    step: str, call: str, when: str, plan: Plan, ledger_url: str, cluster: LocalCluster, rate: int
) -> None:
    """Run a step of the plan in a process of its own, which must die at that call."""
    told = {
        "settings": cluster.client_settings(),
        "ledger_url": ledger_url,
        "plan_id": plan.plan_id,
        "cluster_id": plan.cluster_id,
        "moves": [[*m.partition, m.current, m.target, m.size_bytes] for m in plan.moves],
        "rate": rate,
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.execution.killed", step, call, when],
        input=json.dumps(told),
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


def main() -> None:
    step, DeadlyGateway.call, DeadlyGateway.when = sys.argv[1:]
    told = json.load(sys.stdin)
    moves = [
        move(topic, number, tuple(current), tuple(target), size)
        for topic, number, current, target, size in told["moves"]
    ]
    plan = make_plan(told["plan_id"], *moves, cluster_id=told["cluster_id"])
    gateway = DeadlyGateway(Connection.from_settings(told["settings"]))
    with Ledger.open(told["ledger_url"]) as ledger, gateway:
        if step == "set_up":
            set_up_throttle(plan, ledger, gateway, told["rate"])
        else:
            advance(plan, ledger, gateway, Policy(told["rate"]))


if __name__ == "__main__":
    main()
