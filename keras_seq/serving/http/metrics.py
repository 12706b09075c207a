"""Metrics of the server in Prometheus's text format."""

from __future__ import annotations

from collections.abc import Callable

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

    def __init__(self, version: Callable[[], int], waiting_rows: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "keras_seq_requests",
            "Answered requests by endpoint and HTTP status.",
            ["endpoint", "code"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "keras_seq_request_seconds",
            "Seconds from a predict request to its response.",
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._rows = Histogram(
            "keras_seq_batch_rows", "Rows per batch.", buckets=_ROWS, registry=self._registry
        )
        self._batch_seconds = Histogram(
            "keras_seq_batch_seconds",
            "Seconds per batch in the model.",
            buckets=_SECONDS,
            registry=self._registry,
        )
        Gauge("keras_seq_queue_rows", "Rows in the queue.", registry=self._registry).set_function(
            waiting_rows
        )
        Gauge(
            "keras_seq_model_version", "The served version.", registry=self._registry
        ).set_function(version)
        # Memory, processor time and open files of the process, and the version of Python.
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)

    def request(self, endpoint: str, code: int, seconds: float) -> None:
        """Counts a response; only predict requests are timed."""
        self._requests.labels(endpoint, str(code)).inc()
        if endpoint == "predict":
            self._seconds.observe(seconds)

    def batch(self, rows: int, seconds: float) -> None:
        """Counts a batch."""
        self._rows.observe(rows)
        self._batch_seconds.observe(seconds)

    def text(self) -> bytes:
        """Returns all metrics in Prometheus's text format."""
        return generate_latest(self._registry)
