"""How many random cases the property tests try."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

ALL = os.environ.get("REHOME_EXAMPLES") == "all"
FEWER = 4
"""`make test` tries a part of the cases, the same ones in every run; `make test-thorough` all."""


def examples(number: int, **options: Any) -> settings:
    """As many random cases of a property, however long each takes."""
    tried = number if ALL else min(number, max(10, number // FEWER))
    return settings(max_examples=tried, deadline=None, **options)
