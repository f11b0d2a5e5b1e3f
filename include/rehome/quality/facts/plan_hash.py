"""A plan's hash, computed independently from the rows of moves.parquet (docs/planning.md,
Files).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import pyarrow as pa

_COLUMNS = (
    *("topic", "topic_id", "partition"),
    *("current", "current_log_dirs", "target", "target_log_dirs"),
)


def hash_of(cluster_id: str, action: str, moves: pa.Table, *, allows_factor_change: bool) -> str:
    """SHA-256 (hex) over the effect on each partition, as canonical JSON.

    :param moves: sorted by topic and partition.
    """
    columns = (moves.column(name).to_pylist() for name in _COLUMNS)
    rows = [
        [topic, id_, number, now, _named(now_dirs, now), then, _named(then_dirs, then)]
        for topic, id_, number, now, now_dirs, then, then_dirs in zip(*columns, strict=True)
    ]
    content = {
        "format": 2,
        "cluster_id": cluster_id,
        "action": action,
        "allow_replication_factor_change": allows_factor_change,
        "moves": rows,
    }
    text = json.dumps(content, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _named(log_dirs: Sequence[str], replicas: Sequence[int]) -> list[str]:
    return [path or "any" for path in log_dirs] or ["any"] * len(replicas)
