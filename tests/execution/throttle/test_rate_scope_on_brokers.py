"""Throttles on a cluster whose brokers may not honour a default rate: each has its own. Its brokers
cannot be cordoned either.

The brokers here are new ones on an old metadata.version, as in the last step of an upgrade.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.connection.settings import Connection
from rehome.domain.actions import Action
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import BrokerError
from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import Cordon, ReassignmentRequest
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import PlanState
from rehome.errors import RehomeError
from rehome.execution.actions import SetRate
from rehome.execution.advance import advance
from rehome.execution.control.cancel import abort
from rehome.execution.dry_run.throttle_checks import cordon_findings
from rehome.execution.dry_run.typed_finding import FoundKind, TypedFinding
from rehome.execution.throttle.cordon import cordon
from rehome.execution.throttle.ensure import ensure
from rehome.execution.throttle.keys import FOLLOWER_RATE, LEADER_RATE
from rehome.execution.throttle.set_up import (
    change_rate,
    clear_throttle,
    set_up_throttle,
)
from rehome.ledger.base.records import ThrottleState
from rehome.ledger.store import Ledger
from tests.conftest import Topics, impatient_gateway
from tests.execution.access.own_gateway import OwnGateway
from tests.execution.dry_run.checked import check, found
from tests.execution.killed import run_until_killed
from tests.execution.throttle.on_brokers import set_config, throttle_settings
from tests.execution.throttle.refusing import let_refuse
from tests.ledger.small_plans import move
from tests.session.needs import Need, needs
from tests.versions.since import RELEASE

MakePlan = Callable[..., Plan]
DEFAULT = ConfigResource.cluster_default()
ONE, TWO = ConfigResource.broker(1), ConfigResource.broker(2)
RATE = 5_000_000
OLD_LEVEL = "3.8-IV0" if RELEASE >= (3, 8) else None
"""None = the newest, which is older on brokers of 3.7."""


@pytest.fixture(scope="module")
@needs(Need.BROKERS)
def older_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    directory = tmp_path_factory.mktemp("older") / "kafka"
    with LocalCluster(directory, brokers=2, release_version=OLD_LEVEL) as running:
        yield running


@pytest.fixture(scope="module")
def older(older_cluster: LocalCluster) -> Iterator[OwnGateway]:
    with impatient_gateway(older_cluster) as gateway:
        yield gateway


@pytest.fixture
def topics(older_cluster: LocalCluster) -> Iterator[Topics]:
    with Topics(older_cluster) as helper:
        yield helper


@pytest.fixture
def moving(
    older_cluster: LocalCluster, older: OwnGateway, topics: Topics, approved: MakePlan
) -> Iterator[Callable[[], Plan]]:
    """Makes a topic on broker 1 and a plan that moves it to broker 2; no rate outlives the test."""

    def make() -> Plan:
        moves = [move(topics.create([[1]]), 0, (1,), (2,))]
        return approved(*moves, cluster_id=older_cluster.cluster_id)

    yield make
    left = [ConfigChange(place, key, ConfigOperation.DELETE) for place, key in rates(older)]
    if left:
        older.alter_configs(left)
        wait_until(lambda: not rates(older), "rates to go")


def rates(gateway: OwnGateway) -> dict[Any, str | None]:
    return throttle_settings(gateway, brokers=[ONE, TWO])


def everything(gateway: OwnGateway, plan: Plan) -> dict[Any, str | None]:
    return throttle_settings(gateway, plan.moves[0].partition.topic, brokers=[ONE, TWO])


def both(leader: int, follower: int | None = None) -> dict[Any, str]:
    """Both rates on both brokers."""
    values = {LEADER_RATE: str(leader), FOLLOWER_RATE: str(follower or leader)}
    return {(broker, key): value for broker in (ONE, TWO) for key, value in values.items()}


def test_each_broker_slows_copies_by_a_rate_of_its_own_and_loses_it_without_a_trace(
    older: OwnGateway, ledger: Ledger, moving: Callable[[], Plan], topics: Topics
) -> None:
    assert older.finalized_features()["metadata.version"] < 21  # 3.9-IV0
    plan = moving()
    topics.fill(plan.moves[0].partition.topic, 6000)
    slow, fast = Policy(20_000, metadata_grace_s=2), Policy(50_000_000, metadata_grace_s=2)
    set_up_throttle(plan, ledger, older, slow.rate_bytes_per_s)
    assert rates(older) == both(20_000)
    for _ in range(10):  # 6 MB: minutes at this rate, no poll's length without it
        assert advance(plan, ledger, older, slow).finished is None
    assert list(older.list_reassignments()) == [plan.moves[0].partition]
    change_rate(plan, ledger, older, SetRate(fast.rate_bytes_per_s, "requested"))
    assert rates(older) == both(50_000_000)
    wait_until(lambda: advance(plan, ledger, older, fast).finished, "the copy", 240)
    assert ledger.view(plan.plan_id).state is PlanState.DONE
    assert clear_throttle(plan.plan_id, ledger, older).owed == ()
    assert everything(older, plan) == {}


@pytest.mark.simulated("rates are deleted whatever was there before")
def test_rates_that_were_there_before_hold_if_lower_and_are_put_back_byte_for_byte(
    older: OwnGateway, ledger: Ledger, moving: Callable[[], Plan]
) -> None:
    plan = moving()
    set_config(older, TWO, FOLLOWER_RATE, "030000000")
    set_config(older, ONE, LEADER_RATE, "1000000")
    set_config(older, DEFAULT, FOLLOWER_RATE, "2000000")
    set_config(older, DEFAULT, LEADER_RATE, "90000000")
    before = everything(older, plan)

    def follower_rates() -> tuple[str | None, str | None]:
        now = rates(older)
        return now[ONE, FOLLOWER_RATE], now[TWO, FOLLOWER_RATE]

    done = set_up_throttle(plan, ledger, older, RATE)
    assert done.foreign_rates == {
        f"broker 1 {LEADER_RATE}": 1_000_000,
        f"the brokers' default {FOLLOWER_RATE}": 2_000_000,
    }
    assert rates(older) == {
        (DEFAULT, FOLLOWER_RATE): "2000000",
        (DEFAULT, LEADER_RATE): "90000000",
        (ONE, LEADER_RATE): "1000000",
        (TWO, LEADER_RATE): "5000000",
        (ONE, FOLLOWER_RATE): "2000000",  # ours would hide the lower default
        (TWO, FOLLOWER_RATE): "5000000",  # theirs hid it already, and was higher than ours
    }
    assert any(event.kind == EventKind.FOREIGN_RATE for event in ledger.events(plan.plan_id))
    assert set_up_throttle(plan, ledger, older, RATE).foreign_rates == done.foreign_rates  # a retry
    change_rate(plan, ledger, older, SetRate(60_000_000, "requested"))
    assert follower_rates() == ("2000000", "030000000")
    change_rate(plan, ledger, older, SetRate(1_500_000, "requested"))
    assert follower_rates() == ("1500000", "1500000")
    assert clear_throttle(plan.plan_id, ledger, older).owed == ()
    assert everything(older, plan) == before


@pytest.mark.simulated("nothing looks whether what is in flight is throttled still")
def test_a_rate_that_is_deleted_on_its_broker_in_mid_copy_is_set_again(
    older: OwnGateway, ledger: Ledger, moving: Callable[[], Plan], topics: Topics
) -> None:
    """As Kafka's own tool does it; the source's rate stays here, so that the copy lasts."""
    plan, policy = moving(), Policy(100_000, metadata_grace_s=2)
    topics.fill(plan.moves[0].partition.topic, 1000, size_bytes=10_000)
    set_up_throttle(plan, ledger, older, 100_000)
    assert advance(plan, ledger, older, policy).in_flight == 1
    deleted = ConfigChange(TWO, FOLLOWER_RATE, ConfigOperation.DELETE)
    assert older.alter_configs([deleted]) == {TWO: None}
    wait_until(lambda: (TWO, FOLLOWER_RATE) not in rates(older), "the rate to go")
    assert advance(plan, ledger, older, policy).in_flight == 1
    assert rates(older) == both(100_000)
    (entry,) = [e for e in ledger.throttles(plan.plan_id) if e.times_gone]
    assert (entry.resource, entry.key) == (TWO, FOLLOWER_RATE)
    abort(plan.plan_id, ledger, older, "the test is over")
    assert clear_throttle(plan.plan_id, ledger, older).owed == ()
    assert everything(older, plan) == {}


def test_a_rate_is_set_again_though_another_broker_of_the_copy_refuses_its_own(
    older: OwnGateway,
    ledger: Ledger,
    moving: Callable[[], Plan],
    topics: Topics,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan, policy = moving(), Policy(100_000, metadata_grace_s=2)
    topics.fill(plan.moves[0].partition.topic, 1000, size_bytes=10_000)
    set_up_throttle(plan, ledger, older, 100_000)
    assert advance(plan, ledger, older, policy).in_flight == 1
    deleted = ConfigChange(ONE, LEADER_RATE, ConfigOperation.DELETE)
    assert older.alter_configs([deleted]) == {ONE: None}
    wait_until(lambda: (ONE, LEADER_RATE) not in rates(older), "the rate to go")
    with monkeypatch.context() as patches:
        let_refuse(patches, older, 2)
        step = advance(plan, ledger, older, policy)
    assert step.in_flight == 1
    assert rates(older) == both(100_000)
    (reported,) = [
        e.detail for e in ledger.events(plan.plan_id) if e.kind == EventKind.THROTTLE_NOT_SET_AGAIN
    ]
    assert reported.startswith("the throttle of broker 2: CLUSTER_AUTHORIZATION_FAILED (31)")
    assert "needs the right Cluster DescribeConfigs" in reported
    (entry,) = [e for e in ledger.throttles(plan.plan_id) if e.times_gone]
    assert (entry.resource, entry.key, entry.state) == (ONE, LEADER_RATE, ThrottleState.APPLIED)
    abort(plan.plan_id, ledger, older, "the test is over")
    assert clear_throttle(plan.plan_id, ledger, older).owed == ()
    assert everything(older, plan) == {}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.simulated("the journal is written after the cluster")
def test_a_set_up_killed_around_its_request_leaves_nothing_after_another_process_cleared(
    when: str,
    older_cluster: LocalCluster,
    older: OwnGateway,
    ledger: Ledger,
    ledger_url: str,
    moving: Callable[[], Plan],
) -> None:
    plan = moving()
    set_config(older, TWO, FOLLOWER_RATE, "70000000")
    before = everything(older, plan)
    run_until_killed("set_up", "alter_configs", when, plan, ledger_url, older_cluster, RATE)
    journal = ledger.throttles(plan.plan_id)
    assert {entry.resource for entry in journal} == {ONE, TWO}
    assert {entry.state for entry in journal} == {ThrottleState.JOURNALLED}
    assert clear_throttle(plan.plan_id, ledger, older).owed == ()
    assert everything(older, plan) == before


def test_a_dry_run_asks_each_broker_and_shows_which_lower_rates_will_hold(
    older: OwnGateway, moving: Callable[[], Plan]
) -> None:
    plan = moving()
    set_config(older, TWO, FOLLOWER_RATE, "1000000")
    before = everything(older, plan)
    (finding,) = found(check(older, *plan.moves), "throttle")
    assert finding.subject == "broker 2"
    assert finding.message.startswith("already has follower rate 1 MB/s")
    refused = found(check(older, *plan.moves, rate_bytes_per_s=2**63), "throttle")
    assert {item.subject for item in refused if item.code} == {"broker 1", "broker 2"}
    assert everything(older, plan) == before


def test_a_broker_that_hangs_while_its_rate_is_set_makes_its_moves_wait(
    older_cluster: LocalCluster, older: OwnGateway, ledger: Ledger, moving: Callable[[], Plan]
) -> None:
    connection = Connection.from_settings(older_cluster.client_settings())

    class Hanging(OwnGateway):
        """Only what broker 2 is asked while it hangs is waited for but briefly."""

        def alter_configs(
            self, changes: Sequence[ConfigChange], *, validate_only: bool = False
        ) -> dict[ConfigResource, BrokerError | None]:
            older_cluster.pause(2)
            with OwnGateway(connection, request_timeout_s=2) as impatient:
                return impatient.alter_configs(changes, validate_only=validate_only)

    plan, policy = moving(), Policy(RATE, metadata_grace_s=2)
    set_up_throttle(plan, ledger, older, RATE)
    deleted = ConfigChange(TWO, FOLLOWER_RATE, ConfigOperation.DELETE)
    assert older.alter_configs([deleted]) == {TWO: None}
    wait_until(lambda: (TWO, FOLLOWER_RATE) not in rates(older), "the rate to go")
    try:
        with Hanging(connection) as gateway:
            step = advance(plan, ledger, gateway, policy)
    finally:
        older_cluster.resume(2)
    assert step.admitted == []
    assert "the throttle of broker 2: REQUEST_TIMED_OUT (7)" in step.holds[0]
    wait_until(lambda: advance(plan, ledger, older, policy).finished, "the copy", 240)
    assert ledger.view(plan.plan_id).state is PlanState.DONE
    assert clear_throttle(plan.plan_id, ledger, older).owed == ()
    assert everything(older, plan) == {}


def test_a_broker_that_was_away_gets_its_rate_before_a_move_starts_and_owes_it_until_it_returns(
    older_cluster: LocalCluster, older: OwnGateway, ledger: Ledger, moving: Callable[[], Plan]
) -> None:
    first, second = moving(), moving()

    def alive(broker: int) -> bool:
        return broker in older.describe_cluster().brokers

    set_up_throttle(first, ledger, older, RATE)
    # Kafka's own tool deletes rates by broker as soon as it sees nothing in flight.
    deleted = ConfigChange(ONE, LEADER_RATE, ConfigOperation.DELETE)
    assert older.alter_configs([deleted]) == {ONE: None}
    wait_until(lambda: (ONE, LEADER_RATE) not in rates(older), "the tool's work to show")
    ensure(first, ledger, older, first.moves)
    assert rates(older) == both(RATE)

    older_cluster.kill(2)
    wait_until(lambda: not alive(2), "broker 2 to be gone", 240)
    owed = clear_throttle(first.plan_id, ledger, older).owed
    debt = {where: rate for where, rate in both(RATE).items() if where[0] == TWO}
    assert {(entry.resource, entry.key) for entry in owed} == debt.keys()
    ledger.transition(first.plan_id, PlanState.FAILED, "broker 2 died")
    set_up_throttle(second, ledger, older, 8_000_000)
    assert {e.resource for e in ledger.throttles(second.plan_id)} & {ONE, TWO} == {ONE}
    older_cluster.restart(2)
    wait_until(lambda: alive(2), "broker 2 to be back", 240)
    assert {where: rate for where, rate in rates(older).items() if where[0] == TWO} == debt
    # What is owed is taken back first: it must not count as another client's lower rate.
    ensure(second, ledger, older, second.moves)
    assert rates(older) == both(8_000_000)
    assert clear_throttle(second.plan_id, ledger, older).owed == ()
    assert ledger.throttles(open_only=True) == []
    assert everything(older, first) == everything(older, second) == {}


def test_brokers_that_cannot_cordon_are_reported_before_anything_changes(
    older: OwnGateway, ledger: Ledger, moving: Callable[[], Plan]
) -> None:
    plan = moving()
    request = ReassignmentRequest(Action.DRAIN, brokers=(1, 3), cordon=Cordon.UNDO)
    refused, dead = cordon_findings(request, [1, 2], older)
    known = RELEASE >= (4, 3)  # else no validation refuses it
    kind = FoundKind.CORDON_REFUSED if known else FoundKind.CORDON_NOT_KNOWN
    assert (refused.kind, "metadata.version" in refused.why) == (kind, known)
    assert dead == TypedFinding(FoundKind.CORDON_AWAY, "broker 3")
    with pytest.raises(RehomeError, match=r"cannot be cordoned"):
        cordon(plan, request, ledger, older)
    assert not ledger.throttles(plan.plan_id)
