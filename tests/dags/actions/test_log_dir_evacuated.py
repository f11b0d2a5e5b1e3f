"""Log dirs that end empty, on real brokers; proved by what lies on the disk itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import ReplicaId
from rehome.domain.text import join_names
from rehome.execution.throttle.keys import CORDONED
from tests.dags.site import Site
from tests.versions.since import copies_end, cordons

NUMBER = 3
SHUT = 4


@copies_end
def test_a_log_dir_is_emptied_into_another_one_of_its_broker(site: Site) -> None:
    topic = site.topics.create([[1]] * NUMBER)
    site.topics.fill(topic, 60)
    one, other = site.cluster.log_dirs(1)[:2]
    names = {f"{topic}-{number}" for number in range(NUMBER)}
    together = {ReplicaId(topic, number, 1): str(one) for number in range(NUMBER)}
    assert not any(site.gateway.alter_replica_log_dirs(together).values())
    wait_until(lambda: names <= {path.name for path in one.iterdir()}, "all in one log dir")
    run = site.run(
        action="evacuate_log_dirs", log_dirs=[f"1:{one}"], throttle=20_000_000, ignore_racks=True
    )
    assert run.state == "success", run.log
    wait_until(lambda: names <= {path.name for path in other.iterdir()}, "all in the other one")
    left = {path.name for path in one.iterdir() if path.is_dir()}
    assert not {name for name in left if not name.endswith("-delete")}
    assert f"Log dir 1:{one} is empty." in run.log
    assert not site.ledger.throttles(open_only=True)


@pytest.fixture
def cordoned(cluster: LocalCluster, gateway: ClusterGateway) -> Iterator[set[str]]:
    """Every log dir of a broker, as ``4:/path``."""
    dirs = {str(path) for path in cluster.log_dirs(SHUT)}
    broker = ConfigResource.broker(SHUT)

    def shut() -> set[str]:
        return {each.path for each in gateway.describe_log_dirs([SHUT]).value if each.cordoned}

    put = ConfigChange(broker, CORDONED, ConfigOperation.SET, ",".join(sorted(dirs)))
    assert not any(gateway.alter_configs([put]).values())
    wait_until(lambda: shut() == dirs, "the log dirs to be cordoned")
    yield {f"{SHUT}:{path}" for path in dirs}
    gateway.alter_configs([ConfigChange(broker, CORDONED, ConfigOperation.DELETE)])
    wait_until(lambda: not shut(), "the cordon to be gone")


@cordons
def test_cordoned_log_dirs_are_emptied_off_the_broker_where_it_has_no_other(
    site: Site, request: pytest.FixtureRequest
) -> None:
    topic, alone = site.topics.create([[SHUT, 1], [1, SHUT]]), site.topics.create([[SHUT]])
    for each in (topic, alone):
        site.topics.fill(each, 60)
    names = request.getfixturevalue("cordoned")
    run = site.run(action="evacuate_log_dirs", throttle=20_000_000, ignore_racks=True)
    assert run.state == "success", run.log
    found = site.gateway.current_topics([topic, alone])
    rows = {name: [row.replicas for row in of.partitions.values()] for name, of in found.items()}
    assert sorted(map(len, rows[topic] + rows[alone])) == [1, 2, 2]
    assert SHUT not in {broker for of in rows.values() for row in of for broker in row}

    def on_disk() -> list[str]:
        dirs = [path for one in site.cluster.log_dirs(SHUT) for path in one.iterdir()]
        return [path.name for path in dirs if path.is_dir() and not path.name.endswith("-delete")]

    wait_until(lambda: not on_disk(), "nothing to lie there")
    assert f"Log dirs {join_names(sorted(names))} are empty." in run.log
    assert not site.ledger.throttles(open_only=True)
