"""Every check of a dry run, on a cluster where something is bad already.

A plan that leaves that as it is, or makes it better, is not refused for it. What refuses it all the
same says why: it could not be carried out, or is not a state that plans change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rehome.domain.actions import Action
from rehome.domain.kafka import (
    Broker,
    BrokerError,
    ClusterDescription,
    LogDir,
    OngoingReassignment,
    Partial,
    PartitionState,
    TopicDescription,
    TopicPartition,
)
from rehome.domain.plan.plan import Plan
from rehome.domain.request.limits import BrokerSet
from rehome.domain.request.request import OnWindowEnd, ReassignmentRequest
from rehome.domain.run.findings import Severity
from rehome.domain.run.pace import Pace
from rehome.domain.time_range import TimeRange
from rehome.execution.dry_run import dry_run as checks
from rehome.execution.dry_run.cluster_state import ClusterState
from rehome.execution.dry_run.controller_rules import predict
from rehome.execution.dry_run.disk_headroom import disk_findings
from rehome.execution.dry_run.dry_run import foreign_findings
from rehome.execution.dry_run.inflow import inflow_findings, window_findings
from rehome.execution.dry_run.replica_checks import (
    broker_findings,
    isr_findings,
    limit_findings,
    redundancy_findings,
)
from rehome.execution.dry_run.typed_finding import FoundKind, TypedFinding
from tests.ledger.small_plans import make_plan, move

REQUEST = ReassignmentRequest(Action.REASSIGN)
Findings = Iterator[TypedFinding]


def now(
    replicas: tuple[int, ...] = (1, 2),
    *,
    isr: tuple[int, ...] | None = None,
    dead: tuple[int, ...] = (),
    **changes: Any,
) -> ClusterState:
    """One partition, t-0, on brokers of racks a (1, 2) and b (3, 4)."""
    racks = {1: "/a", 2: "/a", 3: "/b", 4: "/b"}
    brokers = {n: Broker(n, "h", 1, rack) for n, rack in racks.items() if n not in dead}
    synced = frozenset(replicas if isr is None else isr)
    leader = next((n for n in replicas if n in synced), None)
    state = PartitionState(leader, replicas, synced)
    plain = ClusterState(
        taken_at=datetime(2030, 1, 1, tzinfo=UTC),
        cluster=ClusterDescription("c1", 1, brokers, None),
        topics={"t": TopicDescription("t", "id", False, {0: state})},
        ongoing={},
        log_dirs=Partial([], {}),
        missing_rights=(),
        min_isr={"t": 1},
        sizes={},
    )
    return replace(plain, **changes)


def plan(current: tuple[int, ...], target: tuple[int, ...], size: int = 100) -> Plan:
    return make_plan("p", move("t", 0, current, target, size))


def log_dirs(broker: int, usable: int, *, cordoned: bool = False) -> LogDir:
    return LogDir(broker, "/d", 1_000, usable, cordoned, None, {})


def brokers_cordoned() -> Findings:
    """Brokers 1 and 2 take nothing new, and 2 keeps what it has."""
    closed = Partial([log_dirs(1, 500, cordoned=True), log_dirs(2, 500, cordoned=True)], {})
    return broker_findings(plan((1, 2), (3, 2)), now(log_dirs=closed))


def brokers_dead() -> Findings:
    """The preferred leader is dead, and stays so: the followers change places."""
    return broker_findings(plan((4, 1, 2), (4, 2, 1)), now((4, 1, 2), dead=(4,)))


def broker_apart_silent() -> Findings:
    silent: Partial[list[LogDir]] = Partial([], {4: BrokerError(7, "REQUEST_TIMED_OUT")})
    return broker_findings(plan((1, 2), (3, 2)), now(log_dirs=silent))


def in_one_rack() -> Findings:
    """Both replicas are in one rack, and stay in one."""
    return redundancy_findings(plan((1, 2), (3, 4)), REQUEST, now(), refuse=True)


def too_few_in_sync() -> Findings:
    """One of two is in sync, two are asked for: so it is while it moves."""
    state = now((1, 2), isr=(1,), min_isr={"t": 2})
    return isr_findings(plan((1, 2), (1, 3)), state)


def fewer_than_the_minimum() -> Findings:
    return isr_findings(plan((1,), (3,)), now((1,), min_isr={"t": 2}))


def allowed_beside() -> Findings:
    moving = {TopicPartition("u", 0): OngoingReassignment((1, 2), (2,), (1,))}
    request = replace(REQUEST, additional=True)
    return foreign_findings(plan((1, 2), (3, 2)), request, now(ongoing=moving), ())


def disks_full_elsewhere() -> Findings:
    """Broker 1 is above what may be used of its disk, and gives a replica away."""
    dirs = Partial([log_dirs(1, 10), log_dirs(3, 900)], {})
    return disk_findings(plan((1, 2), (3, 2)), now(log_dirs=dirs), lambda _: 0.1)


def written_to_elsewhere() -> Findings:
    """Much is written to what is copied nowhere."""
    inflow = {TopicPartition("u", 0): 1e9}
    return inflow_findings(plan((1, 2), (3, 2)), inflow, now(), Pace(1_000.0))


def set_of_dead_brokers() -> Findings:
    named = replace(REQUEST, broker_sets=(BrokerSet(name="s", brokers=(1, 9), topics=("t",)),))
    return limit_findings(named, {1, 2, 3, 4})


def verdict_on_a_dead_one() -> Findings:
    """The controller takes a dead broker that is registered; so does the prediction."""
    state = now((4, 1, 2), dead=(4,))
    facts = state.controller_facts(allow=False)
    found = predict({TopicPartition("t", 0): (4, 2, 1)}, facts)
    assert list(found.values()) == [None]
    return iter(())


BAD_ALREADY: Mapping[str, tuple[Callable[[], Findings], ...]] = {
    "brokers": (brokers_cordoned, brokers_dead, broker_apart_silent),
    "redundancy": (in_one_rack,),
    "in-sync replicas": (too_few_in_sync, fewer_than_the_minimum),
    "foreign reassignments": (allowed_beside,),
    "verdict": (verdict_on_a_dead_one,),
    "inflow": (written_to_elsewhere,),
    "disk": (disks_full_elsewhere,),
    "limits": (set_of_dead_brokers,),
}
OF_NO_STATE = {
    "active plan": "one plan at a time: no state of partitions",
    "rights": "what the principal may do; without them nothing can be carried out",
    "drift": "whether the plan is of this cluster as it is: another plan is made of what is there",
    "throttle": "what brokers would accept of the throttle; without it copies have no limit",
    "window": "whether there is time",
    "racks": "how racks are counted: it only warns",
    "reassignment": "what was taken of a pasted text: no state of the cluster",
    "cordon": "what brokers would accept of the cordon that was asked for",
    "versions": "what brokers cannot; refused are only copies that would never end",
    "steps": "in how many steps partitions get their new replicas: it only says so",
}
"""Checks that judge no state which a plan could leave as it is, and what they do judge."""


def names_of_checks() -> set[str]:
    """As a dry run lists them, taken from its own source."""
    import ast
    import inspect

    tree = ast.parse(inspect.getsource(checks.dry_run))
    (table,) = [node for node in ast.walk(tree) if isinstance(node, ast.Dict)][:1]
    return {
        str(key.value) if isinstance(key, ast.Constant) else getattr(checks, ast.unparse(key))
        for key in filter(None, table.keys)
    }


def test_every_check_has_a_case_or_judges_no_state() -> None:
    assert names_of_checks() == {*BAD_ALREADY, *OF_NO_STATE}
    assert not BAD_ALREADY.keys() & OF_NO_STATE.keys()


@pytest.mark.parametrize(
    "case", [case for cases in BAD_ALREADY.values() for case in cases], ids=lambda c: c.__name__
)
def test_what_is_bad_already_and_gets_no_worse_is_not_refused(case: Callable[[], Findings]) -> None:
    assert [found for found in case() if found.severity is Severity.ERROR] == []


def test_a_copy_that_its_window_is_too_short_for_is_named_when_it_is_planned() -> None:
    state, pace = now((1, 2)), Pace(10.0, 0.0, 1, 1)
    plan = make_plan("p", move("t", 0, (1, 2), (1, 3), 1000))

    def ends(
        seconds: float,
        how: OnWindowEnd = OnWindowEnd.FINISH,
        predicted: TimeRange | None = None,
    ) -> list[TypedFinding]:
        closes = state.taken_at + timedelta(seconds=seconds)
        request = ReassignmentRequest(Action.REASSIGN, window_end=closes, on_window_end=how)
        return list(window_findings(plan, request, state, pace, predicted))

    (found,) = ends(99)
    assert found == TypedFinding(FoundKind.FITS_NO_WINDOW, "t-0", least_s=100.0, left_s=99.0)
    assert ends(101) == []
    assert ends(99, OnWindowEnd.CANCEL) == []
    (found,) = ends(101, OnWindowEnd.CANCEL, TimeRange(90.0, 130.0))
    takes = TimeRange(90.0, 130.0)
    assert found == TypedFinding(FoundKind.PAST_WINDOW, "plan", takes=takes, left_s=101.0)
    assert ends(131, OnWindowEnd.CANCEL, TimeRange(90.0, 130.0)) == []
