"""The task that asks for approval."""

from __future__ import annotations

import importlib
from typing import Any

import pytest


@pytest.fixture
def approve() -> type[Any]:
    """The class of the DAG's task ``approve``."""
    return type(importlib.import_module("dags.reassign_partitions").dag.get_task("approve"))
