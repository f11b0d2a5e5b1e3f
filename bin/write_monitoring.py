#!/usr/bin/env python3
"""Write monitoring/statsd_mapping.yaml and monitoring/grafana_dashboard.json from the catalogue.

``python bin/write_monitoring.py [--prefix NAME] [--to DIRECTORY]``: where Airflow's
``statsd_prefix`` is not ``airflow``, give it as ``--prefix``; alert_rules.yaml, which is written by
hand, is copied with that prefix then.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "include"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from monitoring.dashboard import dashboard
from monitoring.statsd_mapping import statsd_mapping
from rehome.metrics.catalog import STATSD_PREFIX

MONITORING = Path(__file__).resolve().parents[1] / "monitoring"
RULES = "alert_rules.yaml"
WRITTEN = (
    "# Made by bin/write_monitoring.py from include/rehome/metrics/catalog.py: change it there.\n"
)


def texts(prefix: str = STATSD_PREFIX) -> dict[str, str]:
    """Name of each file → what is in it."""
    mapping = yaml.safe_dump(statsd_mapping(prefix), sort_keys=False, width=100)
    rules = (MONITORING / RULES).read_text()
    return {
        "statsd_mapping.yaml": WRITTEN + mapping,
        "grafana_dashboard.json": json.dumps(dashboard(prefix), indent=2) + "\n",
        RULES: rules.replace(f"{STATSD_PREFIX}_rehome_", f"{prefix.replace('.', '_')}_rehome_"),
    }


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prefix", default=STATSD_PREFIX, help="statsd_prefix of your Airflow")
    parser.add_argument("--to", type=Path, default=MONITORING, help="the directory to write to")
    chosen = parser.parse_args()
    chosen.to.mkdir(parents=True, exist_ok=True)
    for name, text in texts(chosen.prefix).items():
        (chosen.to / name).write_text(text)
        print(chosen.to / name)


if __name__ == "__main__":
    main()
