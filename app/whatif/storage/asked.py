"""What `whatif storage` can be asked."""

from dataclasses import dataclass

from errors.numbers import CHIPS, COUNT, PER_SECOND, SEED, USD, Number
from errors.options import Option

READERS, PREFETCH = 16, 2
PER = ("job", "host")
LATENCY, STEP = Number(0, 3600), Number(1e-6, 1e6)
HOSTS, DECODERS = Number(1, 1e6, whole=True), Number(1, 1e5, whole=True)
MOST_READERS, MOST_PREFETCH = 65_536, 64


@dataclass(frozen=True, kw_only=True)
class Asked:
    """By the names of OPTIONS. What is read, its latency and the step's time must be given, or come from `run` or
    `like`; of the rest None: the default that OPTIONS tell."""

    run: str | None = None
    step_s: float | None = None
    batch: int | None = None
    batch_bytes: str | None = None
    per: str = PER[0]
    sample_bytes: str | None = None
    samples_per_file: float | None = None
    file_bytes: str | None = None
    hosts: int | None = None
    readers: int | None = None
    prefetch: int | None = None
    latency_s: float | None = None
    latency_p99_s: float | None = None
    stream_bytes_per_s: float | None = None
    host_bytes_per_s: float | None = None
    store_bytes_per_s: float | None = None
    store_requests_per_s: float | None = None
    decode_s: float | None = None
    decoders: int | None = None
    like: str | None = None
    tib: float | None = None
    chips: int | None = None
    days: float | None = None
    usd_per_chip_hour: float | None = None
    files: int | None = None
    checkpoint_bytes: str | None = None
    write_bytes_per_s: float | None = None
    seed: int | None = None


OPTIONS: tuple[Option, ...] = (
    Option("run", str, None, "a run of the store: its step and its chips, and what it fetched", of_run=True),
    Option("step_s", STEP, None, "a step that waits for nothing (default: the run's)", "s", "A step"),
    Option("batch", COUNT, None, "samples of a step", label="Samples of a step"),
    Option("batch_bytes", str, None, "bytes of a step, such as 32MB, instead", label="Bytes of a step", form="SIZE"),
    Option("per", PER, PER[0], "whether these are of the whole job or of each host", label="Of each"),
    Option("sample_bytes", str, None, "bytes of a sample in the store, such as 100KiB", label="A sample", form="SIZE"),
    Option(
        "samples_per_file",
        Number(1e-3, 1e12),
        None,
        "samples that a request brings, instead of the bytes of a file",
        label="Samples a file",
    ),
    Option(
        "file_bytes",
        str,
        None,
        "what one request brings: a file, or the part of it that is read at once (default: a sample)",
        label="A file",
        form="SIZE",
    ),
    Option("hosts", HOSTS, None, "hosts that read (default: 1)", label="Hosts"),
    Option(
        "readers",
        Number(1, MOST_READERS, whole=True),
        None,
        f"requests that a host has in flight: workers, times requests of each (default: {READERS})",
        label="Readers a host",
    ),
    Option(
        "prefetch",
        Number(0, MOST_PREFETCH, whole=True),
        None,
        f"batches that a host may fetch or hold while a step runs (default: {PREFETCH})",
        label="Batches ahead",
    ),
    Option("latency_s", LATENCY, None, "until the first byte of a request, the median", "s", "Latency"),
    Option("latency_p99_s", LATENCY, None, "its 99th percentile (default: no spread)", "s", "99th percentile of it"),
    Option("stream_bytes_per_s", PER_SECOND, None, "of one request (default: no limit)", label="A stream, bytes/s"),
    Option("host_bytes_per_s", PER_SECOND, None, "of a host's network (default: no limit)", label="A host, bytes/s"),
    Option("store_bytes_per_s", PER_SECOND, None, "of the store (default: no limit)", label="The store, bytes/s"),
    Option(
        "store_requests_per_s",
        PER_SECOND,
        None,
        "that the store takes of all hosts (default: no limit)",
        label="The store, requests/s",
    ),
    Option("decode_s", Number(0, 3600), None, "decoding of one sample by one decoder (default: 0)", "s", "Decoding"),
    Option("decoders", DECODERS, None, "that decode on a host at once (default: 1)", label="Decoders a host"),
    Option(
        "like",
        str,
        None,
        "a store whose published figures hold where none is given, such as s3-standard or parallelstore",
        label="A store like",
        form="STORE",
    ),
    Option(
        "tib",
        Number(1e-3, 1e6),
        None,
        "capacity of that store, where its bandwidth is published by capacity",
        "TiB",
        "Capacity of it",
    ),
    Option("chips", CHIPS, None, "chips that wait: gives the wait its chip-hours", label="Chips"),
    Option("days", Number(1e-3, 1e5), None, "that the job runs, waits included", "d", "Length of the job"),
    Option(
        "usd_per_chip_hour",
        USD,
        None,
        "price of a chip-hour in dollars: gives the wait a price",
        "USD",
        label="Dollars per chip-hour",
    ),
    Option("files", COUNT, None, "files of the data set: how long an epoch takes to list and to read", label="Files"),
    Option("checkpoint_bytes", str, None, "bytes of a checkpoint, such as 1.1TB", label="A checkpoint", form="SIZE"),
    Option("write_bytes_per_s", PER_SECOND, None, "that the store takes: how long a save is", label="Writing, bytes/s"),
    Option("seed", SEED, None, "of the latencies that are drawn (default: 0)"),
)
