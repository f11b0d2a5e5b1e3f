"""A plan's hash, computed independently from the rows of moves.parquet (docs/planning.md,
Files).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from rehome.quality.facts.ragged_lists import lists_of

_ROWS_PER_BATCH = 65_536


def hash_of(cluster_id: str, action: str, moves: pa.Table, *, allows_factor_change: bool) -> str:
    """SHA-256 (hex) over the effect on each partition, as canonical JSON.

    :param moves: sorted by topic and partition.
    """
    start = json.dumps(
        {
            "format": 2,
            "cluster_id": cluster_id,
            "action": action,
            "allow_replication_factor_change": allows_factor_change,
            "moves": [],
        },
        separators=(",", ":"),
    ).removesuffix("]}")
    digest = hashlib.sha256(start.encode("ascii"))
    batches = (each for each in moves.to_batches(max_chunksize=_ROWS_PER_BATCH) if len(each))
    for number, batch in enumerate(batches):
        digest.update(b"," if number else b"")
        digest.update(",".join(_rows(batch).to_pylist()).encode("ascii"))
    digest.update(b"]}")
    return digest.hexdigest()


def _rows(moves: pa.RecordBatch) -> pa.Array:
    """(n,) what each move does, as JSON."""
    parts = [
        *(_replace_each(moves.column(name), json.dumps) for name in ("topic", "topic_id")),
        pc.cast(moves.column("partition"), pa.string()),
    ]
    for name in ("current", "target"):
        brokers = moves.column(name)
        parts.append(_list(brokers, pc.cast(brokers.flatten(), pa.string())))
        parts.append(_log_dirs_json(moves.column(f"{name}_log_dirs"), brokers))
    joined = pc.binary_join_element_wise(*parts, ",")
    return pc.binary_join_element_wise("[", joined, "]", "")


def _log_dirs_json(log_dirs: pa.ListArray, replicas: pa.ListArray) -> pa.Array:
    """(n,) log dirs as JSON: ``any`` where none is named, for one or for all."""
    as_json = _list(
        log_dirs, _replace_each(log_dirs.flatten(), lambda path: json.dumps(path or "any"))
    )
    anywhere = _list(replicas, pa.repeat('"any"', len(replicas.flatten())))
    return pc.if_else(pc.equal(pc.list_value_length(log_dirs), 0), anywhere, as_json)


def _list(column: pa.ListArray, values: pa.Array) -> pa.Array:
    """(n,) the lists of a column as JSON, with these texts as their values."""
    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    joined = pc.binary_join(lists_of(values, lengths), ",")
    return pc.binary_join_element_wise("[", joined, "]", "")


def _replace_each(column: pa.Array, text: Callable[[str], str]) -> pa.Array:
    encoded = column.dictionary_encode()
    texts = pa.array([text(value) for value in encoded.dictionary.to_pylist()], pa.string())
    return texts.take(encoded.indices)
