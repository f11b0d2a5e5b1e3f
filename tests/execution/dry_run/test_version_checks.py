"""What versions of Kafka lack, by what brokers say that they can, and what dry runs say of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import cast

import pytest

from rehome.cluster.interface.port import ClusterPort
from rehome.domain.kafka import (
    Broker,
    BrokerError,
    BrokerId,
    ClusterDescription,
    LogDir,
    Partial,
    ReplicaOnDisk,
    SupportedVersions,
    TopicPartition,
)
from rehome.domain.plan.move import Move
from rehome.domain.run.findings import Severity
from rehome.execution.dry_run.cluster_state import ClusterState
from rehome.execution.dry_run.typed_finding import FoundKind, TypedFinding
from rehome.execution.dry_run.version_checks import Lacks, lacking, version_findings
from tests.ledger.small_plans import make_plan, move

OLDER = {"3.6": (0, 14), "3.7": (0, 19), "3.8": (0, 20), "3.9": (0, 21), "4.0": (0, 25)}
NEWER = {"4.1": (1, 27), "4.3": (1, 30), "4.4": (1, 33)}
WITHIN = move("t", 0, (1, 2), (1, 2), 100, ("/a", "/a"), ("/b", "any"))
ACROSS = move("t", 0, (1, 2), (1, 3))
SILENT = BrokerError(7, "REQUEST_TIMED_OUT", "no answer")
FEWER = move("t", 0, (1, 2), (1,))


def able(version: str) -> SupportedVersions:
    """What brokers of a version say; seen on each of them."""
    request, level = (OLDER | NEWER)[version]
    return SupportedVersions({45: request}, {"metadata.version": level})


@pytest.mark.parametrize(
    ("version", "lacks"),
    [
        ("3.6", Lacks((1,), (1,), ())),  # no copy waits for the controller yet
        ("3.7", Lacks((1,), (1,), (1,))),
        ("3.8", Lacks((1,), (), (1,))),
        ("3.9", Lacks((1,), (), ())),
        ("4.0", Lacks((1,), (), ())),
        ("4.1", Lacks((), (), ())),
        ("4.4", Lacks((), (), ())),
    ],
)
def test_what_a_version_lacks_is_known_by_its_requests_and_levels(
    version: str, lacks: Lacks
) -> None:
    assert lacking({1: able(version)}) == lacks


def test_each_broker_counts_for_itself_and_levels_of_zookeepers_brokers_say_nothing() -> None:
    of_zookeeper = SupportedVersions({45: 0}, {})
    found = lacking({3: able("3.7"), 2: able("4.4"), 1: of_zookeeper})
    assert found == Lacks((1, 3), (3,), (3,))


class Saying:
    """A cluster whose brokers say this; those without an entry say nothing."""

    def __init__(self, versions: Mapping[BrokerId, str]) -> None:
        self.versions = versions

    def supported_versions(self, brokers: list[BrokerId]) -> Partial[dict[BrokerId, object]]:
        return Partial(
            {broker: able(self.versions[broker]) for broker in brokers if broker in self.versions},
            {broker: SILENT for broker in brokers if broker not in self.versions},
        )


def state(*future: tuple[str, int]) -> ClusterState:
    """Brokers 1 to 3; ``future``: topics with a copy between log dirs of broker 1, each with what
    it lacks.
    """
    copies = {TopicPartition(t, 0): ReplicaOnDisk(5, lag, is_future=True) for t, lag in future}
    brokers = {b: Broker(b, "h", 1, None) for b in (1, 2, 3)}
    return ClusterState(
        taken_at=datetime(2026, 1, 1, tzinfo=UTC),
        cluster=ClusterDescription("c1", 1, brokers, None),
        topics={},
        ongoing={},
        log_dirs=Partial([LogDir(1, "/b", None, None, None, None, copies)]),
        missing_rights=(),
        min_isr={},
        sizes={},
    )


def findings(
    versions: Mapping[BrokerId, str],
    *moves: Move,
    now: ClusterState,
    in_flight: Collection[TopicPartition] = (),
) -> list[TypedFinding]:
    cluster = cast(ClusterPort, Saying(versions))
    return list(version_findings(make_plan("p", *moves), cluster, now, in_flight))


def test_newer_brokers_lack_nothing_and_those_outside_of_the_plan_need_not_say_so() -> None:
    versions = {1: "4.1", 2: "4.4", 3: "4.3"}
    assert findings(versions, WITHIN, now=state()) == []
    assert findings(versions, FEWER, now=state()) == []
    assert findings({1: "4.4", 2: "4.4"}, WITHIN, now=state()) == []
    assert findings({1: "4.4", 2: "4.4"}, FEWER, now=state()) == []


def test_an_older_broker_outside_of_the_plan_may_hand_its_reassignments_on() -> None:
    versions = {1: "4.4", 2: "4.4", 3: "3.7"}
    found = findings(versions, FEWER, now=state())
    assert [(each.kind, each.subject) for each in found] == [
        (FoundKind.REPLICAS_NOT_CHECKED, "broker 3"),
        (FoundKind.ENDS_OUT_OF_SYNC, "broker 3"),
    ]
    assert findings(versions, WITHIN, now=state()) == []


def test_copies_between_log_dirs_that_may_never_end_are_warned_of_by_broker() -> None:
    found = findings({1: "3.7", 2: "3.7"}, WITHIN, now=state())
    assert found == [TypedFinding(FoundKind.COPIES_MAY_STAND, "broker 1")]
    assert findings({1: "3.9", 2: "3.7"}, WITHIN, now=state()) == []


def test_a_broker_on_which_such_a_copy_stands_is_refused_until_it_was_restarted() -> None:
    found = findings({1: "3.8", 2: "3.8"}, WITHIN, now=state(("other", 0)))
    assert found == [TypedFinding(FoundKind.COPY_STANDS, "broker 1")]
    assert found[0].severity is Severity.ERROR
    assert findings({1: "3.8", 2: "3.8"}, WITHIN, now=state(("t", 0))) == found
    still_copies, continued = state(("other", 3)), state(("t", 0))
    for harmless, in_flight in ((still_copies, ()), (continued, (TopicPartition("t", 0),))):
        (warned,) = findings({1: "3.8", 2: "3.8"}, WITHIN, now=harmless, in_flight=in_flight)
        assert warned.kind is FoundKind.COPIES_MAY_STAND


def test_reassignments_on_older_brokers_name_what_no_controller_checks() -> None:
    found = findings(dict.fromkeys((1, 2, 3), "4.0"), ACROSS, now=state())
    assert found == [TypedFinding(FoundKind.REPLICAS_NOT_CHECKED, "brokers 1, 2 and 3")]
    kinds = [each.kind for each in findings(dict.fromkeys((1, 2), "3.7"), FEWER, now=state())]
    assert kinds == [FoundKind.REPLICAS_NOT_CHECKED, FoundKind.ENDS_OUT_OF_SYNC]
    order = replace(ACROSS, target=(2, 1))
    assert findings(dict.fromkeys((1, 2), "4.0"), order, now=state()) == []


def test_a_broker_that_does_not_say_is_named() -> None:
    found = findings({1: "4.4"}, WITHIN, now=state())
    assert found == [TypedFinding(FoundKind.VERSIONS_NOT_KNOWN, "broker 2", SILENT)]
