"""A drain cordons its brokers while it runs, and takes that back only where it was asked to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rehome.cluster.gateway import ClusterGateway
from rehome.domain.configs import ConfigResource
from tests.dags.site import Site
from tests.execution.throttle.cordon.cordons import cordon_of, uncordoned_afterwards
from tests.versions.since import cordons

pytestmark = cordons

DRAINED = 4
BROKER = ConfigResource.broker(DRAINED)


@pytest.fixture(autouse=True)
def as_before(gateway: ClusterGateway) -> Iterator[None]:
    with uncordoned_afterwards(gateway, DRAINED):
        yield


@pytest.mark.parametrize(
    ("asked", "meanwhile", "afterwards"),
    [
        ({"cordon": "undo"}, "*", None),
        ({"cordon": "keep"}, "*", "*"),
        # In `make test` in tests/execution/throttle/cordon/test_cordon_on_brokers.py.
        pytest.param({}, None, None, marks=pytest.mark.long),
    ],
    ids=["undo", "keep", "not_asked"],
)
def test_a_drain_cordons_its_brokers_and_ends_that_as_was_asked(
    asked: dict[str, str],
    meanwhile: str | None,
    afterwards: str | None,
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rehome.operators.execute import StartReassignmentOperator

    topic = site.topics.create([[DRAINED, 1]])
    real, seen = StartReassignmentOperator.step, list[str | None]()

    def step(self: StartReassignmentOperator, context: Any) -> None:
        seen.append(cordon_of(site.gateway, DRAINED))
        real(self, context)

    monkeypatch.setattr(StartReassignmentOperator, "step", step)
    run = site.run(action="drain", brokers=[DRAINED], topics=[topic], throttle=5_000_000, **asked)
    assert run.state == "success", run.log
    assert seen == [meanwhile]
    assert cordon_of(site.gateway, DRAINED) == afterwards
    assert not site.ledger.throttles(open_only=True)
