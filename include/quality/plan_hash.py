"""A plan's hash, computed once more from the rows of moves.parquet (docs/planning.md, Files)."""

from __future__ import annotations

import hashlib
import json

import pyarrow as pa


def hash_of(cluster_id: str, moves: pa.Table) -> str:
    """SHA-256 (hex) over the cluster and what becomes of each partition, as canonical JSON.

    :param moves: sorted by topic and partition.
    """
    columns = (
        moves.column(name).to_pylist()
        for name in ("topic", "partition", "current", "target", "target_log_dirs")
    )
    rows = [
        [topic, number, current, target, log_dirs or ["any"] * len(target)]
        for topic, number, current, target, log_dirs in zip(*columns, strict=True)
    ]
    text = json.dumps({"cluster_id": cluster_id, "moves": rows}, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()
