"""Each alert fires when it should, and not otherwise, by Prometheus's own tool."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.metrics.prometheus import tool

RULES_TEST = Path(__file__).with_name("alert_rules_test.yaml")


def test_each_alert_fires_when_it_should_and_not_otherwise() -> None:
    done = subprocess.run(
        [tool("promtool"), "test", "rules", str(RULES_TEST)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
