"""A site for each case, on brokers that the session shares."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from local.kafka.cluster import LocalCluster
from rehome.cluster.connection.settings import Connection
from rehome.ledger.base import database
from tests.conftest import Topics, impatient_gateway
from tests.execution.access.own_gateway import OwnGateway
from tests.faults.matrix import Case, Fault
from tests.faults.site import Site
from tests.ledger.empty_ledgers import EmptyLedgers
from tests.rights import REASSIGNER, granted

USER = "reassigner"
_OF_CLUSTER = tuple(right for right in REASSIGNER if right[1] == "cluster")


@pytest.fixture(scope="session")
def cluster(mortal_cluster: LocalCluster) -> LocalCluster:
    return mortal_cluster


@pytest.fixture(scope="session")
def impatient(cluster: LocalCluster) -> Iterator[OwnGateway]:
    with impatient_gateway(cluster) as gateway:
        yield gateway


@pytest.fixture
def site(
    request: pytest.FixtureRequest,
    cluster: LocalCluster,
    impatient: OwnGateway,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    empty_ledgers: EmptyLedgers,
) -> Iterator[Site]:
    """Whatever happens to its brokers, the next test finds them as they were."""
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 1.0)
    case: Case = request.node.callspec.params["case"]
    ledger_url = f"sqlite:///{tmp_path}/ledger.db"
    empty_ledgers.put(tmp_path / "ledger.db")
    with ExitStack() as undo:
        if case.fault is Fault.RIGHTS_REVOKED:
            made = _secured(request, ledger_url, undo)
        else:
            topics = undo.enter_context(Topics(cluster))
            made = Site(cluster, impatient, topics, ledger_url, impatient)
        if case.fault is Fault.CONNECTION_EDITED:
            made.elsewhere = request.getfixturevalue("secured_cluster")
        yield made
        made.tidy()


def _secured(request: Any, ledger_url: str, undo: ExitStack) -> Site:
    """A site whose run may do what a reassigner may, and to its own topics only."""
    cluster = request.getfixturevalue("secured_cluster")
    gateways = (
        OwnGateway(Connection.from_settings(cluster.client_settings(*user)))
        for user in ((), (USER,))
    )
    admin, acting = map(undo.enter_context, gateways)
    topics = undo.enter_context(Topics(cluster))
    undo.enter_context(granted(cluster, USER, *_OF_CLUSTER))
    return Site(cluster, admin, topics, ledger_url, acting, USER)
