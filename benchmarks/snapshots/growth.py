"""How much data a day leaves, at 100,000 partitions: `make bench-growth`.

Writes benchmarks/results/growth.json, and a table into docs/howto/keep.md. The warehouse is a
folder, the ledger an SQLite file, as large as it is after VACUUM. A snapshot has every table
filled, as :mod:`benchmarks.snapshots.load` makes it. The plan moves a part of the partitions, with
a sample at each poll, as a run has them.
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

from benchmarks.document import DOCS, put, table
from benchmarks.snapshots.load import CLUSTER, History
from rehome.domain.kafka import ReplicaId, TopicPartition
from rehome.domain.plan.kafka_json import reassignment_json
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.request.parse_request import parse_request
from rehome.domain.run.flows import BrokerFlow, FlowSample
from rehome.domain.run.observation import Observation
from rehome.domain.run.progress import ProgressSample, ReplicaState, ReplicaStatus
from rehome.domain.run.states import MoveState, PlanState, Settle
from rehome.ledger.store import Ledger
from rehome.ledger.stores.authority.taken_snapshots import TakenSnapshot
from rehome.scheduled.cluster_dags import EVERY
from rehome.warehouse import Warehouse
from world.plan_of_moves import plan_of_moves

RESULTS = Path(__file__).parents[1] / "results" / "growth.json"
DOCUMENT = DOCS / "howto" / "keep.md"
COLUMNS = {"what": "what", "MB": "mb", "MB a day": "mb_a_day", "MB that are kept": "mb_kept"}
START = datetime(2026, 1, 5, tzinfo=UTC)
BROKERS, SIZE_BYTES, RF = 100, 1_000_000_000, 3
SNAPSHOT_DAYS, PLAN_DAYS = 7, 400
"""Defaults of ``snapshot_retention_days`` and ``plan_retention_days``."""


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


def carry_out(ledger: Ledger, clock: RunningClock, warehouse: Warehouse, asked: Any) -> None:
    """A plan from its first row to its last, with its files."""
    moves = moves_of(asked.moves)
    plan = plan_of_moves("bench", CLUSTER, moves, 50_000_000)
    directory = warehouse.plan(plan.plan_id)
    request = {"action": "reassign", "reassignment": reassignment_json(plan.moves)}
    directory.save(plan, parse_request(request))
    ledger.create_plan(plan, {"action": "rebalance"}, directory.uri, "run", "bench")
    ledger.approve(plan.plan_id, plan.plan_hash, "bench")
    ledger.claim(plan.plan_id)
    done = 0
    for flying in in_parts(moves, int(asked.hours * 3600 / asked.poll_s)):
        nothing = Observation(clock.at, {}, {}, frozenset())
        ledger.admit(plan.plan_id, flying, nothing, None)
        before, clock.at = clock.at, clock.at + timedelta(seconds=asked.poll_s)
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
        carry_out(ledger, clock, warehouse, asked)
    rows_of_plan = ledger_bytes(file) - empty - rows_of_snapshots
    files_of_plan = bytes_below(folder / "w") - of_snapshot
    plan = f"plan of {asked.moves:,} moves, {asked.hours:g} hours"
    return [
        _row("snapshot, files", of_snapshot, snapshots, SNAPSHOT_DAYS),
        _row("snapshot, rows", rows_of_snapshots / snapshots, snapshots, SNAPSHOT_DAYS),
        _row(f"{plan}: files", files_of_plan, 1, PLAN_DAYS),
        _row(f"{plan}: rows", rows_of_plan, 1, PLAN_DAYS),
    ]


def _row(what: str, size_bytes: float, a_day: float, days: int) -> dict[str, Any]:
    mb = size_bytes / 1e6
    kept = round(mb * a_day * days)
    return {"what": what, "mb": round(mb, 3), "mb_a_day": round(mb * a_day, 2), "mb_kept": kept}


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
    made = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": platform.machine()}
    RESULTS.write_text(json.dumps([{**made, **vars(asked), "rows": rows}], indent=1) + "\n")
    about = (
        f"{asked.partitions:,} partitions of {RF} replicas on {BROKERS} brokers, a snapshot every "
        f"{EVERY.total_seconds() / 60:g} minutes for {SNAPSHOT_DAYS} days, a plan a day for "
        f"{PLAN_DAYS} days; {made['date']}, {made['machine']}:"
    )
    put(DOCUMENT, "bench-growth", [about, "", *table(COLUMNS, rows), ""])
    for row in rows:
        print(row)


if __name__ == "__main__":
    main()
