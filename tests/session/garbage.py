"""Garbage is looked for among what is new only: a plugin for the test process.

What Airflow, Spark and SciPy make when they are imported lives as long as the process, and Python
would look through all of it again and again: a fifth of the processor time of a test of a DAG.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping

OLDEST = 2
"""The generation whose collection looks through everything."""


def pytest_configure() -> None:
    gc.callbacks.append(_keep_survivors)


def pytest_unconfigure() -> None:
    gc.callbacks.remove(_keep_survivors)


def _keep_survivors(phase: str, info: Mapping[str, int]) -> None:
    """What has survived a look through everything is not looked at again."""
    if phase == "stop" and info["generation"] == OLDEST:
        gc.freeze()
