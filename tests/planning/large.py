"""Large made-up clusters, built column by column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rehome.cluster.snapshot.model import BROKERS, LOG_DIRS, REPLICAS, TOPICS, Snapshot
from tests.planning.clusters import TAKEN_AT

PARTITIONS_PER_TOPIC = 50


def large_snapshot(
    partitions: int, brokers: int, *, replicas: int = 3, new: float = 0.0, seed: int = 0
) -> Snapshot:
    """Three data centres of ten racks, heavy-tailed sizes, one replica per data centre.

    :param new: part of the brokers that hold nothing yet.
    """
    rng = np.random.default_rng(seed)
    dc, rack = np.arange(brokers) % 3, np.arange(brokers) // 3 % 10
    old = rng.random(brokers) >= new
    pull = np.exp(0.15 * rng.standard_normal(brokers)) * old
    rows = np.stack([_pick(rng, (dc == d) & old, pull, partitions) for d in range(3)], axis=1)
    rows = np.take_along_axis(rows, np.argsort(rng.random(rows.shape), axis=1), axis=1)
    size = np.exp(2 * rng.standard_normal(partitions))
    size = np.minimum(size, 0.25 * size.sum() * replicas / brokers)
    return _snapshot(rows[:, :replicas], (size / size.mean() * 1e9).astype(np.int64), dc, rack)


def _pick(rng: np.random.Generator, among: np.ndarray, pull: np.ndarray, count: int) -> np.ndarray:
    ids = np.flatnonzero(among)
    return rng.choice(ids, count, p=pull[ids] / pull[ids].sum())


def _snapshot(rows: np.ndarray, size: np.ndarray, dc: np.ndarray, rack: np.ndarray) -> Snapshot:
    count, replicas = rows.shape
    owner = np.repeat(np.arange(count), replicas)
    columns = {
        "topic": pa.array([f"t{number // PARTITIONS_PER_TOPIC}" for number in owner]),
        "partition": owner % PARTITIONS_PER_TOPIC,
        "broker": rows.ravel(),
        "position": np.tile(np.arange(replicas), count),
        "is_leader": np.tile(np.arange(replicas) == 0, count),
        "in_isr": np.ones(len(owner), bool),
        "adding": np.zeros(len(owner), bool),
        "removing": np.zeros(len(owner), bool),
        "size_bytes": np.repeat(size, replicas),
    }
    return Snapshot(
        "large",
        TAKEN_AT,
        1.0,
        _table(
            BROKERS,
            len(dc),
            broker=np.arange(len(dc)),
            rack_path=[[f"dc{d}", f"r{r}"] for d, r in zip(dc, rack, strict=True)],
            live=np.ones(len(dc), bool),
            answered=np.ones(len(dc), bool),
        ),
        LOG_DIRS.empty_table(),
        TOPICS.empty_table(),
        _table(REPLICAS, len(owner), **columns),
    )


def _table(schema: pa.Schema, rows: int, **columns: object) -> pa.Table:
    return pa.table(
        [
            pa.array(columns[field.name], field.type)
            if field.name in columns
            else pa.nulls(rows, field.type)
            for field in schema
        ],
        schema=schema,
    )
