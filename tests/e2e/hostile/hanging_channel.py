"""A channel of alerts that answers when it is too late, as of a provider without timeouts."""

from __future__ import annotations

import threading
from typing import Any

from airflow.sdk import BaseNotifier


class HangingChannel(BaseNotifier):
    """Ends with its process."""

    def notify(self, context: Any) -> None:
        """Wait for what never comes."""
        threading.Event().wait()
