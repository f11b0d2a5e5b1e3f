"""The main path by tokens that end, and by a password that is changed, while it runs; with exactly
the rights it needs.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator

import pytest

from local.process.waiting import wait_until
from rehome.cluster.interface.errors import Unreachable
from rehome.domain.run.states import PlanState
from rehome.ledger.store import Ledger
from tests.cluster.connection.logins import PASSWORD, Logins, login_cluster
from tests.cluster.connection.test_check_connection import cause_of
from tests.conftest import Topics
from tests.dags.clusters import to
from tests.dags.runs import Run
from tests.rights import REASSIGNER, granted
from tests.session.needs import Need, needs

ROBOT, SECRET = "robot", "client-secret"


@pytest.fixture
@needs(Need.BROKERS)
def logins() -> Iterator[Logins]:
    with login_cluster(brokers=3) as found:
        found.tokens.clients[ROBOT] = SECRET
        found.tokens.lasts_s = 10
        yield found


@pytest.mark.long
def test_a_run_goes_on_over_several_tokens(
    logins: Logins, ledger: Ledger, rehome: Callable[..., Run]
) -> None:
    with granted(logins.cluster, ROBOT, *REASSIGNER):
        run = _moved(logins, rehome, logins.by_token(ROBOT, SECRET))
    _is_done(run, ledger)
    assert SECRET not in run.log
    assert len(logins.tokens.asked) >= 10, "one for each step on the cluster, three for its poll"


@pytest.mark.long
def test_a_password_that_is_changed_in_mid_run_is_picked_up_by_the_next_step(
    logins: Logins, ledger: Ledger, ledger_url: str, rehome: Callable[..., Run]
) -> None:
    mechanism, user = "SCRAM-SHA-256", "scram256"
    old, new = (logins.by_password(mechanism, user, each) for each in (PASSWORD, SECRET))
    kafka = json.dumps({"conn_type": "kafka", "extra": new})

    def change_it() -> None:
        with Ledger.open(ledger_url) as seen:
            wait_until(lambda: _is_running(seen), "the plan to run", 120)
        os.environ["AIRFLOW_CONN_KAFKA_DEFAULT"] = kafka
        logins.set_scram_password(mechanism, user, SECRET)

    logins.set_scram_password(mechanism, user, PASSWORD)
    changing = threading.Thread(target=change_it)
    with granted(logins.cluster, user, *REASSIGNER):
        changing.start()
        run = _moved(logins, rehome, old)
        changing.join()
    assert cause_of(old) is Unreachable.WRONG_PASSWORD
    _is_done(run, ledger)
    assert PASSWORD not in run.log
    assert SECRET not in run.log


def _moved(logins: Logins, rehome: Callable[..., Run], settings: dict[str, str]) -> Run:
    """A run that moves two partitions to a third broker, slowly."""
    with Topics(logins.cluster) as topics:
        topic = topics.create([[1, 2], [2, 1]])
        topics.fill(topic, 5000, size_bytes=10_000)
        wanted = to(topic, {0: [3, 2], 1: [3, 1]})
        return rehome(settings, action="reassign", reassignment=wanted, throttle=3_000_000)


def _is_done(run: Run, ledger: Ledger) -> None:
    assert run.state == "success", run.log
    (record,) = ledger.plans()
    assert record.state is PlanState.DONE
    assert ledger.throttles()
    assert not ledger.throttles(open_only=True)


def _is_running(ledger: Ledger) -> bool:
    return any(record.state is PlanState.RUNNING for record in ledger.plans())
