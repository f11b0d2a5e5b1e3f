"""A DAG of another project, which runs whenever Rehome has made a plan."""

from __future__ import annotations

import json
from typing import Any

from airflow.sdk import DAG, Asset, task

with DAG("after_plans", schedule=[Asset("rehome_plans")]) as dag:

    @task
    def reported(triggering_asset_events: Any = None) -> None:
        """Print what the events say."""
        for events in triggering_asset_events.values():
            for event in events:
                print("reported", json.dumps(event.extra))

    reported()
