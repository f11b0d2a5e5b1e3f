"""What Airflow reads of an installed provider: ``airflow providers get rehome``."""

from __future__ import annotations

from typing import Any

from rehome.hooks.connection_form import connection_type
from rehome.version import REHOME_VERSION


def provider_info() -> dict[str, Any]:
    """The package as Airflow's schema of providers describes one."""
    return {
        "package-name": "rehome",
        "name": "Rehome",
        "description": "Reassigns Apache Kafka partitions safely.",
        "versions": [REHOME_VERSION],
        "connection-types": [connection_type()],
        "notifications": ["rehome.notifiers.webhook.WebhookNotifier"],
        "extra-links": [
            f"rehome.links.{link}" for link in ("PlanPageLink", "DataDocsLink", "ReportLink")
        ],
    }
