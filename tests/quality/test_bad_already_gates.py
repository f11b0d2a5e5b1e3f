"""Every rule of the gates that a state of the cluster can break, where that is bad already.

A plan that leaves it as it is, or makes it better, passes. What refuses all the same says why. The
gates judge in this process: tests/quality/in_process shows that they say what Spark says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

import pytest

from rehome.domain.actions import Action
from rehome.domain.request.limits import BrokerCaps, BrokerLimits, BrokerSet
from rehome.domain.request.request import ReassignmentRequest
from rehome.quality.engine.rules import DEFECT, every_rule
from rehome.quality.facts.gate_input import Checked
from rehome.quality.in_process.rules_on_rows import broken_rules
from rehome.quality.in_process.snapshot_rows import snapshot_rows
from rehome.quality.snapshot.rules import snapshot_rules
from rehome.quality.snapshot.tables import Concerned
from tests.planning.clusters import cluster
from tests.planning.planned import T
from tests.quality.plan.cases import planned, rules_broken_by
from tests.quality.snapshots import TAKEN_AT, Rows

FULL, ROOMY = (1000, 10), (1000, 900)
ABOVE = BrokerCaps(default=BrokerLimits(replicas=4))


def to(*replicas: int, **more: object) -> ReassignmentRequest:
    entry = {"topic": "t", "partition": 0, "replicas": list(replicas)}
    wanted = {"version": 1, "partitions": [entry]}
    return ReassignmentRequest(Action.REASSIGN, reassignment=wanted, **more)  # type: ignore[arg-type]


def drain(*brokers: int, **more: object) -> ReassignmentRequest:
    return ReassignmentRequest(Action.DRAIN, brokers=brokers, **more)  # type: ignore[arg-type]


def a_dead_follower_stays() -> Checked:
    of = cluster([""] * 3, [(0, 1, 2)], dead=frozenset({2}))
    return planned(of.snapshot(), to(1, 0, 2))


def a_cordoned_broker_keeps_its_replica() -> Checked:
    of = cluster([""] * 4, [(0, 1)], cordoned=frozenset({0}))
    return planned(of.snapshot(), to(0, 2))


def a_partition_without_a_leader_is_reordered() -> Checked:
    of = cluster([""] * 2, [(0, 1)], lagging=frozenset({(T[0], 0), (T[0], 1)}))
    return planned(of.snapshot(), to(1, 0))


def a_disk_that_is_too_full_gives_away() -> Checked:
    of = cluster([""] * 3, [(0, 1)], disks={0: FULL, 1: FULL, 2: ROOMY})
    return planned(of.snapshot(), to(2, 1))


def replicas_stay_in_one_rack() -> Checked:
    """The other rack takes nothing new."""
    of = cluster(["/a", "/a", "/a", "/b"], [(0, 1)], cordoned=frozenset({3}))
    return planned(of.snapshot(), drain(0))


def a_replica_stays_outside_of_its_set() -> Checked:
    sets = (BrokerSet(name="s", topics=("t",), brokers=(0, 1)),)
    return planned(cluster([""] * 3, [(2, 0)]).snapshot(), to(2, 1, broker_sets=sets))


def a_replica_stays_on_no_destination() -> Checked:
    return planned(cluster([""] * 4, [(0, 1)]).snapshot(), drain(0, destinations=(3,)))


def a_broker_stays_above_its_cap() -> Checked:
    of = cluster([""] * 4, [(0,)] * 11 + [(1,), (2,), (3,)])
    return planned(of.snapshot(), drain(3, caps=ABOVE))


def a_broker_without_a_rack_is_emptied() -> Checked:
    of = cluster(["/a", "/a", "/b", "/b", ""], [(0, 2), (4, 1), (4, 0)])
    return planned(of.snapshot(), drain(4))


PLANS: Mapping[str, tuple[Callable[[], Checked], ...]] = {
    "a target names live brokers only": (a_dead_follower_stays,),
    "a copy goes to a broker that takes replicas": (a_cordoned_broker_keeps_its_replica,),
    "a copy has a live leader to come from": (a_partition_without_a_leader_is_reordered,),
    "a broker's disk has space for old and new replicas at once": (
        a_disk_that_is_too_full_gives_away,
    ),
    "a broker's disk has space for its replicas after the plan": (
        a_disk_that_is_too_full_gives_away,
    ),
    "each copy fits into a log dir": (a_disk_that_is_too_full_gives_away,),
    "replicas are spread over level $level of the racks no worse than before": (
        replicas_stay_in_one_rack,
        a_broker_without_a_rack_is_emptied,
    ),
    "a copy goes to a broker of its topic's broker set": (a_replica_stays_outside_of_its_set,),
    "a new replica goes to a destination": (a_replica_stays_on_no_destination,),
    "a broker ends within its caps, or holds no more than before": (a_broker_stays_above_its_cap,),
}
SNAPSHOTS = (
    "every broker whose load is balanced is alive",
    "no broker whose load is balanced has an offline log dir",
    "no broker whose load is balanced holds replicas that the metadata does not know",
)
"""Rules that a plan passes which evens out nothing there: all of them in one snapshot."""
CONTRADICTS = "what brokers say contradicts itself: it is not known how it is"
UNKNOWN = "it is not known, and figures would be wrong"
WRITTEN = "judges what is written down, and no state of a cluster"
OF_NO_STATE = {
    "a log dir has space for the replicas that are sent to it": "judges those alone",
    "a target log dir exists, is online and not cordoned": "of replicas that are sent to one",
    "no partition that is being reassigned is moved": "Kafka has one reassignment at a time",
    "the replication factor does not change": "it stays what it is",
    "a preferred leader that is to be elected is in sync": "it could not be carried out",
    "the snapshot is fresh": UNKNOWN,
    "the snapshot has live brokers": UNKNOWN,
    "every live broker answered": UNKNOWN,
    "no topic is hidden from this principal": UNKNOWN,
    "every replica lies in a log dir": UNKNOWN,
    "every replica has a size": UNKNOWN,
    "every replica's log end offset is known": UNKNOWN,
    "no reassignment is in flight": "the parameter additional says whether it matters",
    "no move between log dirs is in flight": "the parameter additional says whether it matters",
    "every broker that answered reports its log dirs": CONTRADICTS,
    "a broker is listed once": CONTRADICTS,
    "a broker's rack path matches its rack": CONTRADICTS,
    "the free space of a log dir is at most the size of its volume": CONTRADICTS,
    "a log dir is listed once": CONTRADICTS,
    "a topic is listed once": CONTRADICTS,
    "all partitions of a topic are listed": CONTRADICTS,
    "every replica is on a broker that is listed": CONTRADICTS,
    "the log dir of a replica is one that its broker has": CONTRADICTS,
    "every partition is of a topic that is listed": CONTRADICTS,
    "no partition has two leaders": CONTRADICTS,
    "a leader is in sync": CONTRADICTS,
    "the replicas of a partition are on distinct brokers": CONTRADICTS,
    "the replicas of a partition are listed in order": CONTRADICTS,
}
"""Rules that refuse by no state which a plan could leave as it is, and what they do judge. Those
that no operator can break judge the planner.
"""


def test_every_rule_that_an_operator_can_break_has_a_case_or_judges_no_state() -> None:
    every = {
        rule.name
        for gate, _, rules in every_rule()
        for rule in rules
        if gate != "history" and rule.remedy != DEFECT
    }
    assert every == {*PLANS, *SNAPSHOTS, *OF_NO_STATE}
    assert not {*PLANS, *SNAPSHOTS} & OF_NO_STATE.keys()


@pytest.mark.slow
def test_a_plan_that_leaves_what_is_bad_or_makes_it_better_passes_its_gate() -> None:
    cases = {case.__name__: case() for some in PLANS.values() for case in some}
    assert all(checked.plan.moves for checked in cases.values())
    assert {name: rules_broken_by(checked) for name, checked in cases.items()} == {
        name: set() for name in cases
    }


def test_a_snapshot_of_what_is_bad_passes_where_that_is_not_evened_out() -> None:
    rows = Rows()
    rows.lose(4)
    for row in rows.replicas:
        if row["broker"] != 4 and row["partition"] % 4 == 3:
            row["is_leader"] = row["partition"] != 3  # that one has no leader any more
        if row["broker"] == 2 and row["partition"] == 0:
            row.update(in_isr=False, log_dir=None, size_bytes=None, log_end_offset=None)
    rows.log_dir(2, "/data/1").update(offline=True, error="KAFKA_STORAGE_ERROR (56)")
    rows.log_dir(2, "/data/0")["stray_replicas"] = 1
    now = TAKEN_AT + timedelta(seconds=1)

    def broken(concerned: Concerned) -> set[str]:
        tables = snapshot_rows(rows.snapshot(), now, concerned)
        return {*broken_rules(snapshot_rules(additional=False), {"max_age_s": 60}, tables)}

    assert broken(Concerned()) == {*SNAPSHOTS}
    for elsewhere in ((), (1, 3)):
        assert broken(Concerned(balanced=elsewhere)) == set()
