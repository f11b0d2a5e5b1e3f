"""The main path by tokens that end while it runs, with exactly the rights it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from rehome.domain.run.states import PlanState
from rehome.ledger.store import Ledger
from tests.cluster.connection.logins import Logins, login_cluster
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
    with Topics(logins.cluster) as topics, granted(logins.cluster, ROBOT, *REASSIGNER):
        topic = topics.create([[1, 2], [2, 1]])
        topics.fill(topic, 5000, size_bytes=10_000)
        run = rehome(
            logins.by_token(ROBOT, SECRET),
            action="reassign",
            reassignment=to(topic, {0: [3, 2], 1: [3, 1]}),
            throttle=3_000_000,
        )
    assert run.state == "success", run.log
    (record,) = ledger.plans()
    assert record.state is PlanState.DONE
    assert ledger.throttles()
    assert not ledger.throttles(open_only=True)
    assert SECRET not in run.log
    assert len(logins.tokens.asked) >= 10, "one for each step on the cluster, three for its poll"
