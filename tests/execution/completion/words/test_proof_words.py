"""The proof of a plan in words, for one partition and for several, and as verification.json."""

import pytest

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.domain.kafka import HighWatermark, TopicPartition
from rehome.domain.run.ledger_view import DataSeen
from rehome.execution.completion.verify import (
    Elsewhere,
    ElsewhereKind,
    GoneKind,
    UnknownData,
    Verification,
)
from rehome.execution.completion.words.proof_words import proof_json, proof_text
from rehome.execution.observation.out_of_isr import OutOfIsr, ReplicaRole

AWAY = ErrorCode.BROKER_NOT_AVAILABLE.error("it is away")
FLIES = Elsewhere(ElsewhereKind.IN_FLIGHT, target=(3, 2))
LOST = DataSeen(HighWatermark(5, 1), range(5, 9))


def of(partition: int) -> TopicPartition:
    return TopicPartition("t", partition)


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (FLIES, "still in flight to [3, 2]"),
        (Elsewhere(ElsewhereKind.UNREAD, AWAY), f"the topic cannot be read: {AWAY}"),
        (
            Elsewhere(ElsewhereKind.UNREAD),
            "the topic cannot be read: the brokers do not agree on its replicas or leaders",
        ),
        (
            Elsewhere(ElsewhereKind.REPLICAS, target=(3, 2), replicas=(1, 2)),
            "replicas are [1, 2], not [3, 2]",
        ),
        (
            Elsewhere(ElsewhereKind.IN_NO_LOG_DIR, broker=1, wanted_dir="/b"),
            "broker 1 does not show it in any log dir; /b is wanted",
        ),
        (
            Elsewhere(ElsewhereKind.LOG_DIR, broker=1, wanted_dir="/b", found_dir="/a"),
            "broker 1 holds it in /a, not in /b",
        ),
    ],
)
def test_what_is_elsewhere(found: Elsewhere, text: str) -> None:
    proof = Verification("p", 1, {of(0): found})
    assert proof_json(proof)["problems"] == {"t-0": text}
    assert proof_text(proof).splitlines() == [
        "0 of 1 partition is where the plan says.",
        f"  t-0: {text}",
        "The high watermark of 1 of 1 partition is no lower than polls have seen it.",
    ]


def test_what_is_gone_lost_or_not_known() -> None:
    out = OutOfIsr(2, ReplicaRole.KEPT, alive=False)
    unknown = (UnknownData.NOT_POLLED, UnknownData.NOT_READ, UnknownData.OTHER_LEADER, AWAY)
    proof = Verification(
        "p",
        9,
        {},
        ("topic t a=1",),
        {of(8): (out,)},
        ("broker 1 cannot be read: why",),
        gone={of(number): kind for number, kind in enumerate(GoneKind)},
        lost={of(3): LOST},
        data_unknown=dict(zip(map(of, (4, 5, 6, 7)), unknown, strict=True)),
    )
    lost = (
        "messages are lost: all in-sync replicas had offsets 5 to 8, and its leader has them no "
        "more"
    )
    gone = {
        "t-0": "the topic was deleted",
        "t-1": "the topic was deleted and created again",
        "t-2": "the partition does not exist",
    }
    not_known = {
        "t-4": "no poll could read its high watermark while it moved",
        "t-5": "no leader's high watermark could be read now",
        "t-6": "the broker that answered may not be the leader any more, or the topic was created "
        "again under its name",
        "t-7": f"its high watermark cannot be read now: {AWAY}",
    }
    assert proof_json(proof) == {
        "plan_id": "p",
        "ok": False,
        "partitions": 9,
        "problems": {},
        "gone": gone,
        "findings": {"t-8": str(out)},
        "lost": {"t-3": lost},
        "data_unknown": not_known,
        "throttles": ["topic t a=1"],
        "unread": ["broker 1 cannot be read: why"],
    }
    assert proof_text(proof).splitlines() == [
        "6 of 9 partitions are where the plan says.",
        "Gone, so that they need no moving any more: 3.",
        *(f"  {name}: {why}" for name, why in gone.items()),
        f"  t-8: {out}",
        "The high watermark of 1 of 6 partitions is no lower than polls have seen it.",
        f"  t-3: {lost}",
        *(
            f"  {name}: whether messages are lost is not known: {why}"
            for name, why in not_known.items()
        ),
        "Throttle still set: topic t a=1",
        "Whether a throttle is still set is not known: broker 1 cannot be read: why",
    ]


def test_of_many_the_first_are_named() -> None:
    many = Verification("p", 22, dict.fromkeys(map(of, range(22)), FLIES))
    lines = proof_text(many).splitlines()
    assert lines[0] == "0 of 22 partitions are where the plan says."
    assert len(lines) == 1 + 20 + 1 + 1
    assert lines[21] == "  and 2 more"
