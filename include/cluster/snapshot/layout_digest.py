"""A digest of what plans go by in a snapshot: two that are alike have the same one."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.cluster.snapshot.model import Snapshot
from include.domain.array_types import Ints

STEP = 0.05
"""Sizes count in steps of this: they change with every snapshot, and by little."""
_SIZES = frozenset(
    {
        "total_bytes",
        "usable_bytes",
        "size_bytes",
        "log_end_offset",
        "log_start_offset",
        "future_size_bytes",
    }
)


def layout_digest(snapshot: Snapshot) -> str:
    """Of brokers, log dirs, topics and replicas as they are, but of sizes only roughly: how full
    each log dir is, and what each broker holds. Offsets and groups do not count.
    """
    digest = hashlib.sha256()
    for table in (snapshot.brokers, snapshot.log_dirs, snapshot.topics, snapshot.replicas):
        names = [name for name in table.column_names if name not in _SIZES]
        for name in names:
            digest.update(f"{name} {table.num_rows} ".encode())
            for part in _bytes(table[name]):
                digest.update(part)
    digest.update(repr([*_fullness(snapshot), *_held(snapshot)]).encode())
    digest.update(repr(sorted(snapshot.hidden_topics)).encode())
    return digest.hexdigest()


def _bytes(column: pa.ChunkedArray) -> Iterator[bytes | memoryview]:
    """The same for the same values, however they were written, read, cut in chunks or encoded."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    yield _numbers(column.is_null())
    if pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
        yield _numbers(column)
    elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        texts = column.cast(pa.large_string()).fill_null("")
        yield _numbers(pc.binary_length(texts))
        for chunk in texts.chunks:
            yield from _characters(chunk)
    else:  # paths of racks: one for each broker
        yield repr(column.to_pylist()).encode()


def _numbers(column: pa.ChunkedArray) -> memoryview:
    values: Ints = column.cast(pa.int64()).fill_null(0).to_numpy()
    return np.ascontiguousarray(values).data


def _characters(texts: pa.LargeStringArray) -> Iterator[memoryview]:
    """Those of all texts, one after the other."""
    _, ends, characters = texts.buffers()
    if characters is not None and len(texts):
        places = np.frombuffer(ends, np.int64)[texts.offset : texts.offset + len(texts) + 1]
        yield memoryview(characters)[int(places[0]) : int(places[-1])]


def _fullness(snapshot: Snapshot) -> Iterator[tuple[int, str, int | None]]:
    for row in snapshot.log_dirs.to_pylist():
        total, usable = row["total_bytes"], row["usable_bytes"]
        known = total and usable is not None
        yield row["broker"], row["log_dir"], round(usable / total / STEP) if known else None


def _held(snapshot: Snapshot) -> list[tuple[int, int]]:
    sizes = pc.fill_null(snapshot.replicas["size_bytes"], 0)
    table = pa.table({"broker": snapshot.replicas["broker"], "bytes": sizes})
    held: Counter[int] = Counter()
    for row in table.group_by("broker").aggregate([("bytes", "sum")]).to_pylist():
        held[row["broker"]] = round(math.log(max(row["bytes_sum"], 1)) / math.log(1 + STEP))
    return sorted(held.items())
