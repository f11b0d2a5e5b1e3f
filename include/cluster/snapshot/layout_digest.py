"""A digest of what plans go by in a snapshot: two that are alike have the same one."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from include.cluster.snapshot.model import Snapshot

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
        digest.update(_bytes(table.select(names)))
    digest.update(repr([*_fullness(snapshot), *_held(snapshot)]).encode())
    digest.update(repr(sorted(snapshot.hidden_topics)).encode())
    return digest.hexdigest()


def _bytes(table: pa.Table) -> memoryview:
    """The same for the same rows, however they were written and read."""
    sink = pa.BufferOutputStream()
    plain = table.replace_schema_metadata(None).combine_chunks()
    with pa.ipc.new_stream(sink, plain.schema) as stream:
        stream.write_table(plain, max_chunksize=1 << 20)
    return memoryview(sink.getvalue())


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
