"""A broker that is cut off from the controller has old metadata, which is not used."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from local.process.waiting import wait_until
from rehome.cluster.calls import fresh_metadata
from rehome.cluster.clients.clients import Clients
from rehome.cluster.clients.wire import NoAnswerError, metadata_request
from rehome.cluster.connection.settings import Connection
from rehome.cluster.gateway import ClusterGateway
from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.errors import BrokersDisagreeError, ClusterError
from rehome.cluster.messages.metadata import read_topics
from rehome.domain.clock import utc_now
from rehome.domain.kafka import TopicDescription
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.run.findings import Severity
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.advance import advance
from rehome.execution.completion.preferred_leaders import restore_preferred_leaders
from rehome.execution.completion.verify import verify
from rehome.execution.control.cancel import abort, ended_before_cancel
from rehome.execution.dry_run.cluster_state import read_cluster
from rehome.execution.observation import agreed_topics as agreed
from rehome.execution.observation.drift import DriftError, drift, refuse_drift
from rehome.execution.observation.drifted import Drift, DriftKind
from rehome.execution.observation.observe import observe
from rehome.ledger.store import Ledger
from tests.conftest import Topics
from tests.execution.driven import run
from tests.execution.dry_run.checked import check, found
from tests.execution.observation.cut_off import CutOffCluster
from tests.ledger.small_plans import make_plan, move
from tests.session.needs import Need, needs

REMOTE = 4
TOPICS = 12
"""As many as there are tests, or more."""
POLICY = Policy(100_000_000, metadata_grace_s=0)


class ToldByTheRemote:
    """A cluster of which the cut-off broker answers every Metadata request about topics."""

    def __init__(self, cluster: CutOffCluster, gateway: ClusterGateway) -> None:
        self._gateway = gateway
        only = Connection.from_settings({"bootstrap.servers": cluster.address(REMOTE)})
        self._remote = Clients(only, 5, 5)

    def describe_topics(
        self, names: Collection[str] | None = None, **_: Any
    ) -> dict[str, TopicDescription]:
        asked = metadata_request(None if names is None else sorted(names))
        (answer,) = self._remote.reads.ask_bootstrap(asked)
        return read_topics(answer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gateway, name)

    def close(self) -> None:
        self._remote.close()


@pytest.fixture(scope="module")
@needs(Need.BROKERS)
def cluster() -> Iterator[CutOffCluster]:
    with (
        tempfile.TemporaryDirectory(prefix="rehome-test-") as directory,
        CutOffCluster(Path(directory), REMOTE) as running,
    ):
        yield running


@pytest.fixture
def at_the_others(cluster: CutOffCluster) -> Iterator[ClusterGateway]:
    """A gateway that has never heard of the broker that is to be cut off."""
    servers = ",".join(cluster.address(broker) for broker in cluster.broker_ids[:-1])
    connection = Connection.from_settings({"bootstrap.servers": servers})
    with ClusterGateway(connection) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def cut_off(cluster: CutOffCluster) -> list[str]:
    """The last broker is cut off, and the others know that it is gone; topics that it knows."""
    made = [Topics(cluster).create([[1, 2]]) for _ in range(TOPICS)]
    settings = {"bootstrap.servers": cluster.address(REMOTE)}
    remote = Clients(Connection.from_settings(settings), 5, 5)

    def known() -> bool:
        (answer,) = remote.reads.ask_bootstrap(metadata_request(made))
        return not any(topic.error for topic in read_topics(answer).values())

    wait_until(known, "the topics to be known everywhere")
    remote.close()
    cluster.line.cut(REMOTE)
    one = Clients(Connection.from_settings({"bootstrap.servers": cluster.address(1)}), 5, 5)

    def fenced() -> bool:
        (answer,) = one.reads.ask_bootstrap(metadata_request([]))
        return REMOTE not in {broker.node_id for broker in answer.brokers}

    wait_until(fenced, "the broker's session to end", 240)
    one.close()
    return made


@pytest.fixture
def topic(cut_off: list[str]) -> str:
    """One that no other test uses."""
    return cut_off.pop()


@pytest.fixture
def told_by_the_remote(
    cluster: CutOffCluster, cut_off: list[str], at_the_others: ClusterGateway
) -> Iterator[ToldByTheRemote]:
    reported = ToldByTheRemote(cluster, at_the_others)
    yield reported
    reported.close()


def stale(reported: ToldByTheRemote, topic: str) -> tuple[int, ...]:
    return reported.describe_topics([topic])[topic].partitions[0].replicas


def wait_until_shown(cluster: CutOffCluster, topic: str, replicas: tuple[int, ...]) -> None:
    """By every other broker: what it has read of the metadata log it shows a little later."""
    for broker in cluster.broker_ids[:-1]:
        settings = {"bootstrap.servers": cluster.address(broker)}
        with ClusterGateway(Connection.from_settings(settings)) as gateway:
            reads = gateway.clients.reads

            def shown(reads: Any = reads) -> bool:
                (answer,) = reads.ask_bootstrap(metadata_request([topic]))
                state = read_topics(answer)[topic].partitions[0]
                return bool(state.replicas == replicas)

            wait_until(shown, f"broker {broker} to show {replicas}")


def test_a_finished_move_is_done_whatever_a_broker_shows_that_is_cut_off(
    cluster: CutOffCluster,
    topic: str,
    told_by_the_remote: ToldByTheRemote,
    ledger: Ledger,
    approved: Callable[..., Plan],
) -> None:
    made = move(topic, 0, (1, 2), (3, 2))
    plan = approved(made, cluster_id=cluster.cluster_id)
    done = run(plan, ledger, told_by_the_remote, POLICY)
    assert stale(told_by_the_remote, topic) == made.current
    assert (done.finished, done.cause) == (PlanState.DONE, "every move is done")
    assert ledger.view(plan.plan_id).moves == {made.partition: MoveState.DONE}
    assert verify(plan, cast(OwnCluster, told_by_the_remote)).ok


def test_a_move_that_ended_before_its_cancel_is_not_put_back_for_such_a_broker(
    cluster: CutOffCluster,
    topic: str,
    told_by_the_remote: ToldByTheRemote,
    ledger: Ledger,
    approved: Callable[..., Plan],
) -> None:
    made = move(topic, 0, (1, 2), (3, 2))
    plan = approved(made, cluster_id=cluster.cluster_id)
    port = cast(OwnCluster, told_by_the_remote)
    assert advance(plan, ledger, port, POLICY).admitted == [made.partition]
    wait_until(lambda: not port.list_reassignments(), "the move to end")
    after = ended_before_cancel(port, plan.moves)
    assert (after.ended, after.unclear) == ({made.partition: MoveState.DONE}, {})
    abort(plan.plan_id, ledger, port, "not wanted any more")
    assert ledger.view(plan.plan_id).moves == {made.partition: MoveState.DONE}
    assert port.current_topics([topic])[topic].partitions[0].replicas == made.target


def test_a_cancel_restores_the_order_whatever_such_a_broker_shows(
    topic: str,
    told_by_the_remote: ToldByTheRemote,
    ledger: Ledger,
    approved: Callable[..., Plan],
    cluster: CutOffCluster,
) -> None:
    """The copy goes to the broker that is cut off, so that it cannot end before the cancel."""
    made = move(topic, 0, (1, 2), (REMOTE, 2))
    plan = approved(made, cluster_id=cluster.cluster_id)
    port = cast(OwnCluster, told_by_the_remote)
    ledger.claim(plan.plan_id)
    ledger.admit(plan.plan_id, plan.moves, observe(port, plan.moves, utc_now()), 1000)
    assert port.alter_reassignments({made.partition: made.target}) == {made.partition: None}
    wait_until_shown(cluster, topic, (REMOTE, 2, 1))
    done = abort(plan.plan_id, ledger, port, "not wanted any more")
    assert (done.cancelled, done.unread) == ((made.partition,), {})
    assert stale(told_by_the_remote, topic) == made.current
    wait_until_shown(cluster, topic, made.current)


def moved_unseen(
    port: OwnCluster, remote: ToldByTheRemote, cluster: CutOffCluster, made: Move, to: Sequence[int]
) -> None:
    """Another client moves the partition; the broker that is cut off shows it as it was."""
    assert port.alter_reassignments({made.partition: to}) == {made.partition: None}
    wait_until_shown(cluster, made.partition.topic, tuple(to))
    assert stale(remote, made.partition.topic) == made.current


def test_what_another_client_moved_is_drift_whatever_such_a_broker_shows(
    topic: str, told_by_the_remote: ToldByTheRemote, cluster: CutOffCluster
) -> None:
    made = move(topic, 0, (1, 2), (2, 3))
    plan = make_plan("waits", made, cluster_id=cluster.cluster_id)
    port = cast(OwnCluster, told_by_the_remote)
    refuse_drift(plan, port)
    moved_unseen(port, told_by_the_remote, cluster, made, (3, 2))
    with pytest.raises(DriftError, match=r"has replicas \[3, 2\], not \[1, 2\]"):
        refuse_drift(plan, port)


def test_a_dry_run_judges_its_moves_by_no_such_broker(
    topic: str, told_by_the_remote: ToldByTheRemote, cluster: CutOffCluster
) -> None:
    made = move(topic, 0, (1, 2), (2, 3))
    plan = make_plan("dry", made, cluster_id=cluster.cluster_id)
    port = cast(OwnCluster, told_by_the_remote)
    moved_unseen(port, told_by_the_remote, cluster, made, (3, 2))
    found = drift(plan, read_cluster(plan, port).topics)
    assert found == {made.partition: Drift(DriftKind.REPLICAS, (3, 2), (1, 2))}


def test_a_move_does_not_start_from_what_such_a_broker_shows(
    topic: str,
    told_by_the_remote: ToldByTheRemote,
    ledger: Ledger,
    approved: Callable[..., Plan],
    cluster: CutOffCluster,
) -> None:
    """Another client has moved the partition while the move waited for its turn."""
    made = move(topic, 0, (1, 2), (2, 1))
    plan = approved(made, cluster_id=cluster.cluster_id)
    port = cast(OwnCluster, told_by_the_remote)
    ledger.claim(plan.plan_id)
    moved_unseen(port, told_by_the_remote, cluster, made, (3, 2))
    step = advance(plan, ledger, port, POLICY)
    assert step.admitted == []
    assert ledger.view(plan.plan_id).moves == {made.partition: MoveState.SUPERSEDED}
    assert port.current_topics([topic])[topic].partitions[0].replicas == (3, 2)


def test_a_leader_is_elected_though_such_a_broker_shows_that_it_leads_already(
    topic: str, told_by_the_remote: ToldByTheRemote, cluster: CutOffCluster
) -> None:
    made = move(topic, 0, (1, 2), (2, 1))
    plan = make_plan("turns", made, cluster_id=cluster.cluster_id)
    port = cast(OwnCluster, told_by_the_remote)
    assert port.alter_reassignments({made.partition: made.target}) == {made.partition: None}
    wait_until_shown(cluster, topic, made.target)
    shown = told_by_the_remote.describe_topics([topic])[topic].partitions[0]
    assert shown.leader == shown.replicas[0] == 1
    done = restore_preferred_leaders(plan, port)
    assert (done.already, done.elected) == (0, (made.partition,))
    wait_until(
        lambda: port.current_topics([topic])[topic].partitions[0].leader == 2, "broker 2 to lead"
    )


def test_without_a_metadata_quorum_nothing_is_said_on_which_brokers_differ(
    cluster: CutOffCluster,
    topic: str,
    told_by_the_remote: ToldByTheRemote,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Brokers with ZooKeeper have none; these are real ones that are not asked for it."""
    monkeypatch.setattr(fresh_metadata, "quorum_of_controllers", lambda _: None)
    partition = move(topic, 0, (1, 2), (3, 2)).partition
    port = cast(OwnCluster, told_by_the_remote)
    assert port.alter_reassignments({partition: (3, 2)}) == {partition: None}

    def ended() -> bool:
        found = port.current_topics([topic])
        return bool(found) and found[topic].partitions[0].replicas == (3, 2)

    wait_until(ended, "the move to end")
    everywhere = Connection.from_settings(cluster.client_settings())
    shown = set()
    for _ in range(5):
        with ClusterGateway(everywhere) as gateway:
            found = gateway.current_topics([topic])
            shown.add(found[topic].partitions[0].replicas if found else None)
    assert shown <= {(3, 2), None}, "never as the broker shows it that is cut off"


@pytest.fixture
def led_by_another(topic: str, told_by_the_remote: ToldByTheRemote, cluster: CutOffCluster) -> Plan:
    """Its partition is led by 2, and preferred to be led by 1, which leads at the cut-off one."""
    made = move(topic, 0, (1, 2), (1, 2))
    port = cast(OwnCluster, told_by_the_remote)
    moved_unseen(port, told_by_the_remote, cluster, made, (2, 1))
    assert port.elect_preferred_leaders([made.partition]) == {made.partition: None}
    moved_unseen(port, told_by_the_remote, cluster, made, (1, 2))
    wait_until(lambda: leader_of(port, topic) == 2, "broker 2 to lead")
    assert told_by_the_remote.describe_topics([topic])[topic].partitions[0].leader == 1
    return make_plan("led", made, cluster_id=cluster.cluster_id)


def leader_of(port: OwnCluster, topic: str) -> int | None:
    return port.current_topics([topic])[topic].partitions[0].leader


@pytest.fixture
def no_quorum(cluster: CutOffCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every broker is asked, the one first that is cut off: each may be the first to answer."""

    def of_each(
        clients: Clients, names: Collection[str] | None, brokers: Collection[int]
    ) -> list[dict[str, TopicDescription]]:
        request = metadata_request(None if names is None else sorted(names))
        answers: list[dict[str, TopicDescription]] = []
        for broker in reversed(cluster.broker_ids):
            servers = {"bootstrap.servers": cluster.address(broker)}
            only = Clients(Connection.from_settings(servers), 5, 5)
            answers += map(read_topics, only.reads.ask_bootstrap(request))
            only.close()
        return answers

    monkeypatch.setattr(fresh_metadata, "quorum_of_controllers", lambda _: None)
    monkeypatch.setattr(fresh_metadata, "topics_at", of_each)
    monkeypatch.setattr(agreed, "AGREED_TIMEOUT_S", 0)


def test_a_leader_on_which_brokers_differ_is_not_known_without_a_metadata_quorum(
    led_by_another: Plan, at_the_others: ClusterGateway, no_quorum: None
) -> None:
    port = cast(OwnCluster, at_the_others)
    partition = led_by_another.moves[0].partition
    assert port.current_topics([partition.topic]) == {}
    with pytest.raises(BrokersDisagreeError):
        port.current_topics(None)
    done = restore_preferred_leaders(led_by_another, port)
    assert (done.already, done.elected, done.waiting) == (0, (), ())
    assert done.unread == (partition,)


def test_where_the_controller_does_not_answer_nothing_is_judged_by_what_brokers_show(
    led_by_another: Plan, told_by_the_remote: ToldByTheRemote, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That its answer is lost is put into the place of the real one."""
    port, clients = cast(OwnCluster, told_by_the_remote), told_by_the_remote.clients
    ask_any = clients.controller.ask_any

    def lost(request: Any) -> Any:
        answer = ask_any(request)
        if type(request).__name__ == "DescribeQuorumRequest":
            raise NoAnswerError(ErrorCode.REQUEST_TIMED_OUT.error())
        return answer

    monkeypatch.setattr(clients.controller, "ask_any", lost)
    for judge in (restore_preferred_leaders, refuse_drift, read_cluster, verify):
        with pytest.raises(ClusterError, match="DescribeQuorum got no answer"):
            judge(led_by_another, port)


def test_a_dry_run_says_of_what_brokers_differ_on_that_it_is_not_known(
    led_by_another: Plan, at_the_others: ClusterGateway, no_quorum: None
) -> None:
    partition = led_by_another.moves[0].partition
    result = check(at_the_others, move(*partition, (1, 2), (3, 2)))
    (unknown,) = found(result, "drift")
    assert (unknown.severity, unknown.subject) == (Severity.ERROR, partition.topic)
    assert "is not known: the brokers do not agree" in unknown.message
    assert found(result, "verdict") == [], "nor what the controller would say"
