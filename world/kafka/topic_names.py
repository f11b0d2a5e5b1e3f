"""Which names topics may have (``Topic`` in Kafka)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from world.kafka.errors import INVALID_TOPIC, Refusal

LONGEST = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> None:
    """Refuse a name that no topic may have.

    :raises Refusal: 17.
    """
    said = "Topic name is invalid: "
    if not name:
        raise Refusal(INVALID_TOPIC, f"{said}the empty string is not allowed")
    if name in (".", ".."):
        raise Refusal(INVALID_TOPIC, f"{said}'{name}' is not allowed")
    if len(name) > LONGEST:
        raise Refusal(
            INVALID_TOPIC,
            f"{said}the length of '{name}' is longer than the max allowed length {LONGEST}",
        )
    if not _LEGAL.fullmatch(name):
        raise Refusal(
            INVALID_TOPIC,
            f"{said}'{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'",
        )


def colliding(name: str, others: Iterable[str]) -> str | None:
    """A topic whose metrics would have the same name: there ``.`` and ``_`` are one character."""
    if "." not in name and "_" not in name:
        return None
    alike = name.replace(".", "_")
    return next((other for other in others if other.replace(".", "_") == alike), None)
