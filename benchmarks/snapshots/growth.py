"""How much data a day leaves, at 100,000 partitions: `make bench-growth`.

Writes benchmarks/results/growth.json, and two tables into docs/howto/keep.md: what a day leaves,
and what a plan, a move and a poll leave each. The warehouse is a folder, the ledger an SQLite
file, as large as it is after VACUUM. A snapshot has every table filled, as
:mod:`benchmarks.snapshots.load` makes it. The plan of a day moves a part of the partitions, with a
sample at each poll, as a run has them. The plan that shows what any plan leaves is made by the plan
job, with both gates and their Data Docs, and has a report.
"""

from __future__ import annotations

import argparse
import json
import platform
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.clusters import Case, build, snapshot_of
from benchmarks.document import DOCS, put, table
from benchmarks.planning.job import submitted
from benchmarks.snapshots.load import CLUSTER, History
from rehome.domain.kafka import ReplicaId, TopicPartition
from rehome.domain.plan.kafka_json import reassignment_json
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.plan.plan import Plan
from rehome.domain.request.parse_request import parse_request
from rehome.domain.run.flows import BrokerFlow, FlowSample
from rehome.domain.run.observation import Observation
from rehome.domain.run.progress import ProgressSample, ReplicaState, ReplicaStatus
from rehome.domain.run.states import MoveState, PlanState, Settle
from rehome.ledger.store import Ledger
from rehome.ledger.stores.authority.taken_snapshots import TakenSnapshot
from rehome.reporting.collect import write_plan_report
from rehome.scheduled.cluster_dags import EVERY
from rehome.warehouse import PlanDirectory, Warehouse
from world.plan_of_moves import plan_of_moves

RESULTS = Path(__file__).parents[1] / "results" / "growth.json"
DOCUMENT = DOCS / "howto" / "keep.md"
COLUMNS = {"what": "what", "MB": "mb", "MB a day": "mb_a_day", "MB that are kept": "mb_kept"}
EACH_COLUMNS = {"each": "each", "kB of files": "files_kb", "kB of rows": "rows_kb"}
START = datetime(2026, 1, 5, tzinfo=UTC)
BROKERS, SIZE_BYTES, RF = 100, 1_000_000_000, 3
SNAPSHOT_DAYS, PLAN_DAYS = 7, 400
"""Defaults of ``snapshot_retention_days`` and ``plan_retention_days``."""
LEAST_PARTITIONS, LEAST_BROKERS = 100, 12
"""Of the cluster of the plan that shows what any plan leaves."""
EACH_POLL = "poll of the last half hour, for each broker that copies"
POLLS = 300
"""So many polls of one plan show what one leaves; the ledger keeps all of what half an hour has."""


class RunningClock:
    """What the ledger writes as the time of a change."""

    def __init__(self) -> None:
        self.at = START

    def __call__(self) -> datetime:
        """Now."""
        return self.at


def moves_of(count: int) -> list[Move]:
    """Moves of the first partitions, each of one replica."""
    found = []
    for number in range(count):
        current = tuple((number + each) % BROKERS for each in range(RF))
        target = (*current[:-1], (number + RF) % BROKERS)
        partition = TopicPartition(f"topic-{number // 50:06}", number % 50)
        found.append(Move(partition, current, target, SIZE_BYTES, MoveReason.BALANCE))
    return found


def bytes_below(folder: Path) -> int:
    """Of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def ledger_bytes(file: Path) -> int:
    """Of the ledger without room that is free in it."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return file.stat().st_size


def in_parts(moves: Sequence[Move], parts: int) -> Iterator[list[Move]]:
    """Moves that are in flight together, part by part."""
    for number in range(parts):
        yield list(moves[number * len(moves) // parts : (number + 1) * len(moves) // parts])


def planned(warehouse: Warehouse, count: int) -> tuple[Plan, PlanDirectory]:
    """A plan of some moves with the files that it is carried out by."""
    plan = plan_of_moves("bench", CLUSTER, moves_of(count), 50_000_000)
    directory = warehouse.plan(plan.plan_id)
    request = {"action": "reassign", "reassignment": reassignment_json(plan.moves)}
    directory.save(plan, parse_request(request))
    return plan, directory


def carry_out(
    ledger: Ledger,
    clock: RunningClock,
    plan: Plan,
    directory: PlanDirectory,
    polls: int,
    poll_s: float,
) -> None:
    """A plan from its first row to its last."""
    moves = plan.moves
    ledger.create_plan(plan, {"action": "rebalance"}, directory.uri, "run", "bench")
    ledger.approve(plan.plan_id, plan.plan_hash, "bench")
    ledger.claim(plan.plan_id)
    done = 0
    for flying in in_parts(moves, polls):
        nothing = Observation(clock.at, {}, {}, frozenset())
        ledger.admit(plan.plan_id, flying, nothing, None)
        before, clock.at = clock.at, clock.at + timedelta(seconds=poll_s)
        statuses = [
            ReplicaStatus(ReplicaId(*move.partition, move.adding[0]), ReplicaState.BEHIND, clock.at)
            for move in flying
        ]
        done += len(flying)
        sample = ProgressSample(
            clock.at,
            done * SIZE_BYTES,
            len(moves) * SIZE_BYTES,
            done,
            len(moves),
            len(flying),
            1_000,
            5e8,
            60.0,
        )
        flows = tuple(
            BrokerFlow(direction, broker, 1_000_000_000, 500_000_000, 3)
            for broker in range(BROKERS)
            for direction in ("in", "out")
        )
        ledger.add_samples(plan.plan_id, statuses, sample, FlowSample(before, clock.at, flows))
        ended = [Settle(move.partition, MoveState.DONE) for move in flying]
        ledger.settle_all(plan.plan_id, ended)
    ledger.transition(plan.plan_id, PlanState.DONE, "every move is done")


def measured(asked: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """A row for each kind of data: once, a day, and as much as is kept."""
    warehouse, clock, file = Warehouse((folder / "w").as_uri()), RunningClock(), folder / "l.db"
    snapshots = timedelta(days=1) / EVERY
    warehouse.write_snapshot(History(asked.partitions, RF).snapshot(3600.0))
    of_snapshot = bytes_below(folder / "w")
    with Ledger.open(f"sqlite:///{file}", clock=clock) as ledger:
        empty = ledger_bytes(file)
        for number in range(round(snapshots)):
            at = START + number * EVERY
            name = f"cluster={CLUSTER}/taken_at={at:%Y%m%dT%H%M%SZ}"
            where = ("collect_snapshots", f"scheduled__{at.isoformat()}", "snapshot")
            ledger.record_snapshot(
                TakenSnapshot(name, CLUSTER, "kafka_default", at, "0" * 64, *where)
            )
        rows_of_snapshots = ledger_bytes(file) - empty
        polls = int(asked.hours * 3600 / asked.poll_s)
        carry_out(ledger, clock, *planned(warehouse, asked.moves), polls, asked.poll_s)
    rows_of_plan = ledger_bytes(file) - empty - rows_of_snapshots
    files_of_plan = bytes_below(folder / "w") - of_snapshot
    plan = f"plan of {asked.moves:,} moves, {asked.hours:g} hours"
    return [
        _row("snapshot, files", of_snapshot, snapshots, SNAPSHOT_DAYS),
        _row("snapshot, rows", rows_of_snapshots / snapshots, snapshots, SNAPSHOT_DAYS),
        _row(f"{plan}: files", files_of_plan, 1, PLAN_DAYS),
        _row(f"{plan}: rows", rows_of_plan, 1, PLAN_DAYS),
    ]


def rows_of(plan: Plan, directory: PlanDirectory, polls: int, poll_s: float) -> int:
    """Bytes that a plan leaves in a ledger of its own; its report is written.

    :raises RehomeError: the directory does not hold the plan.
    """
    with tempfile.TemporaryDirectory() as folder:
        file, clock = Path(folder) / "l.db", RunningClock()
        with Ledger.open(f"sqlite:///{file}", clock=clock) as ledger:
            empty = ledger_bytes(file)
            carry_out(ledger, clock, plan, directory, polls, poll_s)
            write_plan_report(directory, ledger)
        return ledger_bytes(file) - empty


def each_measured(asked: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """A row for what any plan, a move, and a poll of a broker leave: what it has more than less."""
    least, directory = least_plan(folder)
    rows = rows_of(least, directory, 1, asked.poll_s)
    files = bytes_below(Path(directory.uri.removeprefix("file://")))
    many, of_many = planned(Warehouse((folder / "many").as_uri()), asked.moves)
    of_moves = rows_of(many, of_many, 1, asked.poll_s) - rows
    of_polls = rows_of(least, directory, POLLS, asked.poll_s) - rows
    files_of_moves = bytes_below(folder / "many")
    return [
        _each("plan, whatever it moves, with its first poll", files, rows),
        _each("move", files_of_moves / asked.moves, of_moves / asked.moves),
        _each(EACH_POLL, 0, of_polls / (POLLS - 1) / BROKERS),
    ]


def least_plan(folder: Path) -> tuple[Plan, PlanDirectory]:
    """A plan of one move by the plan job: gates, Data Docs and all files."""
    snapshot = snapshot_of(build(Case("small"), LEAST_PARTITIONS, LEAST_BROKERS))
    uri = Warehouse((folder / "least").as_uri()).write_snapshot(snapshot)
    request, directory = folder / "request.json", PlanDirectory((folder / "plan").as_uri())
    first = snapshot.replicas.slice(0, 3).to_pylist()
    held = [replica["broker"] for replica in first]
    spare = next(broker for broker in range(LEAST_BROKERS) if broker not in held)
    moved = {"topic": first[0]["topic"], "partition": first[0]["partition"]}
    wanted = {"version": 1, "partitions": [{**moved, "replicas": [*held[:-1], spare]}]}
    request.write_text(json.dumps({"action": "reassign", "reassignment": wanted}))
    submitted("plan.py", "--snapshot", uri, "--request", str(request), "--out", directory.uri)
    return directory.load(), directory


def _each(what: str, files_bytes: float, rows_bytes: float) -> dict[str, Any]:
    return {
        "each": what,
        "files_kb": round(files_bytes / 1e3, 3),
        "rows_kb": round(rows_bytes / 1e3, 3),
    }


def _row(what: str, size_bytes: float, a_day: float, days: int) -> dict[str, Any]:
    mb = size_bytes / 1e6
    kept = round(mb * a_day * days)
    return {"what": what, "mb": round(mb, 4), "mb_a_day": round(mb * a_day, 2), "mb_kept": kept}


def main() -> None:
    """Measure, and write figures and table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--moves", type=int, default=10_000, help="of the plan of each day")
    parser.add_argument("--hours", type=float, default=4.0, help="that the plan takes")
    parser.add_argument("--poll-s", type=float, default=5.0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measured(asked, Path(folder))
        each = each_measured(asked, Path(folder))
    made = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": platform.machine()}
    result = {**made, **vars(asked), "rows": rows, "each": each}
    RESULTS.write_text(json.dumps([result], indent=1) + "\n")
    about = (
        f"{asked.partitions:,} partitions of {RF} replicas on {BROKERS} brokers, a snapshot every "
        f"{EVERY.total_seconds() / 60:g} minutes for {SNAPSHOT_DAYS} days, a plan a day for "
        f"{PLAN_DAYS} days; {made['date']}, {made['machine']}:"
    )
    tables = [*table(COLUMNS, rows), "", *table(EACH_COLUMNS, each)]
    put(DOCUMENT, "bench-growth", [about, "", *tables, ""])
    for row in (*rows, *each):
        print(row)


if __name__ == "__main__":
    main()
