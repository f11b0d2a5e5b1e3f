"""The DAG files of the how-to, as they stand there."""

from __future__ import annotations

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

from tests.session.airflow_home import ROOT

if TYPE_CHECKING:
    from airflow.sdk import DAG

OWN_DAG, OF_OTHERS = "own-dag.md", "foreign-reassignments.md"
"""How-tos that have DAG files."""


def blocks(page: str = OWN_DAG) -> list[str]:
    """The DAG files of a how-to, in their order."""
    text = (ROOT / "docs" / "howto" / page).read_text()
    return re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)


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
