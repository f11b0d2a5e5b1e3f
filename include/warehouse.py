"""The warehouse: snapshots and plans as Parquet and JSON, wherever fsspec reaches.

    snapshots/cluster=<id>/taken_at=<utc>/{brokers,log_dirs,topics,replicas}.parquet, snapshot.json
    plans/<plan_id>/…                                       (docs/schema.md documents every file)

``snapshot.json`` is written last: a snapshot without it was never finished and is not read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from include.cluster.snapshot import REPLICAS, Snapshot
from include.errors import RehomeError
from include.planning.kafka_json import reassignment_text, rollback_text
from include.planning.plan import (
    Move,
    Plan,
    moves_from_table,
    moves_table,
    summary_from_json,
    summary_to_json,
)
from include.planning.request import ReassignmentRequest, request_to_params

TABLES = ("brokers", "log_dirs", "topics", "replicas")
OF_ONE_PLAN = (
    *("summary.json", "moves.parquet", "reassignment.json", "rollback.json", "gates.json"),
    *("failure.json", "dry_run.json", "verification.json", "leaders.json", "report.html"),
)
"""What a plan's directory holds, but for the request: the plan and what was found about it."""


class _Directory:
    """Files below one URI."""

    def __init__(self, uri: str) -> None:
        self.uri = uri if uri.endswith("://") else uri.rstrip("/")
        self._fs, self._path = fsspec.core.url_to_fs(self.uri)

    def exists(self, name: str) -> bool:
        """Whether the file is there."""
        return bool(self._fs.exists(f"{self._path}/{name}"))

    def write_text(self, name: str, text: str | Iterable[str]) -> str:
        """Write a file, whole or piece by piece, and return its URI.

        A reader never sees half of it on a local disk.
        """
        self._fs.makedirs(self._path, exist_ok=True)
        target, part = f"{self._path}/{name}", f"{self._path}/.{name}.part"
        with self._fs.open(part, "w", encoding="utf-8") as file:
            file.writelines([text] if isinstance(text, str) else text)
        self._fs.mv(part, target)
        return f"{self.uri}/{name}"

    def read_text(self, name: str) -> str:
        """The file's text.

        :raises RehomeError: when it is not there.
        """
        try:
            with self._fs.open(f"{self._path}/{name}", "r", encoding="utf-8") as file:
                return str(file.read())
        except FileNotFoundError:
            raise self._missing(name) from None

    def write_json(self, name: str, content: Any) -> str:
        """Write a JSON file and return its URI."""
        return self.write_text(name, json.dumps(content, indent=2) + "\n")

    def read_json(self, name: str) -> Any:
        """The parsed file."""
        return json.loads(self.read_text(name))

    def remove(self, name: str) -> None:
        """Delete the file if it is there."""
        if self.exists(name):
            self._fs.rm(f"{self._path}/{name}")

    def write_table(self, name: str, table: pa.Table) -> None:
        """Write a Parquet file."""
        self._fs.makedirs(self._path, exist_ok=True)
        with self._fs.open(f"{self._path}/{name}", "wb") as file:
            pq.write_table(table, file)

    def read_table(self, name: str) -> pa.Table:
        """Read a Parquet file, or a directory of them as Spark writes it.

        :raises RehomeError: when it is not there, or is no Parquet.
        """
        try:
            return pq.read_table(f"{self._path}/{name}", filesystem=self._fs, partitioning=None)
        except FileNotFoundError:
            raise self._missing(name) from None
        except pa.ArrowInvalid as error:
            raise RehomeError(
                f"{self.uri}/{name} cannot be read: {error}",
                next_step="It was damaged after it was written: take a new one.",
            ) from None

    def _missing(self, name: str) -> RehomeError:
        return RehomeError(
            f"{self.uri}/{name} does not exist",
            next_step="Check the id, and that this is the warehouse it was written to.",
        )


class PlanDirectory(_Directory):
    """The files of one plan: ``plans/<plan_id>/``."""

    def discard(self) -> None:
        """Remove the plan and what was found about it; only the request stays."""
        for name in OF_ONE_PLAN:
            self.remove(name)

    def save(self, plan: Plan, request: ReassignmentRequest) -> None:
        """Write moves, request, Kafka's reassignment file, the way back, and last the summary:
        a plan without it was never finished.
        """
        self.write_json("request.json", request_to_params(request))
        self.write_table("moves.parquet", moves_table(plan.moves))
        self.write_text("rollback.json", rollback_text(plan.moves))
        self.write_text("reassignment.json", reassignment_text(plan.moves))
        content = summary_to_json(plan.summary)
        content["allow_replication_factor_change"] = plan.allow_replication_factor_change
        self.write_json("summary.json", content)

    def load(self) -> Plan:
        """The plan as it was saved.

        :raises RehomeError: when there is none.
        """
        content = self.read_json("summary.json")
        allow = content.pop("allow_replication_factor_change")
        summary = summary_from_json(content)
        return Plan(
            plan_id=summary.plan_id,
            cluster_id=summary.cluster_id,
            action=summary.action,
            moves=self.moves(),
            summary=summary,
            allow_replication_factor_change=allow,
        )

    def moves(self) -> tuple[Move, ...]:
        """The plan's moves, in partition order."""
        return moves_from_table(self.read_table("moves.parquet"))


class Warehouse(_Directory):
    """Everything Rehome keeps in files.

    :param uri: any fsspec URI (file://, s3://, hdfs://, memory://).
    """

    def write_snapshot(self, snapshot: Snapshot) -> str:
        """Write a snapshot; returns its URI."""
        directory = _Directory(f"{self.uri}/snapshots/{snapshot.name}")
        for table in TABLES:
            directory.write_table(f"{table}.parquet", getattr(snapshot, table))
        directory.write_json(
            "snapshot.json",
            {
                "cluster_id": snapshot.cluster_id,
                "taken_at": snapshot.taken_at.isoformat(),
                "duration_s": snapshot.duration_s,
                "hidden_topics": list(snapshot.hidden_topics),
            },
        )
        return directory.uri

    def latest_snapshot(self, cluster_id: str) -> str | None:
        """URI of the newest finished snapshot of a cluster, or None."""
        base = f"{self._path}/snapshots/cluster={cluster_id}"
        found = sorted(self._fs.glob(f"{base}/taken_at=*/snapshot.json"))
        if not found:
            return None
        name = found[-1].rsplit("/", 2)[1]
        return f"{self.uri}/snapshots/cluster={cluster_id}/{name}"

    def plan(self, plan_id: str) -> PlanDirectory:
        """The directory of a plan, there or not."""
        return PlanDirectory(f"{self.uri}/plans/{plan_id}")


def read_snapshot(uri: str, *, replicas: bool = True) -> Snapshot:
    """Read the snapshot at a URI.

    :param replicas: false leaves that table empty: Spark reads it where it is needed.
    :raises RehomeError: when there is none, or it was never finished.
    """
    directory = _Directory(uri)
    content: Mapping[str, Any] = directory.read_json("snapshot.json")
    return Snapshot(
        cluster_id=content["cluster_id"],
        taken_at=datetime.fromisoformat(content["taken_at"]),
        duration_s=content["duration_s"],
        hidden_topics=tuple(content["hidden_topics"]),
        **{
            table: directory.read_table(f"{table}.parquet")
            if replicas or table != "replicas"
            else REPLICAS.empty_table()
            for table in TABLES
        },
    )
