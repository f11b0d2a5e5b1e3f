"""The warehouse: snapshots and plans as Parquet and JSON, wherever fsspec reaches.

    snapshots/cluster=<id>/taken_at=<utc>/{brokers,…}.parquet, snapshot.json
    rollups/cluster=<id>/day=<date>/rollup.parquet
    plans/<plan_id>/…                                       (docs/schema.md documents every file)

``snapshot.json`` is written last: a snapshot without it was never finished and is not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem

from rehome.cluster.snapshot.model import REPLICAS, TABLES, Snapshot
from rehome.directory import Directory
from rehome.domain.plan.kafka_json import REASSIGNMENT_FILE, ROLLBACK_FILE, KafkaFiles
from rehome.domain.plan.move import Move
from rehome.domain.plan.move_table import as_moves, moves_from_table, moves_table
from rehome.domain.plan.plan import Plan
from rehome.domain.plan.summary import summary_from_json, summary_to_json
from rehome.domain.request.param_types import checked_plan_id
from rehome.domain.request.request import ReassignmentRequest, request_to_params
from rehome.errors import RehomeError
from rehome.places.path_parts import id_of, ids_of, path_part
from rehome.places.uris import is_below
from rehome.private_files import folder

ROLLUP_FILE = "rollup.parquet"
SNAPSHOT_FILE = "snapshot.json"
_SNAPSHOT = re.compile(r"cluster=([A-Za-z0-9_.~-]+)/taken_at=[0-9T.]+Z")
OF_ONE_PLAN = (
    *("summary.json", "moves.parquet", "reassignment.json", "rollback.json", "gates.json"),
    *(
        "failure.json",
        "load.json",
        "dry_run.json",
        "verification.json",
        "leaders.json",
        "drained.json",
        "export.json",
        "report.html",
    ),
)
"""What a plan's directory holds, but for the request and the cluster's settings, which are there
before: the plan and what was found about it."""


class RollupDirectory(Directory):
    """Daily rollups of one cluster: ``rollups/cluster=<id>/day=<date>/rollup.parquet``."""

    def days(self) -> list[str]:
        """Days that have a rollup, in order: 2026-01-02."""
        paths = self.fs.glob(f"{self.path}/day=*/{ROLLUP_FILE}")
        return sorted(str(path).rsplit("/", 2)[1].removeprefix("day=") for path in paths)

    def read(self, day: str) -> pa.Table:
        """The rollup of a day.

        :raises RehomeError: when there is none.
        """
        return self._of(day).read_table(ROLLUP_FILE)

    def metadata(self, day: str) -> dict[bytes, bytes]:
        """The schema's metadata of a day's rollup, without reading the rows."""
        directory = self._of(day)
        with directory.fs.open(f"{directory.path}/{ROLLUP_FILE}", "rb") as file:
            return dict(pq.read_schema(file).metadata or {})

    def write(self, day: str, table: pa.Table) -> None:
        """Write, or replace, the rollup of a day."""
        self._of(day).write_table(ROLLUP_FILE, table)

    def discard(self, day: str) -> None:
        """Remove a day's rollup."""
        self.fs.rm(f"{self.path}/day={day}", recursive=True)

    def _of(self, day: str) -> Directory:
        return Directory(f"{self.uri}/day={day}")


class PlanExistsError(RehomeError):
    """A finished plan is where another one was to be written."""


class PlanDirectory(Directory):
    """The files of one plan: ``plans/<plan_id>/``. A finished plan is never replaced."""

    def discard(self) -> None:
        """Remove what a planning that did not come to its end has left; only the request stays, and
        the record of what the cluster had (settings.json).

        The caller knows that no ledger has recorded the plan.
        """
        for name in OF_ONE_PLAN:
            self.remove(name)

    def remove_all(self) -> None:
        """Remove the folder of the plan with all that is in it; there or not.

        :raises OSError: it cannot be removed, or not all of it.
        """
        if self.fs.exists(self.path):
            self.fs.rm(self.path, recursive=True)

    def folder(self, name: str) -> PlanDirectory:
        """A folder of further files."""
        return PlanDirectory(f"{self.uri}/{name}")

    def replace_folder(self, name: str, texts: Mapping[str, str]) -> str:
        """Write the files of a folder, and remove what else an earlier run has left there.

        :param texts: name → text. :return: the folder's URI.
        """
        folder = self.folder(name)
        for file, text in texts.items():
            folder.write_text(file, text)
        for path in folder.fs.glob(f"{folder.path}/*"):
            file = str(path).rsplit("/", 1)[1]
            if file not in texts:
                folder.remove(file)
        return folder.uri

    def refuse_finished(self) -> None:
        """See that there is free space for a plan.

        :raises PlanExistsError: there is one.
        """
        if self.exists("summary.json"):
            raise PlanExistsError(
                f"There is a plan at {self.uri}, and plans are never replaced",
                state_left="That plan stays as it is, and no other was made.",
                next_step="Plan into another directory.",
            )

    def save(
        self, plan: Plan, request: ReassignmentRequest, files: KafkaFiles | None = None
    ) -> None:
        """Write moves, request, Kafka's reassignment file, the way back, and last the summary:
        a plan without it was never finished.

        :param files: those that the gate has checked; None = none were checked.
        :raises PlanExistsError: there is a finished plan.
        """
        self.refuse_finished()
        files = files or KafkaFiles.of(plan.moves)
        self.write_json("request.json", request_to_params(request))
        self.write_table("moves.parquet", moves_table(plan.moves))
        self.write_text(ROLLBACK_FILE, files.rollback)
        self.write_text(REASSIGNMENT_FILE, files.reassignment)
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

    def file_digests(self) -> dict[str, str]:
        """Name of each of Kafka's files → SHA-256 (hex) of the bytes that are there.

        :raises RehomeError: one of them is not.
        """
        return {name: self.digest(name) for name in (REASSIGNMENT_FILE, ROLLBACK_FILE)}

    def moves(self) -> tuple[Move, ...]:
        """The plan's moves, in partition order."""
        return moves_from_table(as_moves(self.read_table("moves.parquet")))


class Warehouse(Directory):
    """Everything Rehome keeps in files.

    :param uri: any fsspec URI (file://, s3://, hdfs://, memory://).
    """

    def close_to_others(self, mode: int) -> None:
        """See that the folder is there with this mode at most, where it is on a disk.

        What is in it needs no mode of its own: nobody gets to it otherwise.
        """
        if isinstance(self.fs, LocalFileSystem):
            with suppress(OSError):  # who only reads may have it mounted so; who writes will say
                folder(Path(self.path), mode)

    def write_snapshot(self, snapshot: Snapshot) -> str:
        """Write a snapshot; returns its URI."""
        directory = Directory(self.snapshot_uri(snapshot.name))
        for table in TABLES:
            directory.write_table(f"{table}.parquet", getattr(snapshot, table))
        directory.write_json(
            SNAPSHOT_FILE,
            {
                "cluster_id": snapshot.cluster_id,
                "taken_at": snapshot.taken_at.isoformat(),
                "duration_s": snapshot.duration_s,
                "hidden_topics": list(snapshot.hidden_topics),
                "digests": {name: directory.digest(name) for name in _table_files()},
            },
        )
        return directory.uri

    def snapshot_digest(self, name: str) -> str:
        """SHA-256 (hex) of a snapshot's ``snapshot.json``, which has those of its tables; "" = the
        tables are others.

        :raises RehomeError: it is not there.
        """
        directory = Directory(self.snapshot_uri(name))
        digests = directory.read_json(SNAPSHOT_FILE).get("digests", {})
        same = all(digests.get(name) == directory.digest(name) for name in _table_files())
        return directory.digest(SNAPSHOT_FILE) if same else ""

    def snapshot_uri(self, name: str) -> str:
        """URI of a snapshot by its name, as the ledger and a plan's summary have it.

        :raises RehomeError: no snapshot can have this name.
        """
        if not is_snapshot(name):
            raise RehomeError(
                f"{name[:200]!r} is the name of no snapshot",
                next_step="The file that names it was damaged after it was written. Trigger a new "
                "run.",
            )
        return f"{self.uri}/snapshots/{name}"

    def latest_snapshot(self, cluster_id: str) -> str | None:
        """URI of the newest finished snapshot of a cluster, or None."""
        uris = self.snapshots(cluster_id)
        return uris[-1] if uris else None

    def snapshots(self, cluster_id: str) -> list[str]:
        """URIs of a cluster's finished snapshots, in order of time."""
        below = f"snapshots/cluster={path_part(cluster_id)}"
        paths = self.fs.glob(f"{self.path}/{below}/taken_at=*/snapshot.json")
        names = sorted(str(path).rsplit("/", 2)[1] for path in paths)
        return [f"{self.uri}/{below}/{name}" for name in names]

    def clusters(self) -> list[str]:
        """Ids of the clusters that have snapshots."""
        paths = self.fs.glob(f"{self.path}/snapshots/cluster=*")
        return ids_of(str(path).rstrip("/").rsplit("cluster=", 1)[1] for path in paths)

    def remove_snapshot(self, uri: str) -> None:
        """Remove a snapshot, first of all what makes it a finished one."""
        directory = Directory(uri)
        directory.remove(SNAPSHOT_FILE)
        self.fs.rm(directory.path, recursive=True)

    def planned_snapshots(self) -> set[str]:
        """URIs of the snapshots that plans were made on, as far as plans name any."""
        directories = (PlanDirectory(f"{self.uri}/plans/{name}") for name in self.finished_plans())
        planned_on = {str(plan.read_json("summary.json")["snapshot"]) for plan in directories}
        return {self.snapshot_uri(name) for name in planned_on if is_snapshot(name)}

    def rollups(self, cluster_id: str) -> RollupDirectory:
        """The rollups of a cluster, there or not."""
        return RollupDirectory(f"{self.uri}/rollups/cluster={path_part(cluster_id)}")

    def finished_plans(self) -> list[str]:
        """Ids of all plans that were made to their end, whichever ledger has recorded them."""
        paths = self.fs.glob(f"{self.path}/plans/*/summary.json")
        return sorted(str(path).rsplit("/", 2)[1] for path in paths)

    def plan_folders(self) -> list[str]:
        """Names of all folders of plans, finished or not."""
        paths = self.fs.glob(f"{self.path}/plans/*/")
        return sorted(str(path).rstrip("/").rsplit("/", 1)[1] for path in paths)

    def plan_that_ends(self, ending: str) -> PlanDirectory | None:
        """The directory of the plan whose id ends so, finished or not; None = there is none."""
        paths = self.fs.glob(f"{self.path}/plans/*-{ending}")
        names = sorted(str(path).rstrip("/").rsplit("/", 1)[1] for path in paths)
        return PlanDirectory(f"{self.uri}/plans/{names[-1]}") if names else None

    @property
    def quality_uri(self) -> str:
        """Where the project of Great Expectations is: suites, checkpoints, results of the gates."""
        return f"{self.uri}/quality"

    def plan(self, plan_id: str) -> PlanDirectory:
        """The directory of a plan, there or not.

        :raises InvalidRequestError: no plan can have this id, for it holds a path.
        """
        return PlanDirectory(f"{self.uri}/plans/{checked_plan_id(plan_id)}")

    def plan_at(self, plan_dir: str) -> PlanDirectory:
        """The directory of a plan, as the ledger has recorded it.

        :raises RehomeError: it is not in this warehouse.
        """
        refuse_outside(plan_dir, self.uri)
        return PlanDirectory(plan_dir)


def is_snapshot(name: str) -> bool:
    """Whether a snapshot can have this name."""
    match = _SNAPSHOT.fullmatch(name)
    return match is not None and bool(ids_of([match[1]]))


def _table_files() -> list[str]:
    return [f"{table}.parquet" for table in TABLES]


def refuse_outside(uri: str, warehouse_uri: str) -> None:
    """See that a URI lies in the warehouse.

    :raises RehomeError: it does not.
    """
    if not is_below(uri, warehouse_uri):
        raise RehomeError(
            f"{uri[:300]} is not in the warehouse, {warehouse_uri}",
            state_left="Nothing was read there.",
            next_step="If the warehouse was moved, set the setting warehouse back to where it was "
            "until the plans that were made there have ended.",
        )


def taken_at_of(snapshot_uri: str) -> datetime:
    """When a snapshot was taken, by its URI."""
    name = snapshot_uri.rstrip("/").rsplit("taken_at=", 1)[1]
    return datetime.strptime(name, "%Y%m%dT%H%M%S.%fZ").replace(tzinfo=UTC)


def cluster_of(snapshot_uri: str) -> str:
    """The id of the cluster that a snapshot is of, by its URI."""
    return id_of(snapshot_uri.rsplit("/cluster=", 1)[1].split("/", 1)[0])


def replicas_uri(uri: str) -> str:
    """Where the snapshot at a URI keeps its replicas, for readers other than this module."""
    return f"{uri.rstrip('/')}/replicas.parquet"


def replicas_in(uri: str) -> int:
    """How many replicas the snapshot at a URI has.

    :raises RehomeError: when there is none.
    """
    return Directory(uri).count_rows("replicas.parquet")


def read_snapshot(uri: str, *, replicas: bool = True) -> Snapshot:
    """Read the snapshot at a URI.

    :param replicas: false leaves that table empty: Spark reads it where it is needed.
    :raises RehomeError: when there is none, or it was never finished.
    """
    directory = Directory(uri)
    content: Mapping[str, Any] = directory.read_json(SNAPSHOT_FILE)
    return Snapshot(
        cluster_id=content["cluster_id"],
        taken_at=datetime.fromisoformat(content["taken_at"]),
        duration_s=content["duration_s"],
        hidden_topics=tuple(content["hidden_topics"]),
        **{
            table: _with_new_columns(directory.read_table(f"{table}.parquet"), schema)
            if replicas or table != "replicas"
            else REPLICAS.empty_table()
            for table, schema in TABLES.items()
        },
    )


def _with_new_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with the nullable columns that were not there yet when it was written."""
    for column in schema:
        if column.nullable and column.name not in table.column_names:
            table = table.append_column(column, pa.nulls(table.num_rows, column.type))
    return table
