"""The API server that :mod:`benchmarks.api_server` attacks, in a process of its own.

    python benchmarks/served_api.py DIRECTORY

It says on which port of 127.0.0.1 it is, with the tokens of roles, and writes down what holds its
event loop, every half second, into ``DIRECTORY/loop.json``.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

LONG_HANDLE_S = 0.05
"""What counts as long on the event loop."""


def serve(directory: Path) -> None:
    """Serve, say where, and write down what held the event loop, every half second."""
    import socket

    import uvicorn
    from airflow.api_fastapi.app import create_app, get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
    from airflow.utils.db import initdb

    initdb()
    DagBundlesManager().sync_bundles_to_db()
    dags = Path(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
    bag = DagBag(str(dags / "control_reassignment.py"), bundle_name="dags-folder")
    sync_bag_to_db(bag, "dags-folder", None)
    plan_to_follow()
    app = create_app("core")
    tokens = {
        role: get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=role, role=role))
        for role in ("viewer", "user")
    }
    listening = socket.create_server(("127.0.0.1", 0))
    print(json.dumps({"port": listening.getsockname()[1], "tokens": tokens}), flush=True)
    watched = WatchedLoop()

    async def run() -> None:
        config = uvicorn.Config(app, log_level="warning", loop="asyncio", lifespan="on")
        serving = asyncio.create_task(uvicorn.Server(config).serve(sockets=[listening]))
        while not serving.done():
            if not (directory / "loop.json").exists():
                watched.forget()
            (directory / "loop.json").write_text(json.dumps(watched.told()))
            await asyncio.sleep(0.5)

    asyncio.run(run())


class WatchedLoop:
    """Seconds of processor that callbacks take on the event loop, as far as they are long.

    Time in which other processes or threads ran is not theirs. Python's garbage collection, which
    goes through all that Airflow has in memory, is counted apart.
    """

    def __init__(self) -> None:
        from asyncio import events

        self.held: list[float] = []
        self.collected: list[float] = []
        self._thread = threading.get_ident()
        self._collecting = self._began = 0.0
        self._run: Any = events.Handle._run
        watch = self

        def timed(handle: Any) -> None:
            watch.timed(handle)

        events.Handle._run = timed  # type: ignore[assignment, method-assign]
        gc.callbacks.append(self._on_collection)

    def timed(self, handle: Any) -> None:
        """Run a callback."""
        self._collecting, began = 0.0, time.thread_time()
        self._run(handle)
        self.held.append(time.thread_time() - began - self._collecting)
        if self._collecting:
            self.collected.append(self._collecting)

    def _on_collection(self, phase: str, _: Any) -> None:
        if threading.get_ident() != self._thread:
            return
        if phase == "start":
            self._began = time.thread_time()
        else:
            self._collecting += time.thread_time() - self._began

    def told(self) -> dict[str, Any]:
        """The figures since the last :meth:`forget`; milliseconds."""
        return {
            "longest": 1000 * max(self.held, default=0.0),
            "over": sum(each > LONG_HANDLE_S for each in self.held),
            "collection": 1000 * max(self.collected, default=0.0),
        }

    def forget(self) -> None:
        """Begin anew."""
        self.held.clear()
        self.collected.clear()


def plan_to_follow() -> None:
    """A plan whose page has a stream."""
    from rehome.domain.kafka import TopicPartition
    from rehome.domain.plan.move import Move, MoveReason
    from rehome.domain.request.parse_request import parse_request
    from rehome.ledger.store import Ledger
    from rehome.warehouse import PlanDirectory
    from world.plan_of_moves import plan_of_moves

    move = Move(TopicPartition("t", 0), (1, 2), (2, 3), 10**9, MoveReason.BALANCE)
    plan = plan_of_moves("p1", "bench", (move,), 50_000_000)
    directory = PlanDirectory(f"{os.environ['REHOME_WAREHOUSE']}/plans/p1")
    directory.save(plan, parse_request({"action": "rebalance"}))
    with Ledger.open(os.environ["REHOME_LEDGER_URL"]) as ledger:
        ledger.create_plan(
            plan, {"action": "rebalance"}, directory.uri, "run", "bench", "kafka_default",
            "reassign_partitions",
        )  # fmt: skip


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
