"""The DAG files of the how-to, as they stand there."""

from __future__ import annotations

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

from tests.session.airflow_home import ROOT

if TYPE_CHECKING:
    from airflow.sdk import DAG

PAGE = ROOT / "docs" / "howto" / "own-dag.md"


def blocks() -> list[str]:
    """The DAG files of the how-to, in their order."""
    return re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)


def parsed(code: str, tmp_path: Path) -> DAG:
    """A DAG file as Airflow's DAG processor reads it."""
    path = tmp_path / "own_dag.py"
    path.write_text(code)
    spec = spec_from_file_location("own_dag", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    dag: DAG = module.dag
    return dag
