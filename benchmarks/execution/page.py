"""What the page of a large plan costs its server: `make bench-page`.

Writes benchmarks/results/page.json. A process of its own serves the page as Airflow's API server
does, with Airflow's own users; the plan has 50,000 moves, and a day of polls. Viewers do what a
browser does at each poll: they take the stream's news, then fetch the chart and the table.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import numpy as np
import psutil
from sqlalchemy import create_engine, insert, update

from benchmarks.document import DOCS, put, table
from benchmarks.execution.viewers import Viewers
from local.process.guard import Guard
from local.process.waiting import wait_until
from rehome.domain.kafka import ReplicaId, TopicPartition
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.plan.plan import Plan
from rehome.domain.plan.plan_hash import seal
from rehome.domain.plan.summary import BrokerLoad
from rehome.domain.request.parse_request import parse_request
from rehome.domain.run.flows import BrokerFlow, FlowSample, RateReason
from rehome.domain.run.progress import ProgressSample, ReplicaState, ReplicaStatus
from rehome.domain.run.states import MoveState
from rehome.ledger.base.models import FLOW_SAMPLES, MOVES, PROGRESS_SAMPLES, REASSIGNMENTS
from rehome.ledger.store import Ledger
from rehome.warehouse import PlanDirectory
from world.plan_of_moves import plan_of_moves

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).parents[1] / "results" / "page.json"
DOCUMENT = DOCS / "benchmarks.md"
PLAN, MB = "bench", 1_000_000
POLL = timedelta(seconds=5)
VIEWERS = (1, 10)
COLUMNS = {
    "moves": "moves",
    "first view, ms": "first_ms",
    "again, ms": "again_ms",
    "table, ms": "table_ms",
    "table by bytes behind, ms": "behind_ms",
    "processor of a refresh, one viewer, ms": "refresh_cpu_ms_1",
    "ten viewers, ms": "refresh_cpu_ms_10",
    "news after, ten viewers, ms": "news_ms_10",
}


def moves_of(count: int, brokers: int, rng: np.random.Generator) -> tuple[Move, ...]:
    """Each replaces one of three replicas."""
    sizes = rng.lognormal(18, 1, count).astype(int)
    found = []
    for number, size in enumerate(sizes.tolist()):
        first = number % brokers
        current = tuple((first + step) % brokers for step in range(3))
        target = (*current[:2], (first + 3) % brokers)
        partition = TopicPartition(f"topic-{number // 50:05}", number % 50)
        found.append(Move(partition, current, target, size, MoveReason.BALANCE))
    return tuple(found)


def loads_of(moves: Sequence[Move], brokers: int) -> tuple[BrokerLoad, ...]:
    gained = [0] * brokers
    lost = [0] * brokers
    for move in moves:
        gained[move.target[2]] += move.size_bytes
        lost[move.current[2]] += move.size_bytes
    held = 10**12
    return tuple(
        BrokerLoad(b, held, held + gained[b] - lost[b], 9, 9, 3, 3, gained[b], lost[b])
        for b in range(brokers)
    )


def in_progress(url: str, warehouse: str, options: argparse.Namespace) -> tuple[Ledger, Plan]:
    """The plan in the ledger after a day: four in ten moves done, some hundred in flight."""
    rng = np.random.default_rng(1)
    moves = moves_of(options.moves, options.brokers, rng)
    plan = plan_of_moves(PLAN, "bench", moves, 50 * MB)
    plan = seal(
        replace(plan, summary=replace(plan.summary, brokers=loads_of(moves, options.brokers)))
    )
    directory = PlanDirectory(f"{warehouse}/plans/{PLAN}")
    request = {"action": "rebalance"}
    directory.save(plan, parse_request(request))
    ledger = Ledger.open(url)
    ledger.create_plan(plan, request, directory.uri, "run", "bench", "kafka_default")
    ledger.approve(PLAN, plan.plan_hash, "bench")
    ledger.claim(PLAN)
    now = datetime.now(UTC)
    done, flying = int(0.4 * options.moves), options.in_flight
    started = [
        {
            "reassignment_id": f"{number:032x}",
            "plan_id": PLAN,
            "topic": move.partition.topic,
            "partition": move.partition.partition,
            "started_at": now - timedelta(hours=1),
            "sent_at": now - timedelta(hours=1),
            "first_leader": move.current[0],
            "replicas_before": list(move.current),
            "replicas_target": list(move.target),
            "ended_at": now if number < done else None,
            "outcome": MoveState.DONE if number < done else None,
            "detail": "",
        }
        for number, move in enumerate(moves[: done + flying])
    ]
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(insert(REASSIGNMENTS), started)
        for state, part in (
            (MoveState.DONE, moves[:done]),
            (MoveState.ADMITTED, moves[done : done + flying]),
        ):
            for move in part:
                topic, partition = move.partition
                in_place = move.bytes_to_copy if state is MoveState.DONE else None
                connection.execute(
                    update(MOVES)
                    .where(MOVES.c.topic == topic, MOVES.c.partition == partition)
                    .values(state=state, bytes_in_place=in_place)
                )
        polls = [now - POLL * number for number in range(options.polls, 0, -1)]
        connection.execute(
            insert(PROGRESS_SAMPLES), [_sample_row(plan, at, done, flying) for at in polls]
        )
        connection.execute(
            insert(FLOW_SAMPLES),
            [
                {"plan_id": PLAN, "since": at - POLL, "at": at, "busiest_bytes_per_s": 48e6}
                for at in polls
            ],
        )
    engine.dispose()
    ledger.set_rate(PLAN, 50 * MB, "set up", reason=RateReason.SET_UP)
    return ledger, plan


def _sample(plan: Plan, at: datetime, done: int, flying: int) -> ProgressSample:
    copied = int(0.45 * plan.bytes_to_copy)
    return ProgressSample(
        *(at, copied, plan.bytes_to_copy, done, len(plan.moves), flying, 10, 1e9, 3600.0),
        received_bytes=copied,
        grown_bytes=0,
        shrunk_bytes=0,
    )


def _sample_row(plan: Plan, at: datetime, done: int, flying: int) -> dict[str, Any]:
    sample = _sample(plan, at, done, flying)
    return {"plan_id": PLAN, **{name: getattr(sample, name) for name in sample.__slots__}}


def poll(ledger: Ledger, plan: Plan, options: argparse.Namespace) -> None:
    """What the trigger writes at each poll."""
    now = datetime.now(UTC)
    done = int(0.4 * options.moves)
    flying = plan.moves[done : done + options.in_flight]
    statuses = [
        ReplicaStatus(
            ReplicaId(*move.partition, move.target[2]),
            ReplicaState.BEHIND,
            now,
            messages_behind=5,
            bytes_behind=move.size_bytes // 2,
        )
        for move in flying
    ]
    flows = tuple(
        BrokerFlow(direction, broker, 240 * MB, 10**9, 4)
        for broker in range(options.brokers)
        for direction in ("in", "out")
    )
    ledger.add_samples(
        PLAN,
        statuses,
        _sample(plan, now, done, len(flying)),
        FlowSample(now - POLL, now, flows),
    )


@contextmanager
def server(
    directory: Path, url: str, warehouse: str
) -> Iterator[tuple[str, list[str], psutil.Process]]:
    """The page in a process of its own: its address, a token of each user, and the process."""
    said = directory / "server.log"
    env = os.environ | {
        "AIRFLOW_HOME": str(directory / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__API_AUTH__JWT_SECRET": "bench" * 16,
        "AIRFLOW__API__SECRET_KEY": "bench" * 8,
        "REHOME_LEDGER_URL": url,
        "REHOME_WAREHOUSE": warehouse,
        "PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}",
    }
    with closing(Guard()) as guard:
        process = guard.spawn(
            [sys.executable, "-m", "benchmarks.execution.page", "--serve"], said, env
        )

        def address() -> str | None:
            if process.poll() is not None:
                raise RuntimeError(f"the page's server ended:\n{said.read_text()}")
            lines = said.read_text().splitlines() if said.exists() else []
            return next((line for line in lines if line.startswith("http://")), None)

        found = wait_until(address, "the page to be served", 120)
        assert found is not None
        base, *tokens = found.split()
        yield base, tokens, psutil.Process(process.pid)


def serve() -> None:
    """Serve the page, print its address and tokens of as many users as there are viewers, and stay.

    A user may have eight pages open at once.
    """
    import socket

    import uvicorn
    from airflow.api_fastapi.app import get_auth_manager, init_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from airflow.utils.db import initdb
    from fastapi import FastAPI

    from rehome.links import URL_PREFIX
    from rehome.ui.lazy_app import LazyPage

    initdb()
    app = FastAPI()
    init_auth_manager(app)
    app.mount(URL_PREFIX, LazyPage())
    users = (
        SimpleAuthManagerUser(username=f"viewer-{number}", role="admin")
        for number in range(VIEWERS[-1])
    )
    tokens = " ".join(get_auth_manager().generate_jwt(user) for user in users)
    listening = socket.create_server(("127.0.0.1", 0))  # from here on a client may connect
    print(f"http://127.0.0.1:{listening.getsockname()[1]}{URL_PREFIX} {tokens}", flush=True)
    config = uvicorn.Config(app, log_level="warning", lifespan="off")
    uvicorn.Server(config).run(sockets=[listening])


def timed_ms(client: httpx.Client, path: str) -> float:
    """Milliseconds until a page is there whole."""
    began = time.perf_counter()
    client.get(path).raise_for_status()
    return 1000 * (time.perf_counter() - began)


def refreshes(
    client: httpx.Client,
    process: psutil.Process,
    ledger: Ledger,
    plan: Plan,
    options: argparse.Namespace,
    tokens: Sequence[str],
) -> tuple[float, float]:
    """Milliseconds of processor that one viewer's refresh costs, and until all have seen a poll.

    The server's reads of the ledger between polls are part of it.
    """
    viewers = len(tokens)
    pages = Viewers(client, PLAN, tokens)
    with ThreadPoolExecutor(viewers) as pool:
        looking = [pool.submit(pages.look, number) for number in range(viewers)]
        pages.begin()
        pages.polled()  # the first news: the page as it is
        pages.seen_ms.clear()
        before = sum(process.cpu_times()[:2])
        for _ in range(options.refreshes):
            pages.begin()
            poll(ledger, plan, options)
            pages.polled()
        spent = sum(process.cpu_times()[:2]) - before
        pages.end()
        poll(ledger, plan, options)
    for each in looking:
        each.result()  # raises what a viewer has met
    return 1000 * spent / options.refreshes / viewers, median(pages.seen_ms)


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Every figure."""
    with tempfile.TemporaryDirectory(prefix="rehome-page-") as name:
        directory = Path(name)
        url, warehouse = f"sqlite:///{directory}/ledger.db", (directory / "warehouse").as_uri()
        ledger, plan = in_progress(url, warehouse, options)
        with ledger, server(directory, url, warehouse) as (base, tokens, process):
            limits = httpx.Limits(max_connections=100)
            with httpx.Client(
                base_url=base, cookies={"_token": tokens[0]}, timeout=60, limits=limits
            ) as client:
                client.get("/").raise_for_status()  # the application is made at its first request
                result = {
                    "date": datetime.now(UTC).isoformat(timespec="seconds"),
                    "cores": os.cpu_count(),
                    "load_average": round(os.getloadavg()[0], 1),
                    "moves": options.moves,
                    "polls": options.polls,
                    "first_ms": round(timed_ms(client, f"/plans/{PLAN}")),
                    "again_ms": round(_median_ms(client, f"/plans/{PLAN}")),
                    "table_ms": round(_median_ms(client, f"/plans/{PLAN}/tabs/partitions")),
                    "behind_ms": round(
                        _median_ms(client, f"/plans/{PLAN}/tabs/partitions?sort=behind")
                    ),
                }
                client.cookies.clear()
                for viewers in VIEWERS:
                    users = tokens[:viewers]
                    spent, seen = refreshes(client, process, ledger, plan, options, users)
                    result[f"refresh_cpu_ms_{viewers}"] = round(spent, 1)
                    result[f"news_ms_{viewers}"] = round(seen)
    return result


def _median_ms(client: httpx.Client, path: str) -> float:
    return median(timed_ms(client, path) for _ in range(9))


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moves", type=int, default=50_000)
    parser.add_argument("--in-flight", type=int, default=200)
    parser.add_argument("--brokers", type=int, default=300)
    parser.add_argument("--polls", type=int, default=17_280, help="a day of them by default")
    parser.add_argument("--refreshes", type=int, default=10)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main() -> None:
    options = parsed()
    if options.serve:
        serve()
        return
    result = measured(options)
    options.out.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result))
    if options.out == RESULTS:
        made = f"Made {result['date'][:10]} on {result['cores']} cores."
        put(DOCUMENT, "bench-page", [made, "", *table(COLUMNS, [result])])


if __name__ == "__main__":
    main()
