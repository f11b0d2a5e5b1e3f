"""Ids as parts of paths: readable, reversible, and never a path of their own.

Letters, digits, ``_``, ``-`` and ``.`` stay as they are, so that ordinary ids do. Every other byte
of the id in UTF-8 is ``~`` and two hexadecimal digits; so is a ``.`` at the start, and one after
another. No other program takes ``~2F`` for a slash, as many do with ``%2F``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress

from rehome.errors import RehomeError

LONGEST_PART = 200
"""Characters of a part: file systems allow 255 bytes, and a prefix is put before it."""
EMPTY = "~"
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.")
_ENCODED = re.compile(rb"~([0-9A-F]{2})")
_HOW = "surrogatepass"
"""Also what is no text comes back as it was."""


class PathPartError(RehomeError):
    """An id that no folder can be named by."""


def path_part(text: str) -> str:
    """An id as one part of a path.

    :raises PathPartError: it would be too long.
    """
    characters, before = [], ord(".")  # as after another one
    for byte in text.encode(errors=_HOW):
        plain = byte in _PLAIN and not byte == before == ord(".")
        characters.append(chr(byte) if plain else f"~{byte:02X}")
        before = byte
    part = "".join(characters) or EMPTY
    if len(part) > LONGEST_PART:
        raise PathPartError(
            f"The id {text[:40]!r}… would take {len(part)} characters in the name of a folder, and "
            f"at most {LONGEST_PART} are allowed. So nothing can be kept under this id",
            next_step="Use a shorter id for what has it: a cluster, a plan or a run.",
        )
    return part


def ids_of(parts: Iterable[str]) -> list[str]:
    """The ids of those parts that :func:`path_part` has made, in order; others are not ours."""
    ids = []
    for part in parts:
        with suppress(PathPartError):
            if path_part(id_of(part)) == part:
                ids.append(id_of(part))
    return sorted(ids)


def id_of(part: str) -> str:
    """The id that a part of a path stands for; of what :func:`path_part` has not made, itself."""
    if part == EMPTY:
        return ""
    try:
        text = _ENCODED.sub(
            lambda match: bytes([int(match[1], 16)]), part.encode(errors=_HOW)
        ).decode(errors=_HOW)
        return text if path_part(text) == part else part
    except (UnicodeDecodeError, PathPartError):
        return part
