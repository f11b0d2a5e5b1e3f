"""Actions that are about leaders alone, on real brokers; proved by confluent-kafka's metadata."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient

from local.process.waiting import wait_until
from rehome.domain.kafka import TopicPartition
from rehome.domain.run.states import PlanState
from rehome.warehouse import PlanDirectory
from tests.dags.site import Site


def led(site: Site, topic: str) -> dict[int, tuple[int, list[int]]]:
    """Partition → its leader and its replicas in their order, by another client than ours."""
    admin = AdminClient({"bootstrap.servers": site.cluster.bootstrap_servers})
    partitions = admin.list_topics(topic, timeout=60).topics[topic].partitions
    return {number: (state.leader, list(state.replicas)) for number, state in partitions.items()}


def test_a_demoted_broker_leads_nothing_until_leaders_are_balanced_and_nothing_is_copied(
    site: Site,
) -> None:
    rows = [[1, 2, 3], [1, 3, 2], [2, 1, 3], [3, 1, 2]]
    topic, alone = site.topics.create(rows), site.topics.create([[1]])
    site.topics.fill(topic, 20)
    run = site.run(action="demote", brokers=[1], topics=[topic, alone])
    assert run.state == "success", run.log
    assert run.note.startswith("Done. Demote broker 1: 2 preferred leaders change, nothing is cop")

    def moved() -> dict[int, tuple[int, list[int]]] | None:
        rows = led(site, topic)
        return rows if all(leader == row[0] != 1 for leader, row in rows.values()) else None

    found = wait_until(moved, "other brokers to lead")
    assert found is not None
    assert [row[-1] for _, row in (found[0], found[1])] == [1, 1], "the controller's last resort"
    assert {tuple(sorted(row)) for _, row in found.values()} == {(1, 2, 3)}
    assert [found[number] for number in (2, 3)] == [(2, [2, 1, 3]), (3, [3, 1, 2])]
    reported = PlanDirectory(site.ledger.plans()[0].plan_dir).read_json("demoted.json")
    assert (reported["led"], reported["alone"]) == ([], [f"{alone}-0"])
    assert f"No other broker has a replica in sync of: {alone}-0." in run.log

    back = site.run(action="balance_leaders", topics=[topic], min_leaders={topic: 1})
    assert back.state == "success", back.log
    wait_until(lambda: {who for who, _ in led(site, topic).values()} == {1, 2, 3}, "all to lead")
    assert {tuple(sorted(row)) for _, row in led(site, topic).values()} == {(1, 2, 3)}
    least = PlanDirectory(site.ledger.plans()[0].plan_dir).read_json("summary.json")["min_leaders"]
    assert (least["lacking_before"], least["lacking_after"]) == (2, 1), "broker 4 has no replica"


def test_preferred_leaders_are_elected_and_nothing_else_changes(site: Site) -> None:
    topic = site.topics.create([[1, 2], [3, 1]])
    site.topics.fill(topic, 20)
    site.gateway.alter_reassignments({TopicPartition(topic, 0): (2, 1)})
    wait_until(lambda: led(site, topic)[0] == (1, [2, 1]), "another order, and the old leader")
    dry = site.run(action="elect_preferred", topics=[topic], dry_run=True)
    assert dry.state == "success", dry.log
    assert dry.note.startswith("Elect preferred leaders: 1 preferred leader is elected, nothing is")
    assert led(site, topic)[0] == (1, [2, 1])
    run = site.run(action="elect_preferred", topics=[topic])
    assert run.state == "success", run.log
    wait_until(lambda: led(site, topic) == {0: (2, [2, 1]), 1: (3, [3, 1])}, "the elected leader")
    plan = site.ledger.plans()[0]
    assert plan.state is PlanState.DONE
    assert not site.ledger.throttles(plan.plan_id)
    reported = PlanDirectory(plan.plan_dir).read_json("leaders.json")
    assert (reported["elected"], reported["refused"]) == ([f"{topic}-0"], {})
