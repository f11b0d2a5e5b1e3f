"""Partitions as sorted numbers, so that tables of different moments can be laid side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from rehome.domain.array_types import Ints

_PARTITION_BITS = 32


def keys_of(topic_codes: Ints, partitions: Ints) -> Ints:
    """One number per partition that sorts by topic code and partition."""
    return (topic_codes << _PARTITION_BITS) | partitions


def topic_codes(keys: Ints) -> Ints:
    """The topic's code in each key."""
    return keys >> _PARTITION_BITS


def partition_numbers(keys: Ints) -> Ints:
    """The partition's number in each key."""
    return keys & ((1 << _PARTITION_BITS) - 1)


def recode(keys: Ints, topics: Sequence[str], into: Sequence[str]) -> Ints:
    """The keys in the coding of ``into``; -1 where a topic is not in it. Both are sorted."""
    place = {topic: code for code, topic in enumerate(into)}
    codes = np.array([place.get(topic, -1) for topic in topics], np.int64)
    if not len(keys):
        return keys
    moved = codes[topic_codes(keys)]
    return np.where(moved >= 0, keys_of(moved, partition_numbers(keys)), -1)


def distinct(keys: Ints) -> Ints:
    """The keys in ascending order, each once."""
    ordered = np.sort(keys, kind="stable")
    once: Ints = ordered[np.diff(ordered, prepend=-2) != 0]
    return once


def found_at(keys: Ints, among: Ints) -> Ints:
    """The index of each key in ``among``, in any order; -1 where it is missing."""
    if not len(among):
        return np.full(len(keys), -1, np.int64)
    order = None if (among[1:] >= among[:-1]).all() else np.argsort(among, kind="stable")
    place = np.minimum(np.searchsorted(among, keys, sorter=order), len(among) - 1)
    index = place if order is None else order[place]
    return np.where(among[index] == keys, index, -1)


def pick(values: Ints, at: Ints) -> Ints:
    """``values`` in the order of ``at``; -1, which means unknown, where ``at`` is -1."""
    if not len(values):
        return np.full(len(at), -1, np.int64)
    return np.where(at >= 0, values[at], -1)


def codes_of(column: pa.ChunkedArray, names: Sequence[str]) -> Ints:
    """Per row the index of its value in ``names``; -1 where it is not there."""
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    place = {name: code for code, name in enumerate(names)}
    values = [place.get(value, -1) for value in encoded.dictionary.to_pylist()]
    codes: Ints = np.array([*values, -1], np.int64)[
        encoded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    ]
    return codes


def integers(column: pa.ChunkedArray) -> Ints:
    """The column's numbers; -1 where null."""
    numbers: Ints = column.fill_null(-1).to_numpy().astype(np.int64)
    return numbers
