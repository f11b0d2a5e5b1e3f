"""What happened in a run, as one hash; and its last lines, for people."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

LINES_KEPT = 400


def canonical(value: Any) -> str:
    """A value's text, the same in every process: sets and mappings are sorted."""
    if isinstance(value, str | int | float | bool | None):
        return repr(value)
    if isinstance(value, Mapping):
        items = sorted((canonical(key), canonical(item)) for key, item in value.items())
        return "{" + ",".join(f"{key}:{item}" for key, item in items) + "}"
    if is_dataclass(value) and not isinstance(value, type):
        parts = ",".join(canonical(getattr(value, item.name)) for item in fields(value))
        return f"{type(value).__name__}({parts})"
    if isinstance(value, tuple | list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, Collection):
        return "{" + ",".join(sorted(map(canonical, value))) + "}"
    return str(value) if isinstance(value, BaseException) else repr(value)


class Trace:
    """Calls, statements and states of a run in their order.

    :param kept: False = nothing is written down, and there is no hash: for runs of which only what
        the judge finds is asked for. To write down takes a tenth of a run's time.
    """

    def __init__(self, keep: int = LINES_KEPT, *, kept: bool = True) -> None:
        self.kept = kept
        self._hash = hashlib.sha256()
        self._keep = keep
        self.lines: deque[str] = deque(maxlen=keep or None)
        self.count: Counter[str] = Counter()

    def note(self, at_s: float, actor: str, kind: str, text: str) -> None:
        """Add a line. ``kind`` is counted."""
        if not self.kept:
            return
        line = f"{at_s:.3f} {actor} {kind} {text}"
        self.count[kind] += 1
        self._hash.update(line.encode())
        if self._keep:
            self.lines.append(line)

    @property
    def sha256(self) -> str:
        """Of all lines so far; "" = none was kept."""
        return self._hash.hexdigest() if self.kept else ""
