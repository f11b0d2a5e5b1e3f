"""How properties are tried: a few random cases in each run of the suite, many with `-m long`."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings


def few_and_many(few: int, many: int) -> pytest.MarkDecorator:
    """Gives a test its number of ``examples``."""
    patient = [pytest.mark.long, pytest.mark.timeout(1800)]
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
