"""Tests of what brokers can only since a version of Kafka."""

from __future__ import annotations

import pytest

from local.kafka.jvm import VERSION

_MAJOR, _MINOR, *_ = map(int, VERSION.split("."))
RELEASE = (_MAJOR, _MINOR)
"""Major and minor of the version that tests run on."""


def since(release: tuple[int, int], before: str) -> pytest.MarkDecorator:
    """Skip the test on brokers that are older.

    :param before: what is so of those.
    """
    said = f"before {release[0]}.{release[1]} {before}"
    return pytest.mark.skipif(release > RELEASE, reason=said)
