"""Airflow's side of Rehome: hooks, operators, a sensor with its trigger, a notifier.

In a checkout the engine lies in ``include/rehome``. An import from ``plugins/``, which is what
Airflow has on its path, finds both. A wheel has both in one folder.
"""

from pathlib import Path

_ENGINE = Path(__file__).resolve().parents[2] / "include" / "rehome"
if _ENGINE.is_dir():
    __path__.append(str(_ENGINE))
