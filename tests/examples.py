"""How many random cases the property tests try."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

ALL = os.environ.get("REHOME_EXAMPLES") == "all"
FEWER = 8
"""`make test` tries a part of the cases, the same ones in every run; `make test-thorough` all."""


def examples(number: int, **options: Any) -> settings:
    """As many random cases of a property, however long each takes."""
    tried = number if ALL else min(number, max(8, number // FEWER))
    return settings(max_examples=tried, deadline=None, **options)


def few_and_many(few: int, many: int) -> pytest.MarkDecorator:
    """Gives a test its number of ``examples``."""
    patient = [pytest.mark.long, pytest.mark.timeout(3600)]
    return pytest.mark.parametrize("examples", [few, pytest.param(many, marks=patient)])


def property_of(examples: int) -> settings:
    """The same random cases in every run, however long each takes."""
    return settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        database=None,
    )
