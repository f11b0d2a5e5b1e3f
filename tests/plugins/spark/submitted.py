"""What the operator hands to spark-submit, by a connection of one's own."""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rehome.operators.plan import PlanReassignmentOperator
from rehome.run.context import RunContext

PYTHON = sys.executable
RECORDS = """#!{python}
import json, os, sys
with open({target!r}, "w") as file:
    json.dump([sys.argv[1:], dict(os.environ)], file)
print("Exit code: 0")  # what the hook looks for under Kubernetes
"""


def connected(monkeypatch: pytest.MonkeyPatch, host: str, **extra: Any) -> None:
    """Let ``spark_default`` lead there."""
    value = {"conn_type": "spark", "host": host, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(value))


def plan_operator(snapshot: str, **kwargs: Any) -> PlanReassignmentOperator:
    """Of a run that is about to submit its job."""
    operator = PlanReassignmentOperator(task_id="plan", **kwargs)
    operator.snapshots = [snapshot] if snapshot else []
    operator.application_args = ["--snapshot", snapshot]
    return operator


def written_down(
    submit: Callable[[], object], directory: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[str], dict[str, str]]:
    """Arguments and environment of the spark-submit that is started meanwhile."""
    target = directory / "submitted.json"
    binary = directory / "spark-submit"
    binary.write_text(RECORDS.format(python=PYTHON, target=str(target)))
    binary.chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
    submit()
    arguments, environment = json.loads(target.read_text())
    return arguments, environment


def submitted(
    operator: PlanReassignmentOperator, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[str], dict[str, str]]:
    """The same of an operator."""
    return written_down(lambda: operator.submit(RunContext({})), directory, monkeypatch)


def conf_of(arguments: list[str]) -> dict[str, str]:
    """The settings among them."""
    pairs = itertools.pairwise(arguments)
    return dict(value.split("=", 1) for option, value in pairs if option == "--conf")
