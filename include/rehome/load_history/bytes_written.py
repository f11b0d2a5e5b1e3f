"""What partitions did between two snapshots, and what cannot be said of it.

Bytes in are measured where that is possible: a log from which nothing was removed has grown by
just what was appended, control records of transactions included. Where something may have been
removed (retention, the cleaner) or the leader is another one, they are estimated: offsets written
times the size of a record, and what the log has grown by is their lower bound. A broker does not
know when its cleaner runs, so that of a compacted log nothing is measured. docs/load.md says how
large the errors are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rehome.domain.array_types import Floats, Ints, Mask
from rehome.load_history.key_codes import found_at, pick, recode, topic_codes
from rehome.load_history.log_readings import Readings

_UNKNOWN = np.nan

ENOUGH_RECORDS = 100
"""Offsets of an interval from which on its growth per offset says something of other intervals."""


@dataclass(frozen=True)
class Interval:
    """P partitions, aligned with the later readings. NaN = not known.

    :param seconds: its length.
    :param bytes_in: (P,) written to the partition by producers.
    :param bytes_out: (P,) sent by its leader, to followers and to consumer groups.
    :param messages: (P,) offsets written, holes that compaction leaves later included.
    :param measured: (P,) whether ``bytes_in`` is what the log has grown by.
    :param least_bytes: (P,) written at least: what the log has grown by.
    :param record_bytes: (P,) of compacted logs, what an offset has added; the cleaner can only have
        made it less than what was written. NaN where the offsets are few, and of other logs.
    :param grown_bytes: (P,) how much larger the leader's replica became; negative = smaller.
    :param leader_changed: (P,) another leader than before.
    :param truncated: (P,) the log ends earlier than before: what was written since is not known.
    :param unread: (P,) one of the two snapshots has no leader or no offset of it.
    """

    seconds: float
    bytes_in: Floats
    bytes_out: Floats
    messages: Floats
    measured: Mask
    least_bytes: Floats
    record_bytes: Floats
    grown_bytes: Floats
    leader_changed: Mask
    truncated: Mask
    unread: Mask


def between(before: Readings, now: Readings, record_bytes: Floats) -> Interval:
    """The interval from one reading to the next.

    A partition that was not there before, or belonged to a topic of the same name with another
    id, has no interval: all of it is unknown.

    :param record_bytes: (P,) mean size of a record as measured so far, NaN where it is not: then
        the log's own mean is taken. Of compacted logs the most that an offset has added so far.
    """
    at = found_at(now.keys, recode(before.keys, before.topics, now.topics))
    at = np.where(_same_topic(before, now)[topic_codes(now.keys)], at, -1)
    end, leader = pick(before.log_end, at), pick(before.leader, at)
    read = (at >= 0) & (end >= 0) & (now.log_end >= 0) & (leader >= 0) & (now.leader >= 0)
    messages = np.where(read, now.log_end - end, 0)
    usable = read & (messages >= 0)
    changed = read & (leader != now.leader)

    size, start = pick(before.size_bytes, at), pick(before.log_start, at)
    sized = usable & ~changed & (size >= 0) & (now.size_bytes >= 0)
    grown = now.size_bytes - size
    kept = sized & (start >= 0) & (start == now.log_start) & (grown >= 0)
    compacted = now.compacted[topic_codes(now.keys)] | _was_compacted(before, at)
    measured = kept & ~compacted

    added = np.where(
        kept & compacted & (messages >= ENOUGH_RECORDS), grown / np.maximum(messages, 1), _UNKNOWN
    )
    density = _density(now.size_bytes, now.log_start, now.log_end)
    mean = np.where(np.isnan(record_bytes), density, record_bytes)
    # All of these are too low where the cleaner was at work: the largest is the closest.
    mean = np.where(compacted, np.fmax(np.fmax(mean, density), added), mean)
    least = np.where(sized & (messages > 0), np.maximum(grown, 0), 0)
    estimated = np.where(messages > 0, np.fmax(messages * mean, least), 0.0)
    bytes_in = np.where(usable, np.where(measured, grown, estimated), _UNKNOWN)
    fresh = measured & (messages > 0)
    record = np.where(fresh, grown / np.maximum(messages, 1), mean)
    return Interval(
        seconds=(now.taken_at - before.taken_at).total_seconds(),
        bytes_in=bytes_in,
        bytes_out=bytes_in * now.followers + _consumed_bytes(before, now, record),
        messages=np.where(usable, messages, _UNKNOWN),
        measured=measured,
        least_bytes=np.where(usable, np.where(measured, grown, least), _UNKNOWN),
        record_bytes=added,
        grown_bytes=np.where(sized, grown, _UNKNOWN),
        leader_changed=changed,
        truncated=read & (messages < 0),
        unread=(at >= 0) & ~read,
    )


def _was_compacted(before: Readings, at: Ints) -> Mask:
    """(P,) whether the cleaner was allowed to work at the beginning of the interval."""
    compacted = before.compacted[topic_codes(before.keys)].astype(np.int64)
    was: Mask = pick(compacted, at) > 0
    return was


def _same_topic(before: Readings, now: Readings) -> Mask:
    """(T,) whether each of the later topics had the same id before."""
    ids = dict(zip(before.topics, before.topic_ids, strict=True))
    same = [ids.get(name) == i for name, i in zip(now.topics, now.topic_ids, strict=True)]
    return np.array(same, bool)


def _density(size: Ints, start: Ints, end: Ints) -> Floats:
    """Bytes on disk per offset of each log; 0 where it has none, NaN where it is not known.

    Of a compacted log it is less than what a record measured when it was written; after
    DeleteRecords in the middle of a segment it is more.
    """
    offsets = end - start
    density = np.divide(size, offsets, out=np.zeros(len(size)), where=offsets > 0)
    has_readings = (size >= 0) & (start >= 0) & (end >= 0)
    # An emptied log says nothing of its records, one that never had any says zero.
    return np.where(has_readings & ((offsets > 0) | (end == 0)), density, _UNKNOWN)


def _consumed_bytes(before: Readings, now: Readings, record: Floats) -> Floats:
    """(P,) bytes that consumer groups have read; NaN where that is not known.

    It cannot where a group committed for the first time or went back, nor anywhere while some
    group's offsets are not known.
    """
    partitions = len(now.keys)
    if before.unread or now.unread:
        return np.full(partitions, _UNKNOWN)
    names = tuple(sorted({*before.groups, *now.groups}))
    place = {name: code for code, name in enumerate(names)}

    def commits(of: Readings, keys: Ints) -> tuple[Ints, Ints]:
        """Group and partition of each commit as one number, and the partition alone; -1 = gone."""
        partition = found_at(keys, now.keys)
        codes = np.array([place[name] for name in of.groups], np.int64)
        group = codes[of.group_of] if len(codes) else of.group_of
        return np.where(partition >= 0, group * partitions + partition, -1), partition

    was, _ = commits(before, recode(before.group_keys, before.topics, now.topics))
    later, partition = commits(now, now.group_keys)
    there = later >= 0
    at = found_at(later[there], was)
    advanced = np.where(at >= 0, now.committed[there] - pick(before.committed, at), -1)
    partition = partition[there]
    total = np.bincount(partition, np.maximum(advanced, 0), partitions)
    unclear = np.bincount(partition[advanced < 0], minlength=partitions) > 0
    consumed = np.where(total > 0, total * record, 0.0)
    return np.where(unclear, _UNKNOWN, consumed)
