"""A gateway on the shared cluster, a ledger, and plans made from moves."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from local.process.waiting import wait_until
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.execution.control.cancel import abort
from rehome.execution.throttle.keys import own_value
from rehome.execution.throttle.set_up import clear_throttle, set_up_throttle
from rehome.ledger.store import Ledger
from tests.execution.access.own_gateway import OwnGateway
from tests.ledger.empty_ledgers import EmptyLedgers
from tests.ledger.set_clock import SetClock
from tests.ledger.small_plans import make_plan

Configure = Callable[[ConfigResource, str, str], None]

_serial = itertools.count()


@pytest.fixture
def ledger_url(tmp_path: Path, empty_ledgers: EmptyLedgers) -> str:
    empty_ledgers.put(tmp_path / "ledger.db")
    return f"sqlite:///{tmp_path}/ledger.db"


@pytest.fixture
def ledger(ledger_url: str, clock: SetClock) -> Iterator[Ledger]:
    with Ledger.open(ledger_url, clock=clock) as ledger:
        yield ledger


@pytest.fixture
def approved(ledger: Ledger, request: pytest.FixtureRequest) -> Callable[..., Plan]:
    """Records and approves a plan of these moves."""

    def make(*moves: Move, cluster_id: str = "") -> Plan:
        cluster_id = cluster_id or request.getfixturevalue("cluster").cluster_id
        plan = make_plan(f"plan-{os.getpid()}-{next(_serial)}", *moves, cluster_id=cluster_id)
        ledger.create_plan(plan, {}, "file:///nowhere", "run-1", "test")
        ledger.approve(plan.plan_id, plan.plan_hash, "test")
        return plan

    return make


@pytest.fixture
def throttled(ledger: Ledger, gateway: OwnGateway) -> Iterator[Callable[..., None]]:
    """Sets a plan's throttle up, and takes it down at the end whatever happens."""
    plans: list[Plan] = []

    def set_up(plan: Plan, rate: int, **more: Any) -> None:
        plans.append(plan)
        set_up_throttle(plan, ledger, gateway, rate, **more)

    yield set_up
    for plan in plans:
        abort(plan.plan_id, ledger, gateway, "the test is over")
        clear_throttle(plan.plan_id, ledger, gateway)


@pytest.fixture
def configure(gateway: OwnGateway) -> Iterator[Configure]:
    """Sets configs that are deleted at the end."""
    made: list[ConfigChange] = []

    def configure(resource: ConfigResource, key: str, value: str) -> None:
        made.append(ConfigChange(resource, key, ConfigOperation.DELETE))
        change = ConfigChange(resource, key, ConfigOperation.SET, value)
        assert gateway.alter_configs([change]) == {resource: None}
        wait_until(lambda: _own(gateway, resource, key) == value, f"{key} to be set")

    def is_gone(change: ConfigChange) -> bool:
        return _own(gateway, change.resource, change.key) is None

    yield configure
    for change in made:
        gateway.alter_configs([change])
        wait_until(partial(is_gone, change), f"{change.key} to be deleted")


def _own(gateway: OwnGateway, resource: ConfigResource, key: str) -> str | None:
    configs = gateway.describe_configs([resource], [key])[resource]
    assert isinstance(configs, dict)
    return own_value(resource, configs.get(key))
