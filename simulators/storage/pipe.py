"""The way of a batch from a store to a host, and what each part of it allows.

A batch is read in whole files, R of them a host (R need not be whole: a file may hold several batches). A request
brings one file of F bytes: its first byte after a latency, then its bytes at the rate of a stream. A host has c
requests in flight, and no more than belong to the batches that it may fetch ahead. All bytes of a host go over its
network, which has a fair share of the store's total; then they are decoded. Each part alone takes, a batch:

    latency       R E[L] / c'              c' = min(c, files of the batches that may be fetched ahead)
    stream        R F / (stream c')        with latency: both are within one request (Little's law)
    host_network  R F / host's bytes a second
    store         hosts R F / store's bytes a second
    request_rate  hosts R / requests that the store takes a second
    decode        samples x decode / decoders

The latency is lognormal: its median and its 99th percentile are given; without the latter it is always the median.
"""

import math
from dataclasses import dataclass
from functools import cached_property

from errors import QuestionError

P99 = 2.3263478740408408  # standard deviations of a normal distribution that 99 of 100 are below
MOST_SPREAD = 1000.0  # 99th percentile over median
MOST_BATCHES = 1000  # that one file may hold of one host
PARTS = ("latency", "stream", "host_network", "store", "request_rate", "decode")


@dataclass(frozen=True, kw_only=True)
class Pipe:
    """Of one host, of which there are `hosts` alike. Bandwidths are in bytes/s; of them and of the store's requests a
    second None is without limit. `decode_s`: of a whole batch on a host by all its decoders. `prefetch`: batches that
    may be fetched or held while a step runs."""

    batch_bytes: float
    file_bytes: float
    readers: int
    latency_s: float
    latency_p99_s: float | None = None
    stream_bytes_per_s: float | None = None
    host_bytes_per_s: float | None = None
    store_bytes_per_s: float | None = None
    store_requests_per_s: float | None = None
    hosts: int = 1
    prefetch: int = 2
    decode_s: float = 0.0

    def __post_init__(self) -> None:
        if self.latency_p99_s is not None and not 1 <= self.spread <= MOST_SPREAD:
            raise QuestionError(
                f"a 99th percentile of {self.latency_p99_s:g} s beside a median of {self.latency_s:g} s",
                expected=f"from the median to {MOST_SPREAD:,.0f} times as much",
            )
        if self.files * MOST_BATCHES < 1:
            raise QuestionError(
                f"files that hold {1 / self.files:,.0f} batches of a host each",
                expected=f"at most {MOST_BATCHES:,}",
                advice="Where a file is read in parts, name the bytes of a part",
            )

    @property
    def files(self) -> float:
        """R: files of a batch on one host."""
        return self.batch_bytes / self.file_bytes

    @property
    def spread(self) -> float:
        """99th percentile of the latency over its median."""
        if self.latency_p99_s is None:
            return 1.0
        return self.latency_p99_s / self.latency_s if self.latency_s else math.inf

    @property
    def sigma(self) -> float:
        """Of the latency's logarithm."""
        return math.log(self.spread) / P99

    @property
    def mean_latency_s(self) -> float:
        return self.latency_s * math.exp(self.sigma**2 / 2)

    @property
    def transfer_s(self) -> float:
        """Of a file at the rate of one stream."""
        return 0.0 if self.stream_bytes_per_s is None else self.file_bytes / self.stream_bytes_per_s

    @property
    def wire_bytes_per_s(self) -> float | None:
        """What a host gets at most: its own network, or its share of the store."""
        share = None if self.store_bytes_per_s is None else self.store_bytes_per_s / self.hosts
        return min((limit for limit in (self.host_bytes_per_s, share) if limit is not None), default=None)

    @property
    def wire_s(self) -> float:
        """That a file takes up of a host's wire, or of what the store takes of its requests, if that is longer."""
        of_bytes = 0.0 if self.wire_bytes_per_s is None else self.file_bytes / self.wire_bytes_per_s
        return max(of_bytes, 0.0 if self.store_requests_per_s is None else self.hosts / self.store_requests_per_s)

    @property
    def in_flight(self) -> int:
        """Requests that a host can have in flight: its readers, if the batches it may fetch need as many files."""
        return max(1, min(self.readers, math.ceil(max(self.prefetch, 1) * self.files)))

    @cached_property
    def parts(self) -> dict[str, float]:
        """Seconds a batch that each part alone would take, by the names of PARTS."""
        host, store, rate = self.host_bytes_per_s, self.store_bytes_per_s, self.store_requests_per_s
        return {
            "latency": self.files * self.mean_latency_s / self.in_flight,
            "stream": self.files * self.transfer_s / self.in_flight,
            "host_network": 0.0 if host is None else self.batch_bytes / host,
            "store": 0.0 if store is None else self.hosts * self.batch_bytes / store,
            "request_rate": 0.0 if rate is None else self.hosts * self.files / rate,
            "decode": self.decode_s,
        }

    @property
    def least_batch_s(self) -> float:
        """No batch can follow another sooner, in the long run."""
        p = self.parts
        return max(p["latency"] + p["stream"], p["host_network"], p["store"], p["request_rate"], p["decode"])
