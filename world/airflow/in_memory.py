"""A warehouse in memory: text as text, snapshots and moves as the objects they are.

Parquet is left out, as it would cost more than all that is simulated; tests/test_warehouse.py has
it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.plan.kafka_json import REASSIGNMENT_FILE, ROLLBACK_FILE, KafkaFiles
from rehome.domain.plan.plan import Plan
from rehome.domain.plan.summary import summary_to_json
from rehome.domain.request.param_types import checked_plan_id
from rehome.domain.request.request import ReassignmentRequest, request_to_params
from rehome.errors import RehomeError
from rehome.warehouse import PlanDirectory, Warehouse, is_snapshot, refuse_outside

Files = dict[str, str]


class PlanInMemory(PlanDirectory):
    """The files of one plan.

    :param files: text by URI; ``plans``: plans by the URI of their directory.
    """

    def __init__(self, uri: str, files: Files, plans: dict[str, Plan]) -> None:
        self.uri = uri
        self._files = files
        self._plans = plans

    def exists(self, name: str) -> bool:
        """As the real one."""
        return f"{self.uri}/{name}" in self._files

    def write_text(self, name: str, text: str | Iterable[str]) -> str:
        """As the real one."""
        uri = f"{self.uri}/{name}"
        self._files[uri] = text if isinstance(text, str) else "".join(text)
        return uri

    def read_text(self, name: str) -> str:
        """As the real one."""
        try:
            return self._files[f"{self.uri}/{name}"]
        except KeyError:
            raise RehomeError(f"{self.uri}/{name} does not exist") from None

    def digest(self, name: str) -> str:
        """As the real one."""
        return hashlib.sha256(self.read_text(name).encode()).hexdigest()

    def remove(self, name: str) -> None:
        """As the real one."""
        self._files.pop(f"{self.uri}/{name}", None)

    def write_table(self, name: str, table: pa.Table) -> None:
        """Tables are kept as the objects that they are made of."""

    def folder(self, name: str) -> PlanInMemory:
        """As the real one."""
        return PlanInMemory(f"{self.uri}/{name}", self._files, self._plans)

    def save(
        self, plan: Plan, request: ReassignmentRequest, files: KafkaFiles | None = None
    ) -> None:
        """As the real one; the plan itself is kept instead of its moves."""
        self.refuse_finished()
        files = files or KafkaFiles.of(plan.moves)
        self.write_json("request.json", request_to_params(request))
        self.write_text(ROLLBACK_FILE, files.rollback)
        self.write_text(REASSIGNMENT_FILE, files.reassignment)
        self._plans[self.uri] = plan
        self.write_json("summary.json", summary_to_json(plan.summary))

    def load(self) -> Plan:
        """As the real one."""
        self.read_text("summary.json")
        return self._plans[self.uri]


class NoRollups:
    """No history is kept of a simulated cluster."""

    def days(self) -> list[str]:
        """None."""
        return []


class WarehouseInMemory(Warehouse):
    """What one installation keeps in files; no ledger's restore takes it away."""

    def __init__(self, name: str) -> None:
        self.uri = f"memory://{name}"
        self.files: Files = {}
        self.plans: dict[str, Plan] = {}
        self.taken: dict[str, Snapshot] = {}

    def write_snapshot(self, snapshot: Snapshot) -> str:
        """As the real one."""
        uri = self.snapshot_uri(snapshot.name)
        self.taken[uri] = snapshot
        return uri

    def snapshot_digest(self, name: str) -> str:
        """As the real one, of a snapshot that nobody changes."""
        return hashlib.sha256(name.encode()).hexdigest()

    def snapshot_uri(self, name: str) -> str:
        """As the real one."""
        if not is_snapshot(name):
            raise RehomeError(f"{name[:200]!r} is the name of no snapshot")
        return f"{self.uri}/snapshots/{name}"

    def latest_snapshot(self, cluster_id: str) -> str | None:
        """As the real one."""
        return max(self.taken, default=None)

    def snapshots(self, cluster_id: str) -> list[str]:
        """As the real one."""
        return sorted(self.taken)

    def rollups(self, cluster_id: str) -> Any:
        """None."""
        return NoRollups()

    def plan(self, plan_id: str) -> PlanInMemory:
        """As the real one."""
        return self.plan_at(f"{self.uri}/plans/{checked_plan_id(plan_id)}")

    def plan_at(self, plan_dir: str) -> PlanInMemory:
        """As the real one."""
        refuse_outside(plan_dir, self.uri)
        return PlanInMemory(plan_dir, self.files, self.plans)

    def finished_plans(self) -> list[str]:
        """As the real one."""
        return sorted(uri.rpartition("/")[2] for uri in self.plans)

    def read(self, uri: str) -> Snapshot:
        """As ``read_snapshot``."""
        try:
            return self.taken[uri]
        except KeyError:
            raise RehomeError(f"There is no snapshot {uri}") from None
