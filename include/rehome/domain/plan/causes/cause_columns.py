"""Causes of moves in columns, as ``moves.parquet`` has them: a list of structs for each move."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rehome.domain.array_types import Floats, Ints
from rehome.domain.plan.causes.move_cause import CauseCode, HeldLoad, MoveCause
from rehome.domain.resources import Resource

_NO_BROKER = -1
_CODES = {code.value: code for code in CauseCode}

CAUSE = pa.struct(
    [
        pa.field("code", pa.string(), nullable=False),  # a CauseCode
        pa.field("broker", pa.int32(), nullable=False),  # -1 = none
        pa.field("takes", pa.int32(), nullable=False),  # -1 = none
        pa.field("name", pa.string(), nullable=False),
        pa.field("takes_name", pa.string(), nullable=False),
        pa.field("resource", pa.string(), nullable=False),  # "" = nothing is said of `broker`
        pa.field("held", pa.float64(), nullable=False),
        pa.field("share", pa.float64(), nullable=False),
        pa.field("takes_resource", pa.string(), nullable=False),  # "" = nothing of `takes`
        pa.field("takes_held", pa.float64(), nullable=False),
        pa.field("takes_share", pa.float64(), nullable=False),
    ]
)
CAUSE_LIST = pa.list_(pa.field("item", CAUSE, nullable=False))


@dataclass(frozen=True)
class HeldColumns:
    """What n brokers held, and their shares.

    :param resource: (n,) number of each one's resource in ``names``; -1 = nothing is said.
    """

    names: Sequence[Resource]
    resource: Ints
    amount: Floats
    share: Floats

    def columns(self) -> tuple[pa.Array, pa.Array, pa.Array]:
        """Resource, amount and share as :data:`CAUSE` has them."""
        said = self.resource >= 0
        amount, share = (np.where(said, each, 0.0) for each in (self.amount, self.share))
        names = ["", *(name.value for name in self.names)]
        return values_at(names, self.resource + 1), pa.array(amount), pa.array(share)


def values_at(values: Sequence[str], which: npt.NDArray[Any]) -> pa.Array:
    """(n,) one of some texts each."""
    return pa.array(values, pa.string()).take(pa.array(which))


def cause_column(
    counts: Ints,
    code: pa.Array,
    *,
    broker: Ints | None = None,
    takes: Ints | None = None,
    load: HeldColumns | None = None,
    takes_held: HeldColumns | None = None,
) -> pa.ListArray:
    """Causes of moves, one after the other.

    :param counts: of each move; ``code``: of each cause, and so all that follows.
    :param broker, takes: ids; -1 = none.
    """
    n = len(code)
    nameless = pa.repeat("", n)
    nothing = HeldColumns((), np.full(n, -1), np.zeros(n), np.zeros(n))
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    columns = [
        code,
        *(_brokers(side, n) for side in (broker, takes)),
        *(nameless, nameless),
        *(load or nothing).columns(),
        *(takes_held or nothing).columns(),
    ]
    causes = pa.StructArray.from_arrays(columns, fields=list(CAUSE))
    return pa.ListArray.from_arrays(pa.array(offsets), causes).cast(CAUSE_LIST)


def cause_column_of(causes: Iterable[Sequence[MoveCause]]) -> pa.ListArray:
    """The causes of each move, from objects."""
    return pa.array([[_row(cause) for cause in those] for those in causes], CAUSE_LIST)


def causes_of(column: pa.ListArray | pa.ChunkedArray) -> list[tuple[MoveCause, ...]]:
    """The inverse of :func:`cause_column_of`."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    flat = dict(zip(CAUSE.names, map(pa.Array.to_pylist, column.flatten().flatten()), strict=True))
    causes = map(
        MoveCause,
        map(_CODES.__getitem__, flat["code"]),
        *(
            (None if broker == _NO_BROKER else broker for broker in flat[side])
            for side in ("broker", "takes")
        ),
        *(flat["name"], flat["takes_name"]),
        *(_held_by(side, flat) for side in ("", "takes_")),
    )
    return [tuple(islice(causes, count)) for count in column.value_lengths().to_pylist()]


def _held_by(side: str, flat: dict[str, list[Any]]) -> list[HeldLoad | None]:
    """What brokers held; one object for all causes that say the same."""
    columns = [flat[f"{side}{name}"] for name in ("resource", "held", "share")]
    said = {
        row: HeldLoad(Resource(row[0]), *row[1:]) if row[0] else None
        for row in set(zip(*columns, strict=True))
    }
    return [said[row] for row in zip(*columns, strict=True)]


def stored_sentences(column: pa.ChunkedArray) -> pa.ListArray:
    """Causes in place of the sentences that an earlier version has stored (``why``)."""
    return cause_column_of(
        [MoveCause(CauseCode.STORED_SENTENCE, name=text)] if text.strip() else []
        for text in column.to_pylist()
    )


def _brokers(ids: Ints | None, n: int) -> pa.Array:
    broker_ids = np.full(n, _NO_BROKER, np.int32) if ids is None else ids.astype(np.int32)
    return pa.array(broker_ids)


def _row(cause: MoveCause) -> dict[str, Any]:
    return {
        "code": cause.code.value,
        "broker": _NO_BROKER if cause.broker is None else cause.broker,
        "takes": _NO_BROKER if cause.takes is None else cause.takes,
        "name": cause.name,
        "takes_name": cause.takes_name,
        **_held_fields("", cause.held),
        **_held_fields("takes_", cause.takes_held),
    }


def _held_fields(side: str, load: HeldLoad | None) -> dict[str, Any]:
    resource, amount, share = (
        ("", 0.0, 0.0) if load is None else (load.resource.value, load.amount, load.share)
    )
    return {f"{side}resource": resource, f"{side}held": amount, f"{side}share": share}
