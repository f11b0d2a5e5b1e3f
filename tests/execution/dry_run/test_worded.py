"""What a dry run finds, in words: each topic for one and for several."""

from __future__ import annotations

from typing import Any

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.figures import Weakened
from rehome.domain.run.findings import Finding, Severity
from rehome.domain.time_range import TimeRange
from rehome.execution.access.policy_refusals import PolicyAspect, PolicyDifference
from rehome.execution.admission.slots import Direction
from rehome.execution.dry_run.typed_finding import FoundKind, IsrShape, TypedFinding
from rehome.execution.dry_run.words.copy_words import COPY_STEPS, COPY_TEXTS
from rehome.execution.dry_run.words.disk_words import DISK_STEPS, DISK_TEXTS
from rehome.execution.dry_run.words.isr_words import ISR_STEPS, ISR_TEXTS
from rehome.execution.dry_run.words.plan_words import PLAN_STEPS, PLAN_TEXTS
from rehome.execution.dry_run.words.replica_words import REPLICA_STEPS, REPLICA_TEXTS
from rehome.execution.dry_run.words.settings_words import SETTINGS_STEPS, SETTINGS_TEXTS
from rehome.execution.dry_run.words.throttle_words import THROTTLE_STEPS, THROTTLE_TEXTS
from rehome.execution.dry_run.words.version_words import VERSION_STEPS, VERSION_TEXTS
from rehome.execution.dry_run.words.worded import put_in_words
from rehome.execution.observation.drifted import Drift, DriftKind
from rehome.execution.observation.foreign_reassignments import Hindrance, NeverEnds
from rehome.execution.throttle.keys import FOLLOWER_RATE, LIST_LIMIT

RATE = FOLLOWER_RATE
REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED.error("no")
TOPICS = (
    (COPY_TEXTS, COPY_STEPS),
    (DISK_TEXTS, DISK_STEPS),
    (ISR_TEXTS, ISR_STEPS),
    (PLAN_TEXTS, PLAN_STEPS),
    (REPLICA_TEXTS, REPLICA_STEPS),
    (THROTTLE_TEXTS, THROTTLE_STEPS),
    (SETTINGS_TEXTS, SETTINGS_STEPS),
    (VERSION_TEXTS, VERSION_STEPS),
)


def said(kind: FoundKind, **values: Any) -> str:
    """What is so of it, behind its subject."""
    return put_in_words(TypedFinding(kind, "it", **values)).message


def isr(kind: FoundKind, *shape: Any) -> str:
    return said(kind, isr=IsrShape(*shape))


def test_each_kind_has_its_words_in_one_topic() -> None:
    of_topics = [kind for texts, _ in TOPICS for kind in texts]
    assert sorted(of_topics) == sorted(FoundKind)
    assert all(texts.keys() == steps.keys() for texts, steps in TOPICS)


def test_a_finding_has_its_kind_check_severity_and_code_and_is_read_again() -> None:
    found = put_in_words(TypedFinding(FoundKind.THROTTLE_REFUSED, "topic t", REFUSED))
    assert (found.what, found.check, found.severity) == (
        "throttle_refused",
        "throttle",
        Severity.ERROR,
    )
    assert found.code == 29
    stored = {name: getattr(found, name) for name in Finding.__dataclass_fields__}
    assert Finding.from_json(stored) == found
    del stored["what"]
    assert Finding.from_json(stored).what == "", "an earlier Rehome has written none"


def test_words_for_throttles() -> None:
    stops = {"rate_bytes_per_s": 1, "direction": Direction.OUT}
    assert said(FoundKind.THROTTLE_STOPS_BROKER, **stops) == (
        "1 byte per second (out) would never move anything"
    )
    assert said(FoundKind.THROTTLE_STOPS_ALL) == "0 bytes per second would never move anything"
    assert said(FoundKind.NO_THROTTLE, moves=1, count=2) == (
        "it runs without a throttle: 1 move at once for each broker and direction, and "
        "2 partitions in all, are the only limit of the copies"
    )
    holds = {"key": RATE, "rate_bytes_per_s": 1_000, "size_bytes": 5_000_000}
    assert said(FoundKind.OTHERS_RATE_HOLDS, **holds) == (
        "already has follower rate 1 kB/s, set by another client, and the plan leaves it there: "
        "5 MB of the busiest broker pass at that rate"
    )
    assert said(FoundKind.OTHERS_RATE_HOLDS, **holds, brokers=(3,)).endswith(
        "there: 5 MB pass through it at that rate"
    )
    assert said(FoundKind.OTHERS_RATE_STOPS, key=RATE).endswith(
        "has follower rate 0 B/s, set by another client, and the plan leaves it there: nothing "
        "would ever move"
    )
    replaced = {"key": RATE, "value": "90", "mark": "rehome.x", "error": REFUSED}
    assert said(FoundKind.RATE_NOT_PUT_BACK, **replaced) == (
        "its follower rate of 90 B/s is replaced, and stays so when the plan has ended: the "
        "brokers refuse rehome.x: TOPIC_AUTHORIZATION_FAILED: no"
    )
    assert said(FoundKind.THROTTLE_LIST_FULL, key="k", count=1, most=7, moves=2) == (
        f"other clients' items fill its k: 1 item, which leaves room for 7 of {LIST_LIMIT} "
        "characters, so 2 moves could not be throttled"
    )


def test_words_for_in_sync_replicas() -> None:
    few = isr(FoundKind.ALREADY_TOO_FEW, 1, 1, 1, 1, 2)
    assert few.startswith("1 replica is fewer than min.insync.replicas=2, as its 1 is now: ")
    several = isr(FoundKind.ALREADY_TOO_FEW, 2, 2, 2, 2, 3)
    assert several.startswith("2 replicas are fewer than min.insync.replicas=3, as its 2 are now: ")
    assert isr(FoundKind.AT_MINIMUM, 1, 1, 2, 2, 1) == (
        "1 of 2 replicas is in sync; while it moves 1 is, as few as min.insync.replicas=1 allows"
    )
    assert isr(FoundKind.AT_MINIMUM, 2, 2, 3, 3, 2) == (
        "2 of 3 replicas are in sync; while it moves 2 are, as few as min.insync.replicas=2 allows"
    )
    assert isr(FoundKind.ALWAYS_AT_MINIMUM, 1, 1, 1, 1, 1).startswith("its 1 replica is in sync; ")
    assert isr(FoundKind.ALWAYS_AT_MINIMUM, 3, 2, 3, 3, 2).startswith("all 3 replicas are in sync;")
    assert isr(FoundKind.WAITS_FOR_ISR, 1, 1, 3, 2, 1, (4,)).startswith(
        "keeps replicas that are out of sync (broker 4): "
    )
    assert isr(FoundKind.NO_SOURCE, 0, 0, 2, 2, 1, (4, 5)) == (
        "has no live leader to copy from; its replicas are on brokers 4 and 5"
    )


def test_words_for_brokers_racks_and_replicas() -> None:
    held = tuple(f"t-{number}" for number in range(7))
    assert said(FoundKind.BROKER_DEAD, partitions=("t-0",)) == "is not alive, and is to hold t-0"
    assert said(FoundKind.BROKER_OFFLINE, partitions=held) == (
        "has every log dir offline, and is to hold t-0, t-1, t-2, t-3, t-4 and 2 more"
    )
    weakened = Weakened(0, 1, 2, 1, 1, "t-0")
    assert said(FoundKind.WEAKENED, weakened=weakened) == str(weakened)
    assert [said(FoundKind.NO_RACK, count=count) for count in (1, 2)] == [
        "has no rack while others do, and counts as one more rack",
        "have no rack while others do, and count together as one more rack",
    ]
    gone = FoundKind.LIMITS_OF_NO_BROKER
    assert said(gone, brokers=(7,)).startswith("broker 7, which it names, is not alive")
    assert said(gone, brokers=(7, 8)).startswith("brokers 7 and 8, which it names, are not alive")
    assert said(FoundKind.PROPOSAL_TAKEN, count=1).endswith("one was taken, with 1 partition")
    assert said(FoundKind.IN_STEPS, count=1, most=1, moves=2) == (
        "1 partition gets new replicas in steps, of 1 at once at most: up to 2 steps"
    )


def test_words_for_copies_and_windows() -> None:
    flow = {"rate_bytes_per_s": 6e6, "delivered": 5e6}
    assert said(FoundKind.INFLOW_OUTPACES, **flow, direction=Direction.ACROSS) == (
        "the partitions it is to copy between its log dirs at once grow by 6 MB/s, of 5 MB/s that "
        "the throttle delivers: the copies would never end"
    )
    assert said(FoundKind.INFLOW_SLOWS, **flow, direction=Direction.OUT).startswith(
        "the partitions it is to send at once grow by"
    )
    found = TypedFinding(FoundKind.FITS_NO_WINDOW, "t-0", least_s=100.0, left_s=99.0)
    assert put_in_words(found).detail == "at least 1 min 40 s, and the window has 1 min 39 s left"
    found = TypedFinding(FoundKind.PAST_WINDOW, "plan", takes=TimeRange(90.0, 130.0), left_s=101.0)
    assert put_in_words(found).detail == (
        "1 min 30 s to 2 min 10 s, and the window has 1 min 41 s left"
    )
    found = TypedFinding(FoundKind.GROWN, "t-0", before_bytes=1_000_000, size_bytes=3_000_000)
    assert put_in_words(found).detail == "from 1 MB to 3 MB"


def test_words_for_free_space() -> None:
    space = {"size_bytes": 5_000, "usable_bytes": (3_000, 2_000), "partitions": ("t-0",)}
    assert [said(kind, **space) for kind in DISK_TEXTS] == [
        "5 kB would come before anything leaves, 3 kB, 2 kB may be used",
        "t-0 (5 kB) fits into no log dir with the other copies: they may take 3 kB, 2 kB",
        "its log dirs hold what comes, but the fullest one may take 3 kB, 2 kB, and the broker "
        "chooses by the number of partitions",
    ]


def test_words_for_what_a_plan_meets_on_its_cluster() -> None:
    assert said(FoundKind.FOREIGN, brokers=(3,)) == "a reassignment to [3] is in flight"
    assert said(FoundKind.MOVED_BY_ACTIVE, brokers=(3,), value="p") == (
        "plan p is reassigning it to [3]"
    )
    hung: dict[str, Any] = {
        "brokers": (1, 4),
        "partition": TopicPartition("t", 0),
        "hindrance": Hindrance(NeverEnds.TARGET_AWAY, (4,)),
    }
    found = put_in_words(TypedFinding(FoundKind.FOREIGN_ON_MOVE, "t-0", **hung))
    assert found.message == (
        "another client is reassigning it to [1, 4], and cannot end: it adds a replica on broker "
        "4, which is not alive"
    )
    assert '{"topic": "t", "partition": 0, "replicas": [1, 4]}' in found.remedy
    steps = [
        put_in_words(TypedFinding(kind, "t-0")).remedy for kind in FoundKind if "foreign" in kind
    ]
    assert steps == [
        "Wait for it to end; it will not be superseded.",
        *["Wait for it to end, or allow it with the parameter additional."] * 2,
    ]
    changed = TypedFinding(FoundKind.CHANGED, "t-0", drift=Drift(DriftKind.GONE))
    assert put_in_words(changed).detail == "it is gone"
    assert said(FoundKind.CONTROLLER_REFUSES, error=REFUSED) == (
        "the controller would refuse it: TOPIC_AUTHORIZATION_FAILED: no"
    )


def test_words_for_what_versions_of_kafka_lack() -> None:
    assert said(FoundKind.CORDON_NOT_KNOWN) == (
        "its log dirs cannot be cordoned: brokers before Kafka 4.3 do not know that"
    )
    stands = put_in_words(TypedFinding(FoundKind.COPY_STANDS, "broker 1"))
    assert "KAFKA-17190" in stands.message
    assert "restart the broker" in stands.remedy


def test_words_for_settings_policies_and_channels() -> None:
    assert said(FoundKind.LIMIT_BROKEN, value="broker 2 would end with 4") == (
        "broker 2 would end with 4"
    )
    differs = PolicyDifference(PolicyAspect.UNTHROTTLED, ((True, ("a",)), (False, ("b",))))
    assert said(FoundKind.POLICIES_DIFFER, differs=differs) == (
        "Connections to this cluster differ in pace without a throttle: allowed (a); "
        "not allowed (b)"
    )
    found = put_in_words(
        TypedFinding(FoundKind.SETTINGS_NOT_READ, "clusters file", value="Correct it.")
    )
    assert (found.check, found.remedy) == ("settings", "Correct it.")
    drift = Drift(DriftKind.REPLICAS, (3, 2), (1, 2))
    changed = put_in_words(TypedFinding(FoundKind.CHANGED, "t-0", drift=drift))
    assert changed.detail == "it has replicas [3, 2], not [1, 2]"
