"""Airflow's API server under attack: how long others wait, and how long its event loop is held.

    python -m benchmarks.api_server

A server of its own on 127.0.0.1, with Rehome's plugin, and 100 clients of each kind of
:data:`HOSTILE` together; a client sends again :data:`PAUSE_S` after it was answered. Meanwhile one
client asks 200 times for ``/api/v2/version``. Everything ends by itself.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from benchmarks.document import DOCS, put, table
from local.process.guard import Guard
from local.process.waiting import wait_until

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "api_server.json"
SERVED = Path(__file__).with_name("served_api.py").resolve()
DOCUMENT = DOCS / "benchmarks.md"
RUNS = "/api/v2/dags/control_reassignment/dagRuns"
VERSION = "/api/v2/version"
PAUSE_S = 1.0
LONGEST_CALL_S = 60.0
LONGEST_CALLS_S = 120.0
CLIENTS = 100
COLUMNS = {
    "what": "what",
    "p99 without, ms": "calm_ms",
    "p99 with, ms": "attacked_ms",
    "ratio": "ratio",
    "processors taken": "processor",
    "longest on the event loop, ms": "longest_handle_ms",
    "above 50 ms": "handles_over_50_ms",
    "longest garbage collection, ms": "collection_ms",
    "hostile requests answered": "answers",
}


@dataclass(frozen=True, slots=True)
class Hostile:
    """A kind of hostile request.

    :param clients: of the hundred, in parallel.
    :param role: whose token it has; "" = nobody's.
    """

    clients: int
    method: str
    path: str
    role: str
    body: bytes = b""
    content_type: str = "application/json"


def hostile() -> tuple[Hostile, ...]:
    """The hundred."""
    large = b'{"logical_date": null, "conf": {"a": [' + b"1," * 6_500_000 + b"1]}}"
    deep = b'{"conf": ' + b"[" * 10_000 + b"]" * 10_000 + b"}"
    number = b'{"conf": {"throttle": 1' + b"0" * 400 + b"}}"
    many = json.dumps({"conf": {f"p{n}": n for n in range(50_000)}}).encode()
    form = "application/x-www-form-urlencoded"
    return (
        Hostile(15, "POST", RUNS, "", large),
        Hostile(15, "POST", RUNS, "viewer", large),
        Hostile(10, "POST", RUNS, "user", large),
        Hostile(10, "POST", RUNS, "user", deep),
        Hostile(10, "POST", RUNS, "user", number),
        Hostile(10, "POST", RUNS, "user", many),
        Hostile(5, "POST", "/rehome/rebind", "", large, form),
        Hostile(5, "POST", "/rehome/rebind", "viewer", b"a&" * 99_000, form),
        Hostile(5, "GET", "/rehome/?page=1" + "0" * 400, "viewer"),
        Hostile(15, "GET", "/rehome/plans/p1/live", "viewer"),
    )


async def attack(port: int, tokens: Mapping[str, str], until: asyncio.Event) -> Counter[str]:
    """Every client sends until the end; status, or what went wrong → how often."""
    found: Counter[str] = Counter()

    async def client(one: Hostile) -> None:
        while not until.is_set():
            try:
                async with asyncio.timeout(LONGEST_CALL_S):
                    found[await sent(port, one, tokens, until)] += 1
            except (OSError, TimeoutError, asyncio.IncompleteReadError):
                found["cut off"] += 1
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(until.wait(), PAUSE_S)

    kinds = [one for one in hostile() for _ in range(one.clients)]
    assert len(kinds) == CLIENTS
    await asyncio.gather(*map(client, kinds))
    return found


async def sent(port: int, one: Hostile, tokens: Mapping[str, str], until: asyncio.Event) -> str:
    """One request; its status. A stream is read until the end of the attack."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        lines = [f"{one.method} {one.path} HTTP/1.1", "Host: localhost"]
        if one.role:
            lines.append(f"Authorization: Bearer {tokens[one.role]}")
        if one.body:
            lines += [f"Content-Type: {one.content_type}", f"Content-Length: {len(one.body)}"]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        for begin in range(0, len(one.body), 1 << 18):
            writer.write(one.body[begin : begin + (1 << 18)])
            await writer.drain()
        head = await reader.readuntil(b"\r\n\r\n")
        status = head.split()[1].decode()
        while status == "200" and not until.is_set():  # a stream
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    if not await reader.read(65_536):
                        break
        return status
    finally:
        writer.close()


async def calls(port: int, count: int) -> list[float]:
    """Milliseconds of each of so many calls of the version; fewer where they take too long in all.
    One that is not answered counts with what was waited for it.
    """
    took: list[float] = []
    ends = time.monotonic() + LONGEST_CALLS_S
    while len(took) < count and time.monotonic() < ends:
        began = time.perf_counter()
        with contextlib.suppress(TimeoutError, OSError, asyncio.IncompleteReadError):
            async with asyncio.timeout(LONGEST_CALL_S):
                await _call(port)
        took.append(1000 * (time.perf_counter() - began))
        await asyncio.sleep(0.01)
    return took


async def _call(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        lines = f"GET {VERSION} HTTP/1.1", "Host: localhost", "Connection: close", "", ""
        writer.write("\r\n".join(lines).encode())
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 200"), answer
    finally:
        writer.close()


def p99(took: Sequence[float]) -> float:
    """The value that one in a hundred exceeds."""
    return sorted(took)[max(0, int(0.99 * len(took)) - 1)]


def attacker(port: int, tokens: Mapping[str, str], seconds: float) -> None:
    """The attack, in a process of its own: what it costs is not the server's, nor the caller's."""

    async def run() -> Counter[str]:
        until = asyncio.Event()
        asyncio.get_running_loop().call_later(seconds, until.set)
        return await attack(port, tokens, until)

    print(json.dumps(asyncio.run(run())), flush=True)


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """One run: a calm server, then the same one under attack."""
    with server(options.project) as (process_id, told, directory), closing(Guard()) as guard:
        port, tokens = told["port"], told["tokens"]
        served = psutil.Process(process_id)
        asyncio.run(calls(port, 20))  # what is loaded at the first request is loaded
        asyncio.run(seen_once(port, tokens))
        calm = asyncio.run(calls(port, options.calls))
        (directory / "loop.json").unlink(missing_ok=True)
        said = directory / "attack.log"
        settings = json.dumps({"port": port, "tokens": tokens, "seconds": options.seconds})
        command = [sys.executable, "-m", "benchmarks.api_server", "--attack", settings]
        attacking = guard.spawn(command, said, dict(os.environ))
        time.sleep(3)  # the hundred are on their way
        before, began = sum(served.cpu_times()[:2]), time.monotonic()
        attacked = asyncio.run(calls(port, options.calls))
        spent = (sum(served.cpu_times()[:2]) - before) / (time.monotonic() - began)
        wait_until(lambda: attacking.poll() is not None, "the attack to end", 300)
        answers = json.loads(said.read_text().splitlines()[-1])
        loop = json.loads((directory / "loop.json").read_text())
    figures = {"calm": p99(calm), "attacked": p99(attacked), "processor": spent}
    return {**figures, "answers": answers, **loop}


async def seen_once(port: int, tokens: Mapping[str, str]) -> None:
    """Each kind of small request once: what it loads is loaded before anything is measured."""
    until = asyncio.Event()
    until.set()
    for one in hostile():
        if len(one.body) < 1_000_000:
            await sent(port, one, tokens, until)


@contextmanager
def server(project: Path) -> Iterator[tuple[int, dict[str, Any], Path]]:
    """Airflow's API server with a project's plugins: its process, its port and the tokens of roles,
    and its directory.
    """
    with tempfile.TemporaryDirectory(prefix="rehome-api-") as name, closing(Guard()) as guard:
        directory = Path(name)
        said = directory / "server.log"
        env = os.environ | {
            "AIRFLOW_HOME": str(directory / "airflow"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DAGS_FOLDER": str(project / "dags"),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(project / "plugins"),
            "AIRFLOW__API_AUTH__JWT_SECRET": "bench" * 16,
            "AIRFLOW__API__SECRET_KEY": "bench" * 8,
            "REHOME_LEDGER_URL": f"sqlite:///{directory}/ledger.db",
            "REHOME_WAREHOUSE": (directory / "warehouse").as_uri(),
            "PYTHONPATH": f"{project}:{project / 'plugins'}",
        }
        command = [sys.executable, str(SERVED), str(directory)]
        process = guard.spawn(command, said, env)

        def ready() -> str | None:
            if process.poll() is not None:
                raise RuntimeError(f"the server ended:\n{said.read_text()[-3000:]}")
            lines = said.read_text(errors="replace").splitlines() if said.exists() else []
            return next((line for line in lines if line.startswith('{"port"')), None)

        found = wait_until(ready, "Airflow's API server to be there", 180)
        assert found is not None
        yield process.pid, json.loads(found), directory


def result_of(what: str, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A row: the medians of several runs, and all that was answered."""
    answers: Counter[str] = Counter()
    for run in runs:
        answers.update(run["answers"])
    calm, attacked = (median(run[key] for run in runs) for key in ("calm", "attacked"))
    return {
        "what": what,
        "calm_ms": round(calm, 1),
        "attacked_ms": round(attacked, 1),
        "ratio": round(attacked / calm, 2),
        "processor": round(median(run["processor"] for run in runs), 2),
        "longest_handle_ms": round(max(run["longest"] for run in runs)),
        "handles_over_50_ms": sum(run["over"] for run in runs),
        "collection_ms": round(max(run["collection"] for run in runs)),
        "answers": ", ".join(f"{code}: {count}" for code, count in sorted(answers.items())),
        "load_average": round(os.getloadavg()[0], 1),
        "runs": [[round(run["calm"], 1), round(run["attacked"], 1)] for run in runs],
    }


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=30.0, help="how long an attack lasts")
    parser.add_argument("--what", default="now", help="names the row, which it replaces")
    parser.add_argument("--project", type=Path, default=ROOT, help="a checkout to be measured")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--attack", type=json.loads, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main() -> None:
    options = parsed()
    if options.attack:
        attacker(**options.attack)
        return
    row = result_of(options.what, [measured(options) for _ in range(options.runs)])
    there = json.loads(options.out.read_text()) if options.out.exists() else {"rows": []}
    rows = [*(each for each in there["rows"] if each["what"] != options.what), row]
    date = datetime.now(UTC).isoformat(timespec="seconds")
    result = {"date": date, "cores": os.cpu_count(), "rows": rows}
    options.out.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(row))
    print(
        f"p99 of {options.calls} calls, median of {options.runs} runs: {row['calm_ms']} ms calm, "
        f"{row['attacked_ms']} ms attacked, {row['ratio']} times as long"
    )
    if options.out == RESULTS:
        made = f"Made {date[:10]} on {os.cpu_count()} cores."
        put(DOCUMENT, "bench-http", [made, "", *table(COLUMNS, rows)])


if __name__ == "__main__":
    main()
