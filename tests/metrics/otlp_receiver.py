"""An OTLP/HTTP receiver for metrics, in the place of an OpenTelemetry Collector."""

from __future__ import annotations

import gzip
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)


class OtlpReceiver:
    """Keeps the newest value of each series: (name, attributes) → value."""

    def __init__(self) -> None:
        received: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
        self.received = received

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                received.update(_series(ExportMetricsServiceRequest.FromString(body)))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def __enter__(self) -> OtlpReceiver:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join(120)
        self._server.server_close()

    def env(self) -> dict[str, str]:
        """Has Airflow send Rehome's metrics here, twice a second."""
        return {
            "AIRFLOW__METRICS__OTEL_ON": "True",
            "AIRFLOW__METRICS__METRICS_ALLOW_LIST": "^rehome",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self._server.server_port}",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_METRIC_EXPORT_INTERVAL": "500",
        }


def _series(
    request: ExportMetricsServiceRequest,
) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    found = {}
    for resource in request.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                points = (*metric.gauge.data_points, *metric.sum.data_points)
                for point in points:
                    labels = tuple((a.key, a.value.string_value) for a in point.attributes)
                    value = point.as_int if point.HasField("as_int") else point.as_double
                    found[metric.name, labels] = float(value)
    return found
