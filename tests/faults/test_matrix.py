"""Every fault at every moment of a run, on real brokers.

After each: no throttle of ours is left (what was owed is taken back), another client's is as
they left it, every acknowledged message can be read, and the plan is done, or has ended with all
that can be done and can be planned anew.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from local.process.waiting import wait_until
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.completion.verify import verify
from rehome.execution.completion.words.proof_words import proof_text
from rehome.execution.observation.log_dir_copies import wanted_log_dirs
from rehome.execution.throttle.set_up import sweep
from rehome.ledger.store import Ledger
from tests.faults.cleared import ClearedTasks
from tests.faults.injections import ForeignReassignment, Superseded
from tests.faults.matrix import CASES, QUICK, Case, Fault, Moment
from tests.faults.run import Run
from tests.faults.site import (
    ELSEWHERE,
    FOLLOWER,
    MESSAGE_BYTES,
    MESSAGES,
    Site,
    check_ledger,
    check_throttles,
)

_ENDS_PLANS = (Fault.DESTINATION_LOST, Fault.TOPIC_DELETED, Fault.SUPERSEDED)


_DONE = {
    Fault.TOPIC_CREATED: "done; a plan that follows up moves away what appeared",
    Fault.CONNECTION_EDITED: "refused; done, once the connection was put right",
    Fault.RIGHTS_REVOKED: "done but for the topic; all of it, once its rights were back",
}


def _done(case: Case) -> str:
    """What has come of a plan that has ended as it was planned, in words."""
    if case.fault is Fault.BYSTANDER_KILLED:
        back = case.moment is Moment.BEFORE_LEDGER
        return "done, once it was back" if back else "done, with the dead replicas as findings"
    return _DONE.get(case.fault, "done")


_PUT_BACK = {
    Fault.DESTINATION_LOST: "put back; a plan to another broker is done",
    Fault.WAREHOUSE_AWAY: "put back",
}


def ends_plan(case: Case) -> bool:
    """Whether the plan cannot be carried out as a whole any more."""
    if case.fault is Fault.WAREHOUSE_AWAY:
        return True
    return case.fault in _ENDS_PLANS and case.moment is not Moment.CLEARING


def cases() -> list[object]:
    return [
        pytest.param(case, id=case.id, marks=[] if case in QUICK else pytest.mark.long)
        for case in CASES
    ]


@pytest.mark.parametrize("case", cases())
def test_after_every_fault_nothing_of_ours_is_left_and_no_message_lost(
    case: Case,
    site: Site,
    record_property: Callable[[str, object], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if case.fault.by_operators:
        site.furnish()
    else:
        plan = site.prepare(log_dirs=case.log_dirs)
    producer = site.workload()
    producer.fill(2 * MESSAGES * MESSAGE_BYTES)
    with producer, Ledger.open(site.ledger_url) as ledger:
        run: Run | ClearedTasks
        if case.fault.by_operators:
            run = ClearedTasks(site, case, tmp_path, monkeypatch)
            state, plan = run.to_its_end(ledger)
        else:
            run = Run(site, plan, case)
            state = run.to_its_end()
        if case.fault is Fault.BYSTANDER_KILLED and case.moment is not Moment.BEFORE_LEDGER:
            wait_until(
                lambda: set(_findings(plan, site)) == {FOLLOWER}, "the dead broker to be reported"
            )
        site.repair()
        wait_until(lambda: not sweep(ledger, site.acting).owed, "debts to be paid", 240)
        check_ledger(plan, ledger)
        failed = ends_plan(case) and case.fault is not Fault.TOPIC_DELETED
        assert state is (PlanState.FAILED if failed else PlanState.DONE)
        outcome = check_replicas(case, plan, site, ledger)
        check_throttles(site, ledger)
        if case.fault is Fault.DESTINATION_LOST and ends_plan(case):
            anew = site.record(ELSEWHERE)
            assert Run(site, anew, None).to_its_end() is PlanState.DONE
            check_throttles(site, ledger)
        if case.fault is Fault.TOPIC_CREATED:
            assert site.left() == [TopicPartition(site.late, 0)]
            assert Run(site, site.record_follow_up(), None).to_its_end() is PlanState.DONE
            assert site.left() == []
    read = producer.read_back()
    assert not read.lost, read.problems
    assert read.acknowledged >= 2 * MESSAGES
    record_property("outcome", outcome + (", debt paid" if run.owed else ""))


def _findings(plan: Plan, site: Site) -> list[int]:
    """Brokers whose replicas are out of the ISR, where every partition is where the plan says."""
    proof = verify(plan, site.gateway)
    assert proof.ok, proof_text(proof)
    return [item.broker for found in proof.findings.values() for item in found]


def _put_back(plan: Plan, ledger: Ledger) -> dict[TopicPartition, MoveState]:
    """What had been sent is cancelled; the rest never began."""
    sent = {start.partition for start in ledger.reassignments(plan.plan_id) if start.sent_at}
    partitions = [move.partition for move in plan.moves]
    return {p: MoveState.CANCELLED if p in sent else MoveState.PENDING for p in partitions}


def check_replicas(case: Case, plan: Plan, site: Site, ledger: Ledger) -> str:
    """Replicas are where the plan, or another client, wants them; what has come of it, in words."""
    there = {move.partition: move.target for move in plan.moves}
    states = dict.fromkeys(there, MoveState.DONE)
    other, outcome = TopicPartition(site.other, 0), _done(case)
    if ends_plan(case) and case.fault in _PUT_BACK:
        there = {move.partition: move.current for move in plan.moves}
        states, outcome = _put_back(plan, ledger), _PUT_BACK[case.fault]
    if case.fault is Fault.TOPIC_DELETED:
        del there[other]
        if ends_plan(case):
            states[other] = MoveState.GONE
            outcome = "done but for the topic that is gone"
    if case.fault is Fault.SUPERSEDED:
        there[other] = Superseded.target
        if ends_plan(case):
            states[other] = MoveState.SUPERSEDED
            outcome = "done but for the partition that others took"
    if case.fault is Fault.FOREIGN_REASSIGNMENT:
        theirs = next(name for name in site.topics.created if name.startswith("theirs"))
        there[TopicPartition(theirs, 0)] = ForeignReassignment.target
    for partition, replicas in there.items():
        wait_until(
            lambda p=partition, r=replicas: site.replicas(p) == r,  # type: ignore[misc]
            f"{partition} on {replicas}",
        )
    for move in plan.moves:
        for replica, log_dir in wanted_log_dirs(move).items():
            assert site.log_dirs_of(move.partition, replica.broker) == [log_dir]
    wait_until(lambda: not site.gateway.list_reassignments(), "nothing to be in flight")
    assert ledger.view(plan.plan_id).moves == states
    return outcome
