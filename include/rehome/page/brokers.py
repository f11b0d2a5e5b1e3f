"""Each broker of a plan: what it copies now, and what it holds before, now and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rehome.account.known import Fact, Known
from rehome.account.pace import PlanPace, copied_by_broker
from rehome.domain.kafka import BrokerId
from rehome.domain.plan.move import Move
from rehome.domain.plan.summary import BrokerLoad

BROKERS_SHOWN = 40


@dataclass(frozen=True, slots=True)
class BrokerLine:
    """One broker. Bytes, and bytes per second; None where it is not known.

    :param moves_in, moves_out: moves in flight that copy to it, or from it.
    :param bytes_now: before, and what finished moves have added and taken away since, by the
        sizes that were planned with.
    """

    broker: BrokerId
    bytes_before: int
    bytes_now: int
    bytes_after: int
    in_bytes_per_s: float | None = None
    out_bytes_per_s: float | None = None
    moves_in: int = 0
    moves_out: int = 0


def shift_by_broker(moves: Iterable[Move]) -> Counter[BrokerId]:
    """What finished moves have brought each broker, less what they took away."""
    found: Counter[BrokerId] = Counter()
    for move in moves:
        found.update(dict.fromkeys(move.adding, move.size_bytes))
        found.subtract(dict.fromkeys(move.removing, move.size_bytes))
    return found


def broker_lines(
    loads: Sequence[BrokerLoad],
    gained: Mapping[BrokerId, int],
    pace: Fact[PlanPace],
    flying: Collection[tuple[Move, BrokerId | None]],
) -> tuple[list[BrokerLine], int]:
    """The brokers that the plan concerns, and how many of them are left out.

    :param gained: what each has gained since the plan was made.
    :param pace: of the account.
    :param flying: moves in flight, each with the leader that it copies from, where that is known.
    """
    into = pace.value.into if isinstance(pace, Known) else {}
    out_of = pace.value.out_of if isinstance(pace, Known) else {}
    nothing = 0.0 if isinstance(pace, Known) else None
    moves_in, moves_out = copied_by_broker(flying)
    concerned = [load for load in loads if _change(load)]
    by_change = sorted(concerned, key=lambda load: (-_change(load), load.broker))
    shown = sorted(by_change[:BROKERS_SHOWN], key=lambda load: load.broker)
    lines = [
        BrokerLine(
            load.broker,
            load.size_bytes_before,
            max(0, load.size_bytes_before + gained.get(load.broker, 0)),
            load.size_bytes_after,
            into.get(load.broker, nothing),
            out_of.get(load.broker, nothing),
            moves_in[load.broker],
            moves_out[load.broker],
        )
        for load in shown
    ]
    return lines, len(concerned) - len(shown)


def _change(load: BrokerLoad) -> int:
    return load.bytes_in + load.bytes_out + abs(load.size_bytes_after - load.size_bytes_before)
