"""A log dir that ends empty, on real brokers; proved by what lies on the disk itself."""

from __future__ import annotations

from include.domain.kafka import ReplicaId
from local.process.waiting import wait_until
from tests.dags.site import Site

NUMBER = 3


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
    assert f"Log dirs 1:{one} are empty." in run.log
    assert not site.ledger.throttles(open_only=True)
