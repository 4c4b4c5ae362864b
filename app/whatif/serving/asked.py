"""What `whatif serving` can be asked."""

from dataclasses import dataclass

from errors.numbers import COST, COUNT, FROM_ZERO, PER_SECOND, RATE, SEED, SHARE, SHARE_OF_SOME, VARIATION, Number
from errors.options import Option

FLIGHT = Number(1, 5_000_000, whole=True)  # requests at a time


@dataclass(frozen=True, kw_only=True)
class Asked:
    """By the names of OPTIONS; None: as the run that is calibrated on has it, else the default that OPTIONS tell."""

    model: str | None = None
    chip: str | None = None
    chips: int | None = None
    tensor: int | None = None
    expert: int | None = None
    replicas: int | None = None
    input: int | None = None
    output: int | None = None
    concurrency: int | None = None
    prefix: int | None = None
    requests: int | None = None
    seed: int = 0
    max_sequences: int | None = None
    token_budget: int | None = None
    page_tokens: int | None = None
    draft: int | None = None
    rate: float | None = None
    burst: float | None = None
    faster: float | None = None
    memory_utilization: float | None = None
    acceptance: float | None = None
    cost: float | None = None
    peak_flops_per_s: float | None = None
    precision: str | None = None
    experts_precision: str | None = None
    kv_precision: str | None = None
    routing: str = "round_robin"
    disaggregate: str = "no"
    calibrate: str | None = None
    stage: str | None = None
    ran: str | None = None
    trace: str | None = None
    out: str | None = None


STAGE = Option(
    "stage",
    str,
    None,
    "the load of that run that counts, where it holds several (default: the busiest that is kept whole)",
    form="NAME",
)
RAN = Option(
    "ran",
    str,
    None,
    "corrects or completes what that run says of its own setup, by comma: chips=2,max-sequences=64,cache-tokens=90000",
    form="NAME=VALUE",
)
OPTIONS: tuple[Option, ...] = (
    Option("model", str, None, "a model of the catalogue", form="NAME"),
    Option("chip", str, None, "a chip of the catalogue", form="NAME"),
    Option("chips", COUNT, None, "all chips"),
    Option("tensor", COUNT, None, "chips that split every matrix (default: all of a replica)"),
    Option("expert", COUNT, None, "chips over which routed experts are dealt out"),
    Option("replicas", COUNT, None, "copies that run batches of their own"),
    Option("input", COUNT, None, "prompt tokens of a request", "tokens"),
    Option("output", COUNT, None, "tokens generated for a request", "tokens"),
    Option("concurrency", FLIGHT, None, "requests in flight at any time, instead of a rate"),
    Option("prefix", FROM_ZERO, None, "prompt tokens found in the cache (default: 0)", "tokens"),
    Option("requests", COUNT, None, "how many requests (default: 1,000, or all of a trace)"),
    Option("seed", SEED, 0, "of what is drawn at random"),
    Option(
        "max_sequences",
        COUNT,
        None,
        "requests at a time of a replica, with experts dealt out of each group (default: 256)",
    ),
    Option("token_budget", COUNT, None, "tokens of one step, likewise (default: 8192)", "tokens"),
    Option("page_tokens", COUNT, None, "tokens of a page of the cache (default: 16)", "tokens"),
    Option("draft", COUNT, None, "tokens that are proposed ahead in each step", "tokens"),
    Option("rate", RATE, None, "requests per second", "1/s"),
    Option("burst", VARIATION, None, "coefficient of variation of the gaps between them (default: 1, Poisson)"),
    Option("faster", RATE, None, "traffic of a trace or a run, so many times as fast"),
    Option(
        "memory_utilization", SHARE_OF_SOME, None, "share of a chip's memory that the engine may use (default: 0.9)"
    ),
    Option("acceptance", SHARE, None, "share of proposed tokens kept, each given all before it were"),
    Option("cost", COST, None, "time of a draft step by that of a step (default: 0)"),
    Option("peak_flops_per_s", PER_SECOND, None, "dense peak of a chip, where the catalogue knows none", "FLOP/s"),
    Option(
        "precision",
        str,
        None,
        "format of weights (default: the run's, else as the model is published)",
        form="FORMAT",
    ),
    Option("experts_precision", str, None, "format of weights of routed experts", form="FORMAT"),
    Option("kv_precision", str, None, "format of the key-value cache (default: bf16)", form="FORMAT"),
    Option("routing", ("round_robin", "least_loaded"), "round_robin", "which replica a request goes to"),
    Option("disaggregate", ("yes", "no"), "no", "prefill and decode on machines of their own", bare="yes"),
    Option(
        "calibrate",
        str,
        None,
        "a measured run of the store: the model is fitted to it, and its setup and traffic count where no other is "
        "given",
        of_run=True,
    ),
    STAGE,
    RAN,
    Option("trace", str, None, "requests to replay: Azure, Mooncake, CSV or JSON lines", form="FILE", local=True),
    Option("out", str, None, "write the simulated run there, to be ingested", form="FOLDER", local=True),
)
