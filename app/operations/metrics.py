"""Figures of a running server for a monitor, as OpenMetrics: counted as they happen, or looked up when asked for.

Labels are bounded: methods that HTTP knows, templates of routes, status codes, kinds and states of jobs. No label names
a run, a file, a person or an address.
"""

import contextlib
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest

from app.operations import logs
from app.operations.readiness import Readiness
from app.workspace import Workspace
from errors import ChipledgerError
from runs.job_book import CANCELLED, DONE, FAILED, OPEN

MEDIA_TYPE = CONTENT_TYPE_LATEST
BUCKETS_S = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120, 600)
KEPT_S = 10.0  # what is looked up in the store holds for so long: a monitor that asks each second costs nothing more
WHATS, STATES = ("ingest", "compile", "capture"), (*OPEN, DONE, FAILED, CANCELLED)
Jobs = Callable[[], Mapping[tuple[str, str], int]]  # how many jobs are remembered, by what they do and their state


class Figures:
    """What is counted as it happens. Each server has its own."""

    def __init__(self) -> None:
        self.registry = r = CollectorRegistry()
        labels = ("method", "route", "status")
        self._requests = Counter("chipledger_http_requests", "Requests that were answered", labels, registry=r)
        self._took = Histogram(
            "chipledger_http_request_duration_seconds",
            "From a request's first byte to the last of its answer",
            ("method", "route"),
            buckets=BUCKETS_S,
            registry=r,
        )
        self._sent = Counter("chipledger_http_response_bytes", "Bytes of answers' bodies", ("route",), registry=r)
        self._uploaded = Counter("chipledger_upload_bytes", "Bytes that arrived of uploads", registry=r)
        self._open = Gauge("chipledger_sessions", "Sessions of browsers that are open", registry=r)
        self._sessions = Counter("chipledger_sessions_opened", "Sessions that were opened", registry=r)
        self._refused = Counter("chipledger_sessions_refused", "Sessions that were refused", registry=r)
        self._limited = Counter("chipledger_rate_limited", "Requests told to come later", ("kind",), registry=r)

    def answered(self, method: str, route: str, status: int, took_s: float, sent: int) -> None:
        self._requests.labels(method, route, str(status)).inc()
        self._took.labels(method, route).observe(took_s)
        self._sent.labels(route).inc(sent)

    def uploaded(self, n_bytes: int) -> None:
        self._uploaded.inc(n_bytes)

    def session_opened(self) -> None:
        self._sessions.inc()
        self._open.inc()

    def session_closed(self) -> None:
        self._open.dec()

    def session_refused(self) -> None:
        self._refused.inc()

    def limited(self, kind: str) -> None:
        self._limited.labels(kind).inc()

    def text(self) -> bytes:
        """All of it in the text format of OpenMetrics."""
        return generate_latest(self.registry)


@dataclass(eq=False)
class Looked:
    """What is looked up when it is asked for, at most every KEPT_S. What cannot be read is left out, never 0."""

    place: Workspace
    jobs: Jobs
    readiness: Readiness
    clock: Callable[[], float] = time.monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _kept: tuple[float, list[Metric]] | None = None

    def describe(self) -> Iterable[Metric]:
        """Nothing beforehand: a registry asks for this instead of looking everything up once more."""
        return ()

    def collect(self) -> Iterator[Metric]:
        yield _gauge_by("chipledger_jobs", "Jobs that are remembered", ("what", "state"), _every_state(self.jobs()))
        lost = CounterMetricFamily("chipledger_log_lines_lost", "Lines of the log that nobody took in time")
        lost.add_metric((), logs.lost())
        yield lost
        yield _build()
        with self._lock:
            if self._kept is None or self.clock() - self._kept[0] > KEPT_S:
                self._kept = self.clock(), list(self._looked())
            yield from self._kept[1]

    def _looked(self) -> Iterator[Metric]:
        ready = self.readiness.checks()
        yield _gauge_by("chipledger_ready", "1 where the check passes", ("check",), {(c.name,): c.ok for c in ready})
        for name, meaning, unit, read in (
            ("chipledger_runs", "Runs of the store", "", self._runs),
            ("chipledger_store_free_bytes", "Free on the disk of the store", "bytes", self._free),
            ("chipledger_store_disk_bytes", "Size of the disk of the store", "bytes", self._disk),
            ("chipledger_registry_bytes", "Size of the registry", "bytes", self._registry),
        ):
            with contextlib.suppress(OSError, ChipledgerError):
                yield GaugeMetricFamily(name, meaning, value=read(), unit=unit)

    def _runs(self) -> int:
        return len(self.place.store.ids())

    def _free(self) -> int:
        return shutil.disk_usage(self.place.store.root).free

    def _disk(self) -> int:
        return shutil.disk_usage(self.place.store.root).total

    def _registry(self) -> int:
        return self.place.registry.bytes()


def figures_of(place: Workspace, jobs: Jobs, readiness: Readiness) -> Figures:
    """The figures of a server, with those of its process."""
    figures = Figures()
    figures.registry.register(Looked(place, jobs, readiness))
    ProcessCollector(registry=figures.registry)
    return figures


def _every_state(counted: Mapping[tuple[str, str], int]) -> dict[tuple[str, ...], float]:
    """With 0 where there is none: a monitor's alarm needs a line to look at."""
    found: dict[tuple[str, ...], float] = {(w, s): 0 for w in WHATS for s in STATES}
    for (what, state), n in counted.items():
        if (what, state) in found:
            found[what, state] = n
    return found


def _gauge_by(
    name: str, meaning: str, labels: tuple[str, ...], values: Mapping[tuple[str, ...], Any]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for of, value in values.items():
        family.add_metric(of, float(value))
    return family


def _build() -> InfoMetricFamily:
    from app.operations.versions import versions

    return InfoMetricFamily("chipledger_build", "Versions of what runs", value=versions())
