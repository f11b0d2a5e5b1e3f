"""A broker that several plans drain stays cordoned until the last of them has ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rehome.domain import clock
from rehome.domain.actions import Action
from rehome.domain.configs import ConfigResource
from rehome.domain.request.request import Cordon, ReassignmentRequest
from rehome.domain.run.states import PlanState
from rehome.errors import RehomeError
from rehome.execution.dry_run.throttle_checks import cordon_findings
from rehome.execution.dry_run.typed_finding import FoundKind, TypedFinding
from rehome.execution.throttle.clear import clear_throttle
from rehome.execution.throttle.cordon import cordon
from rehome.execution.throttle.foreign import foreign_throttles
from rehome.execution.throttle.keys import CORDONED
from tests.execution.throttle.ownership.box import Box
from tests.ledger.small_plans import move

DRAINED = 3
BROKER = ConfigResource.broker(DRAINED)
UNDO = ReassignmentRequest(Action.DRAIN, brokers=(DRAINED,), cordon=Cordon.UNDO)
KEEP = ReassignmentRequest(Action.DRAIN, brokers=(DRAINED,), cordon=Cordon.KEEP)
MOVE = move("t", 0, (DRAINED, 1), (2, 1))


class Draining(Box):
    """Plans that cordon a broker."""

    def begin(self, site: str, plan_id: str, request: ReassignmentRequest) -> Callable[[], None]:
        """A plan of an installation cordons the broker; returns what ends it."""
        plan, ledger = self.approved(site, plan_id, MOVE), self.ledger(site)
        cordon(plan, request, ledger, self.own)
        self.sleep(1)

        def end() -> None:
            ledger.transition(plan_id, PlanState.FAILED, "enough")
            assert not clear_throttle(plan_id, ledger, self.own).owed
            self.sleep(1)

        return end

    @property
    def cordoned(self) -> str | None:
        return self.holds(BROKER, CORDONED)


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Draining]:
    made = Draining(tmp_path)
    with clock.replaced_by(made):
        yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize("sites", ["aa", "ab"], ids=["one ledger", "two ledgers"])
def test_the_end_of_one_plan_leaves_the_cordon_to_the_other(box: Draining, sites: str) -> None:
    first, second = tuple(sites)
    ends = [box.begin(first, "one", UNDO), box.begin(second, "two", UNDO)]
    ends[0]()
    assert box.cordoned == "*"
    ends[1]()
    assert box.holds(BROKER, CORDONED) is None
    assert box.marks == set()


@pytest.mark.parametrize("sites", ["aa", "ab"], ids=["one ledger", "two ledgers"])
def test_a_cordon_that_is_to_be_kept_stays_when_a_plan_ends_that_would_undo_it(
    box: Draining, sites: str
) -> None:
    first, second = tuple(sites)
    end = box.begin(first, "one", UNDO)
    box.begin(second, "two", KEEP)
    end()
    assert box.cordoned == "*"
    assert box.marks == set()


def test_what_an_administrator_has_cordoned_meanwhile_stays(box: Draining) -> None:
    end = box.begin("a", "one", UNDO)
    log_dir = next(iter(box.model.world.nodes[DRAINED].disks))
    box.set(BROKER, CORDONED, log_dir)
    end()
    assert box.cordoned == log_dir
    assert box.marks == set()


def test_another_installation_names_the_cordon_that_is_marked_and_no_other(box: Draining) -> None:
    end = box.begin("a", "one", UNDO)
    box.set(ConfigResource.broker(4), CORDONED, "*")
    found = foreign_throttles(box.ledger("b"), box.own).throttles
    assert [(each.resource, each.key, each.value) for each in found] == [(BROKER, CORDONED, "*")]
    assert foreign_throttles(box.ledger("a"), box.own).throttles == ()
    box.set(BROKER, CORDONED, None)
    assert foreign_throttles(box.ledger("b"), box.own).throttles == (), "only what is there"
    end()


def test_a_broker_that_takes_the_setting_and_does_not_know_it_is_refused(box: Draining) -> None:
    """Brokers before Kafka 4.3 accept any setting that they do not know."""
    node = box.model.world.nodes[DRAINED]
    node.spec = replace(node.spec, version=(4, 2))
    (found,) = cordon_findings(UNDO, [1, 2, DRAINED], box.own)
    assert found == TypedFinding(FoundKind.CORDON_NOT_KNOWN, f"broker {DRAINED}")
    with pytest.raises(RehomeError, match=r"brokers before Kafka 4\.3"):
        box.begin("a", "one", UNDO)
    assert box.cordoned is None
    assert box.marks == set()
