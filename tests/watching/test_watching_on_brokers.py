"""A broker that dies and comes back, as snapshots of real brokers show it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from include.cluster.gateway import ClusterGateway
from include.cluster.snapshot.take import take_snapshot
from include.ledger.base.database import utc_now
from include.ledger.store import Ledger
from include.ledger.stores.watched.findings import Followed
from include.watching.judge import ClusterFacts, judge
from include.watching.kinds import FindingKind
from include.watching.respond import Facts, respond
from include.watching.rules import WatchRules
from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from tests.conftest import Topics, impatient_gateway, revive

RULES = WatchRules.parse(
    {"grace_s": 1200, "snapshots_to_close": 1, "policies": {"dead_broker": "propose"}}
)


@pytest.fixture
def mortal(mortal_cluster: LocalCluster) -> Iterator[LocalCluster]:
    """Its brokers live again afterwards."""
    yield mortal_cluster
    revive(mortal_cluster)


def test_a_dead_broker_is_a_finding_that_closes_when_it_is_back(
    mortal: LocalCluster, tmp_path: Path
) -> None:
    Topics(mortal).create([[3, 1], [1, 3]])
    ten = timedelta(minutes=10)
    with impatient_gateway(mortal) as gateway, Ledger.open(f"sqlite:///{tmp_path}/l.db") as ledger:
        mortal.kill(3)
        wait_until(lambda: 3 not in gateway.describe_cluster().brokers, "broker 3 to be gone", 240)
        assert not any(watched(gateway, ledger, ten * n).opened for n in range(2))
        late = watched(gateway, ledger, ten * 2)
        (dead,) = [each for each in late.opened if each.kind is FindingKind.DEAD_BROKER]
        assert (dead.subject, dead.facts["replicas"] >= 2) == ("broker 3", True)
        start = respond(late.open, Facts(), RULES, utc_now()).start
        assert start is not None
        assert (start.params["action"], start.params["brokers"]) == ("fix_offline_replicas", [3])

        mortal.restart(3)
        wait_until(lambda: 3 in gateway.describe_cluster().brokers, "broker 3 to be back", 240)
        closed = watched(gateway, ledger, ten * 3).closed
        assert FindingKind.DEAD_BROKER in {each.kind for each in closed}


def watched(gateway: ClusterGateway, ledger: Ledger, later: timedelta) -> Followed:
    """A snapshot by a clock that is set forward, judged."""
    snapshot = take_snapshot(gateway, utc_now() + later)
    found = judge(snapshot, RULES, ClusterFacts())
    return ledger.follow_findings(
        snapshot.cluster_id, snapshot.taken_at, found.seen, RULES, found.unknown
    )
