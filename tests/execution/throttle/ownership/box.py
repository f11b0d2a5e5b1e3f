"""A model of Kafka whose time passes where somebody waits, and ledgers of installations."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Collection, Set
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import BrokerError
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.execution.access.own_cluster import OwnCluster
from rehome.ledger.store import Ledger
from tests.ledger.small_plans import make_plan
from world.kafka.cluster import KafkaModel
from world.kafka.hooks import SetClock
from world.kafka.port import ModelPort

DEFAULT = ConfigResource.cluster_default()


class Box:
    """To be put in the clock's place.

    :ivar refused: keys that begin so are refused by a policy of the brokers.
    """

    def __init__(self, directory: Path) -> None:
        self.clock = SetClock()
        self.model = KafkaModel(self.clock, Random(1), 4, cluster_id="model")
        self.refused = "nothing"
        self.own = OwnCluster.itself(_WithPolicy(self))
        self.ledgers: dict[str, Ledger] = {}
        self._directory = directory

    def utc_now(self) -> datetime:
        return datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=self.clock.at)

    def monotonic_s(self) -> float:
        return self.clock.at

    def sleep(self, seconds: float) -> None:
        self.clock.wait(seconds)
        self.model.catch_up_with_clock()

    def new_id(self) -> str:
        return uuid.uuid4().hex

    # -- installations -----------------------------------------------------------------------------

    def ledger(self, site: str) -> Ledger:
        if site not in self.ledgers:
            self.ledgers[site] = Ledger.open(f"sqlite:///{self._file(site)}")
        return self.ledgers[site]

    def back_up(self, site: str) -> None:
        shutil.copy(self._file(site), self._file(f"{site}-backup"))

    def restore(self, site: str) -> Ledger:
        self.ledgers.pop(site).close()
        shutil.copy(self._file(f"{site}-backup"), self._file(site))
        return self.ledger(site)

    def approved(self, site: str, plan_id: str, *moves: Move) -> Plan:
        ledger, plan = self.ledger(site), make_plan(plan_id, *moves, cluster_id="model")
        ledger.create_plan(plan, {}, "memory://", f"run-{plan_id}", "alice", dag_id="d")
        ledger.approve(plan_id, plan.plan_hash, "alice")
        return plan

    def close(self) -> None:
        for ledger in self.ledgers.values():
            ledger.close()

    def _file(self, name: str) -> Path:
        return self._directory / f"{name}.db"

    # -- what others do, and what there is ---------------------------------------------------------

    def set(self, resource: ConfigResource, key: str, value: str | None) -> None:
        operation = ConfigOperation.DELETE if value is None else ConfigOperation.SET
        change = ConfigChange(resource, key, operation, value)
        assert self.model.port().alter_configs([change]) == {resource: None}
        self.sleep(1)

    def holds(self, resource: ConfigResource, key: str) -> str | None:
        return self.model.world.image.config(resource).get(key)

    @property
    def marks(self) -> Set[str]:
        return {key for key in self.model.world.image.config(DEFAULT) if key.startswith("rehome")}


class _WithPolicy(ModelPort):
    """Brokers with an ``alter.config.policy.class.name`` that knows what it wants."""

    def __init__(self, box: Box) -> None:
        super().__init__(box.model, "User:rehome", "rehome")
        self._box = box

    def alter_configs(
        self, changes: Collection[ConfigChange], *, validate_only: bool = False
    ) -> dict[ConfigResource, BrokerError | None]:
        refused = {c.resource for c in changes if c.key.startswith(self._box.refused)}
        rest = [change for change in changes if change.resource not in refused]
        verdicts = super().alter_configs(rest, validate_only=validate_only) if rest else {}
        policy = BrokerError(44, "POLICY_VIOLATION", "This key is not allowed.")
        return {**verdicts, **dict.fromkeys(refused, policy)}
