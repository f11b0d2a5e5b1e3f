"""The load model: what each partition asks of its brokers, from a rollup of the last days."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from rehome.domain.array_types import Floats
from rehome.load_history.key_codes import partition_numbers, topic_codes
from rehome.load_history.rollup import Rollup

QUANTILE = 0.95

LOADS = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("topic_id", pa.string(), nullable=False),
        pa.field("in_s", pa.float64(), nullable=False),
        pa.field("bytes_in_mean", pa.float64()),
        pa.field("bytes_in_p95", pa.float64()),
        pa.field("bytes_in_max", pa.float64()),
        pa.field("bytes_in_least", pa.float64()),
        pa.field("out_s", pa.float64(), nullable=False),
        pa.field("bytes_out_mean", pa.float64()),
        pa.field("bytes_out_p95", pa.float64()),
        pa.field("bytes_out_max", pa.float64()),
        pa.field("record_bytes", pa.float64()),
        pa.field("growth_s", pa.float64(), nullable=False),
        pa.field("growth_bytes_per_s", pa.float64()),
    ]
)


def loads_of(rollup: Rollup) -> pa.Table:
    """Per partition its rates in bytes per second and its growth, as :data:`LOADS`.

    Null = nothing is known of it. A rate's p95 is what the partition kept below for 95 % of the
    time that is known. ``bytes_in_least`` is the mean rate that is certain: where it is below
    ``bytes_in_mean``, that is estimated. ``record_bytes`` of a compacted log is the most that an
    offset has added.
    """
    columns: dict[str, Any] = {
        "topic": _topic_names(rollup.topics, rollup),
        "partition": partition_numbers(rollup.keys),
        "topic_id": _topic_names(rollup.topic_ids, rollup),
    }
    numbers, rows = rollup.numbers, len(rollup.keys)
    for name in ("in", "out"):
        seconds = numbers[f"{name}_s"]
        columns[f"{name}_s"] = seconds
        columns[f"bytes_{name}_mean"] = _per(numbers[f"bytes_{name}"], seconds)
        columns[f"bytes_{name}_p95"] = rollup.rates[name].quantile(QUANTILE, rows)
        columns[f"bytes_{name}_max"] = np.where(
            seconds > 0, numbers[f"max_bytes_{name}_per_s"], np.nan
        )
    columns["bytes_in_least"] = _per(numbers["least_bytes"], numbers["in_s"])
    measured = _per(numbers["measured_bytes"], numbers["measured_messages"])
    added = numbers["added_per_record"]
    columns["record_bytes"] = np.where(np.isnan(measured) & (added > 0), added, measured)
    columns["growth_s"] = numbers["growth_s"]
    columns["growth_bytes_per_s"] = _per(numbers["grown_bytes"], numbers["growth_s"])
    arrays = [pa.array(columns[f.name], from_pandas=True).cast(f.type) for f in LOADS]
    return pa.Table.from_arrays(arrays, schema=LOADS)


def _per(total: Floats, of: Floats) -> Floats:
    ratio: Floats = np.divide(total, of, out=np.full(len(total), np.nan), where=of > 0)
    return ratio


def _topic_names(names: tuple[str, ...], rollup: Rollup) -> list[str]:
    return [names[code] for code in topic_codes(rollup.keys).tolist()]
