"""Progress that a poll writes to the ledger, and that the next poll uses."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from rehome.domain.kafka import ReplicaId
from rehome.domain.run.progress import ReplicaStatus
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.admission.backlog import Backlog
from rehome.execution.advance import advance
from rehome.execution.poll import poll
from rehome.ledger.store import Ledger
from tests.execution.advance.test_advance_properties import record
from tests.execution.observed import POLICY, T0
from tests.execution.simulated_cluster import SimulatedCluster
from tests.ledger.small_plans import make_plan, move


@pytest.mark.slow
def test_the_time_left_comes_from_what_earlier_polls_have_recorded(tmp_path: Path) -> None:
    """Broker 1 sends two copies, and 400 of 1000 B/s is all that comes."""
    moves = [move("t", 0, (1,), (3,), 60_000), move("t", 1, (1,), (4,), 60_000)]
    plan, url = make_plan("p", *moves), f"sqlite:///{tmp_path / 'ledger.db'}"
    record(plan, url)
    cluster = SimulatedCluster([1, 2, 3, 4], moves)
    port = cast(OwnCluster, cluster)
    etas, at = [], [T0]

    def clock() -> datetime:
        return at[-1]

    with Ledger.open(url, clock=clock) as ledger:
        advance(plan, ledger, port, POLICY, clock)
        for _ in range(24):
            at.append(at[-1] + timedelta(seconds=5))
            cluster.step(1000)
            polled = poll(plan, ledger, port, POLICY, Backlog(), clock)
            assert polled is not None
            etas.append(polled.progress.sample.eta_s)
        recorded = [sample.eta_s for sample in ledger.samples("p")][-24:]
        newest = ledger.view("p").flows[-1]
    assert etas[0] == pytest.approx(118, rel=0.1)  # as fast as it is expected to go
    assert etas[-1] == pytest.approx(180, rel=0.05)  # 36,000 of each are left, at 200 B/s
    assert recorded == etas
    assert newest.seconds == 5
    *_, out = newest.flows
    assert (out.direction, out.broker, out.copied_bytes) == ("out", 1, 2000)
    assert out.allowed_bytes == pytest.approx(5000, rel=0.01)


@pytest.mark.slow
def test_how_soon_the_next_moves_start_is_seen_in_what_earlier_polls_have_recorded(
    tmp_path: Path,
) -> None:
    """Two of forty moves may be in flight; a step comes each four seconds, and not each 15."""
    moves = [move("t", n, (1,), (3,), 100) for n in range(40)]
    plan, url = make_plan("p", *moves), f"sqlite:///{tmp_path / 'ledger.db'}"
    record(plan, url)
    cluster, at = SimulatedCluster([1, 2, 3, 4], moves), [T0]
    port = cast(OwnCluster, cluster)
    policy = replace(POLICY, reaction_s=15.0, max_partitions_in_flight=2)
    with Ledger.open(url, clock=lambda: at[-1]) as ledger:
        for _ in range(6):
            advance(plan, ledger, port, policy, lambda: at[-1])
            at.append(at[-1] + timedelta(seconds=4))
            cluster.step(1000)
        etas = [sample.eta_s for sample in ledger.samples("p")]
    assert etas[1] == pytest.approx(18 * 15, abs=15)
    assert etas[-1] == pytest.approx(14 * 4, abs=4)


class Counting(Ledger):
    """Counts how often statuses are read."""

    read = 0

    def latest_in_flight(self, plan_id: str) -> dict[ReplicaId, ReplicaStatus]:
        self.read += 1
        return super().latest_in_flight(plan_id)


@pytest.mark.parametrize("another_polls", [False, True])
def test_a_process_reads_its_own_statuses_only_where_another_has_polled_since(
    tmp_path: Path, another_polls: bool
) -> None:
    moves = [move("t", 0, (1,), (3,), 60_000), move("t", 1, (1,), (4,), 2_000)]
    plan = make_plan("p", *moves)

    def played(*, keeps: bool) -> tuple[int, object]:
        url, at = f"sqlite:///{tmp_path / f'ledger-{keeps}.db'}", [T0]
        record(plan, url)
        cluster, kept = SimulatedCluster([1, 2, 3, 4], moves), Backlog()
        port = cast(OwnCluster, cluster)
        with Counting.open(url, clock=lambda: at[-1]) as ledger:
            advance(plan, ledger, port, POLICY, lambda: at[-1])
            ledger.read = 0
            for number in range(8):
                at.append(at[-1] + timedelta(seconds=5))
                cluster.step(1000)
                own = keeps and not (another_polls and number == 4)
                assert poll(plan, ledger, port, POLICY, kept if own else Backlog(), lambda: at[-1])
            recorded = ledger.samples("p"), ledger.latest("p"), ledger.view("p").flows
            return ledger.read, recorded

    (read, recorded), (each_time, by_reading) = played(keeps=True), played(keeps=False)
    assert (read, each_time) == (3 if another_polls else 1, 8)
    assert recorded == by_reading


def test_two_processes_that_poll_at_once_count_nothing_twice(tmp_path: Path) -> None:
    """The other's poll is recorded after this one has read the history, and before the rest."""
    moves = [move("t", 0, (1,), (3,), 60_000)]
    plan, url = make_plan("p", *moves), f"sqlite:///{tmp_path / 'ledger.db'}"
    record(plan, url)
    cluster, at = SimulatedCluster([1, 2, 3, 4], moves), [T0]
    port = cast(OwnCluster, cluster)

    def poll_once(ledger: Ledger, seconds: float) -> None:
        at.append(at[-1] + timedelta(seconds=seconds))
        cluster.step(round(200 * seconds))
        assert poll(plan, ledger, port, POLICY, Backlog(), lambda: at[-1])

    class Interrupted(Ledger):
        def latest_in_flight(self, plan_id: str) -> dict[ReplicaId, ReplicaStatus]:
            with Ledger.open(url, clock=lambda: at[-1]) as other:
                at.insert(-1, at[-1] - timedelta(seconds=1))
                assert poll(plan, other, port, POLICY, Backlog(), lambda: at[-2])
            return super().latest_in_flight(plan_id)

    with Ledger.open(url, clock=lambda: at[-1]) as ledger:
        advance(plan, ledger, port, POLICY, lambda: at[-1])
        for _ in range(3):
            poll_once(ledger, 5)
    with Interrupted.open(url, clock=lambda: at[-1]) as ledger:
        poll_once(ledger, 5)
        flows = ledger.view("p").flows
    assert [flow.copied_bytes for flow in flows[-1].flows] == [0, 0]
    assert [flow.copied_bytes for flow in flows[-2].flows] == [1000, 1000]
