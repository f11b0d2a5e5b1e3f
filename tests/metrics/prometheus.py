"""A real Prometheus behind a real StatsD exporter, with the project's mapping and alert rules."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx
import pytest
import yaml

from local.process.guard import Guard
from local.process.ports import free_ports
from local.process.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
MONITORING = ROOT / "monitoring"
TOOLS = ROOT / ".cache" / "bin"
SCRAPE_S = 1


def tool(name: str) -> str:
    """Path of a program; the test is skipped where it is not installed."""
    found = shutil.which(name, path=f"{TOOLS}{os.pathsep}{os.environ.get('PATH', os.defpath)}")
    if found is None:
        pytest.skip(f"{name} is not installed: `bin/setup monitoring` does, where it may")
    return found


@dataclass(frozen=True)
class Sample:
    """One series of an answer: values by time, oldest first."""

    labels: dict[str, str]
    values: list[tuple[float, float]]


class Monitoring:
    """Both servers, on free loopback ports; they end with the ``with``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._exporter, self._prometheus = tool("statsd_exporter"), tool("prometheus")
        self.statsd_port, self._exporter_port, self._port = free_ports(3)
        self.began_at = time.time()

    def __enter__(self) -> Monitoring:
        self._guard = Guard()
        self._client = httpx.Client(timeout=120)
        log = self._directory / "monitoring.log"
        self._guard.spawn(
            [
                self._exporter,
                f"--statsd.listen-udp=127.0.0.1:{self.statsd_port}",
                "--statsd.listen-tcp=",
                f"--web.listen-address=127.0.0.1:{self._exporter_port}",
                f"--statsd.mapping-config={MONITORING / 'statsd_mapping.yaml'}",
            ],
            log,
        )
        self._guard.spawn(
            [
                self._prometheus,
                f"--config.file={self._config()}",
                f"--storage.tsdb.path={self._directory / 'tsdb'}",
                f"--web.listen-address=127.0.0.1:{self._port}",
            ],
            log,
        )
        wait_until(self._scrapes, f"Prometheus to read the exporter (see {log})", 240)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._client.close()
        self._guard.close()

    def now(self, expression: str) -> list[Sample]:
        """What an expression is now."""
        found = self._get("query", query=expression)["result"]
        return [Sample(each["metric"], _values([each["value"]])) for each in found]

    def since_the_start(self, expression: str) -> list[Sample]:
        """What an expression was at each second since the servers were started."""
        span = {"start": self.began_at, "end": time.time(), "step": SCRAPE_S}
        found = self._get("query_range", query=expression, **span)["result"]
        return [Sample(each["metric"], _values(each["values"])) for each in found]

    def rules(self) -> list[dict[str, Any]]:
        """Each alert rule with its health."""
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def _scrapes(self) -> bool:
        try:
            return any(sample.values[-1][1] == 1 for sample in self.now("up"))
        except httpx.TransportError:
            return False

    def _get(self, what: str, **params: Any) -> dict[str, Any]:
        url = f"http://127.0.0.1:{self._port}/api/v1/{what}"
        answer = self._client.get(url, params=params)
        content = answer.json() if answer.status_code in (200, 400, 422) else {}
        if content.get("status") != "success":
            # Prometheus answers 503 until it is ready.
            if answer.status_code == 503:
                raise httpx.TransportError("not ready")
            raise AssertionError(f"{params}: {answer.text}")
        data: dict[str, Any] = content["data"]
        return data

    def _config(self) -> Path:
        target = {"targets": [f"127.0.0.1:{self._exporter_port}"]}
        config = {
            "global": {
                "scrape_interval": f"{SCRAPE_S}s",
                "scrape_timeout": f"{SCRAPE_S}s",
                "evaluation_interval": f"{SCRAPE_S}s",
            },
            "rule_files": [str(MONITORING / "alert_rules.yaml")],
            "scrape_configs": [{"job_name": "airflow", "static_configs": [target]}],
        }
        path = self._directory / "prometheus.yaml"
        path.write_text(yaml.safe_dump(config))
        return path


def _values(pairs: list[list[Any]]) -> list[tuple[float, float]]:
    return [(float(at), float(value)) for at, value in pairs]
