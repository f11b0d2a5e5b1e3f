"""The proof of a plan's moves, in words: where partitions are, and what is known of their data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rehome.domain.kafka import BrokerError
from rehome.domain.text import count_text
from rehome.execution.completion.verify import (
    Elsewhere,
    ElsewhereKind,
    GoneKind,
    UnknownData,
    Verification,
)
from rehome.execution.observation.agreed_topics import DISAGREE
from rehome.execution.observation.out_of_isr import out_of_isr_text

_SHOWN = 20
_GONE = {
    GoneKind.DELETED: "the topic was deleted",
    GoneKind.CREATED_AGAIN: "the topic was deleted and created again",
    GoneKind.NO_PARTITION: "the partition does not exist",
}
_UNKNOWN = {
    UnknownData.NOT_POLLED: "no poll could read its high watermark while it moved",
    UnknownData.NOT_READ: "no leader's high watermark could be read now",
    UnknownData.OTHER_LEADER: (
        "the broker that answered may not be the leader any more, or the topic was created again "
        "under its name"
    ),
}


def proof_json(proof: Verification) -> dict[str, Any]:
    """As plain JSON types with the texts, for verification.json."""
    return {
        "plan_id": proof.plan_id,
        "ok": proof.ok,
        "partitions": proof.partitions,
        "problems": {
            str(tp): _elsewhere(deviation) for tp, deviation in sorted(proof.problems.items())
        },
        "gone": {str(tp): _GONE[kind] for tp, kind in sorted(proof.gone.items())},
        "findings": {
            str(tp): out_of_isr_text(outsiders) for tp, outsiders in sorted(proof.findings.items())
        },
        "lost": {str(tp): data.lost_text for tp, data in sorted(proof.lost.items())},
        "data_unknown": {
            str(tp): _unknown_text(why) for tp, why in sorted(proof.data_unknown.items())
        },
        "throttles": list(proof.throttles),
        "unread": list(proof.unread),
    }


def proof_text(proof: Verification) -> str:
    """What is known of places, then of data, and each throttle that is still set."""
    good = proof.partitions - len(proof.problems) - len(proof.gone)
    all_of_them, said = count_text(proof.partitions, "partition"), proof_json(proof)
    are = "is" if 1 in (good, proof.partitions) else "are"
    lines = [f"{good} of {all_of_them} {are} where the plan says."]
    if proof.gone:
        lines.append(f"Gone, so that they need no moving any more: {len(proof.gone)}.")
    lines += [*_first(said["gone"]), *_first(said["problems"])]
    lines += _first(said["findings"], more=" with replicas out of the ISR")
    there = proof.partitions - len(proof.gone)
    kept = there - len(proof.lost) - len(proof.data_unknown)
    of_them = f"{kept} of {count_text(there, 'partition')}"
    lines.append(f"The high watermark of {of_them} is no lower than polls have seen it.")
    lines += _first(said["lost"], more=" of which messages are lost")
    unknown = "whether messages are lost is not known: "
    lines += _first(said["data_unknown"], unknown, " of which that is not known")
    lines += [f"Throttle still set: {throttle}" for throttle in proof.throttles[:_SHOWN]]
    unread = proof.unread[:_SHOWN]
    return "\n".join(
        [*lines, *(f"Whether a throttle is still set is not known: {why}" for why in unread)]
    )


def _first(texts: dict[str, str], before: str = "", more: str = "") -> Iterator[str]:
    yield from (f"  {name}: {before}{text}" for name, text in [*texts.items()][:_SHOWN])
    if len(texts) > _SHOWN:
        yield f"  and {len(texts) - _SHOWN} more{more}"


def _elsewhere(deviation: Elsewhere) -> str:
    match deviation.kind:
        case ElsewhereKind.UNREAD:
            return f"the topic cannot be read: {deviation.error or DISAGREE}"
        case ElsewhereKind.IN_FLIGHT:
            return f"still in flight to {list(deviation.target)}"
        case ElsewhereKind.REPLICAS:
            return f"replicas are {list(deviation.replicas)}, not {list(deviation.target)}"
        case ElsewhereKind.IN_NO_LOG_DIR:
            who = f"broker {deviation.broker}"
            return f"{who} does not show it in any log dir; {deviation.wanted_dir} is wanted"
        case ElsewhereKind.LOG_DIR:
            place = f"{deviation.found_dir}, not in {deviation.wanted_dir}"
            return f"broker {deviation.broker} holds it in {place}"


def _unknown_text(why: UnknownData | BrokerError) -> str:
    if isinstance(why, BrokerError):
        return f"its high watermark cannot be read now: {why}"
    return _UNKNOWN[why]
