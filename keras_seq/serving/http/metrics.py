"""Metrics of the server in Prometheus's text format."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Counters and histograms of the server, in a separate registry."""

    def __init__(
        self,
        version: Callable[[], int],
        waiting_rows: Callable[[], int],
        connections: Callable[[], int],
    ) -> None:
        self._registry = registry = CollectorRegistry()

        def histogram(name: str, text: str, buckets: Sequence[float]) -> Histogram:
            return Histogram(f"keras_seq_{name}", text, buckets=buckets, registry=registry)

        text = "Answered requests by endpoint and HTTP status."
        self._requests = Counter(
            "keras_seq_requests", text, ["endpoint", "code"], registry=registry
        )
        text = "Seconds from a predict request to its response."
        self._seconds = histogram("request_seconds", text, _SECONDS)
        self._rows = histogram("batch_rows", "Rows per batch.", _ROWS)
        text = "Seconds per batch in the model."
        self._batch_seconds = histogram("batch_seconds", text, _SECONDS)
        for name, text, value in (
            ("queue_rows", "Rows in the queue.", waiting_rows),
            ("model_version", "The served version.", version),
            ("connections", "Open connections.", connections),
        ):
            Gauge(f"keras_seq_{name}", text, registry=registry).set_function(value)
        # Add memory, CPU time and open files of the process, and the version of Python.
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)

    def request(self, endpoint: str, code: int, seconds: float) -> None:
        """Counts a response, and records the time of predict requests."""
        self._requests.labels(endpoint, str(code)).inc()
        if endpoint == "predict":
            self._seconds.observe(seconds)

    def batch(self, rows: int, seconds: float) -> None:
        self._rows.observe(rows)
        self._batch_seconds.observe(seconds)

    def text(self) -> bytes:
        """Returns all metrics in Prometheus's text format."""
        return generate_latest(self._registry)
