"""Registers a checkout with Airflow, which reads this folder; a wheel has an entry point.

The two do not go together: it would be chance which of them a process has.
"""

from __future__ import annotations

from pathlib import Path

import rehome
from rehome.airflow_plugin import RehomePlugin

__all__ = ["RehomePlugin"]

_HERE = Path(__file__).resolve().parent / "rehome"
_IMPORTED = Path(str(rehome.__file__)).resolve().parent
if _IMPORTED != _HERE:
    raise ImportError(
        f"Rehome is installed in {_IMPORTED}, and {_HERE} is a copy of it. Python imports the "
        "installed one. Keep one: run `pip uninstall rehome`, or remove the copy with its "
        "rehome_plugin.py."
    )
