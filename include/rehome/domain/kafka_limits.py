"""What Kafka can take: the largest ids, numbers and names of its protocol.

Broker ids, partitions and counts are int32 in requests, replication factors int16, rates int64
(Kafka's message definitions); a topic's name is a folder's
(org.apache.kafka.common.internals.Topic).
"""

from __future__ import annotations

import re

LARGEST_INT32 = 2**31 - 1
LARGEST_BROKER_ID = LARGEST_INT32
LARGEST_PARTITION = LARGEST_INT32 - 1
MOST_PARTITIONS = LARGEST_INT32
LARGEST_REPLICATION_FACTOR = 2**15 - 1
LARGEST_RATE = 2**63 - 1
"""Bytes per second: brokers keep rates as Java's long."""
LEAST_RATE = 1_000
"""Bytes per second. Brokers take less, but copy nothing then: a fetch waits for whole batches."""
LONGEST_TOPIC_NAME = 249
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Names of the topics that are Kafka's own."""
_SHOWN = 60
_NAME = re.compile(r"[A-Za-z0-9._-]*")
_PATTERN = re.compile(r"[A-Za-z0-9._*?!\[\]-]*")


def refuse_topic_name(name: str, *, pattern: bool = False) -> None:
    """See that a topic can have this name.

    :param pattern: whether it may be a pattern of names.
    :raises ValueError: it cannot; names it, for people.
    """
    topic_text = f"Topic {name!r}" if len(name) <= _SHOWN else f"Topic {name[:_SHOWN]!r}…"
    if len(name) > LONGEST_TOPIC_NAME:
        raise ValueError(
            f"{topic_text} has {len(name)} characters, and Kafka takes {LONGEST_TOPIC_NAME}"
        )
    if not (_PATTERN if pattern else _NAME).fullmatch(name):
        raise ValueError(
            f"{topic_text} has characters other than letters, digits, '.', '_' and '-'"
        )
    if name in ("", ".", ".."):
        raise ValueError(f"{topic_text}: no topic can have this name")
