"""A broker by another one, on real brokers; proved by confluent-kafka's metadata."""

from __future__ import annotations

from local.process.waiting import wait_until
from tests.dags.actions.test_leader_actions import led
from tests.dags.site import Site


def test_a_broker_is_replaced_in_its_places_and_its_leadership_goes_along(site: Site) -> None:
    topic = site.topics.create([[1, 2], [2, 1], [3, 2]])
    site.topics.fill(topic, 60)
    run = site.run(
        action="replace",
        replacements={"1": 4},
        topics=[topic],
        ignore_racks=True,
        throttle=20_000_000,
    )
    assert run.state == "success", run.log
    assert run.note.startswith("Done. Replace broker 1 by 4: 2 replicas, ")
    wanted = {0: (4, [4, 2]), 1: (2, [2, 4]), 2: (3, [3, 2])}
    wait_until(lambda: led(site, topic) == wanted, "every replica in its place")
    assert "Broker 1 is empty." in run.log
    assert not site.ledger.throttles(open_only=True)
