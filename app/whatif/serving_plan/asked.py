"""What `whatif serving-plan` can be asked."""

from dataclasses import dataclass

from app.whatif.serving.asked import RAN, STAGE
from errors.numbers import COUNT, FROM_ZERO, PERCENTILE, RATE, SECONDS, VARIATION
from errors.options import Option


@dataclass(frozen=True, kw_only=True)
class Asked:
    """By the names of OPTIONS. model, input, output, rate and a chip must be given; of the rest None: the default that
    OPTIONS tell, or no such objective."""

    model: str | None = None
    on: str | None = None
    price: str | None = None
    formats: str | None = None
    own_chip: str | None = None
    chip_file: str | None = None
    input: int | None = None
    output: int | None = None
    prefix: int | None = None
    max_sequences: int | None = None
    token_budget: int | None = None
    rate: float | None = None
    burst: float | None = None
    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None
    percentile: float | None = None
    calibrate: str | None = None
    stage: str | None = None
    ran: str | None = None
    disaggregate: str | None = None


OPTIONS: tuple[Option, ...] = (
    Option("model", str, None, "a model of the catalogue", form="NAME"),
    Option("on", str, None, "chips to try, by comma: v6e,h100,b200", label="Chips to try", form="CHIPS"),
    Option(
        "price",
        str,
        None,
        "dollars per chip-hour, by comma: v6e=2.7,h100=3.5; without prices the setup with the fewest chips comes first",
        label="Prices, dollars per chip-hour",
        form="CHIP=USD",
    ),
    Option(
        "formats",
        str,
        None,
        "of the weights, by comma: bf16, fp8, int8, fp4, int4, mxfp4, nvfp4, awq, gptq, published (default: as the "
        "model is published; in bf16 also the chip's faster 8-bit format)",
        form="NAMES",
    ),
    Option(
        "own_chip",
        str,
        None,
        "a chip of your own: name, bf16_flops_per_s, hbm_bytes, hbm_bytes_per_s and other numbers of the catalogue, or "
        "like, the chip that it is like; usd_per_chip_hour",
        label="Chip of your own",
        form="JSON",
    ),
    Option("chip_file", str, None, "the same in a file; may hold a list of chips", form="FILE", local=True),
    Option("input", COUNT, None, "prompt tokens of a request", "tokens", "Prompt tokens"),
    Option("output", COUNT, None, "tokens generated for a request", "tokens", "Generated tokens"),
    Option(
        "prefix",
        FROM_ZERO,
        None,
        "prompt tokens found in the prefix cache, such as a system prompt (default: 0)",
        "tokens",
        "Cached prompt tokens",
    ),
    Option(
        "max_sequences",
        COUNT,
        None,
        "requests at a time of a replica, with experts dealt out of each group (default: 256)",
        label="Seats",
    ),
    Option(
        "token_budget",
        COUNT,
        None,
        "tokens of one step, likewise (default: 8192)",
        "tokens",
    ),
    Option("rate", RATE, None, "requests per second, all together", "1/s", "Requests per second"),
    Option(
        "burst",
        VARIATION,
        None,
        "coefficient of variation of the gaps between requests (default: 1, Poisson)",
        label="Burstiness",
    ),
    Option("ttft_s", SECONDS, None, "time to first token that must be kept", "s", "First token within"),
    Option("tpot_s", SECONDS, None, "time per output token after the first that must be kept", "s", "A token every"),
    Option("e2e_s", SECONDS, None, "time to the last token that must be kept", "s", "Last token within"),
    Option("percentile", PERCENTILE, None, "of the requests that must keep the objectives (default: 99)"),
    Option(
        "calibrate",
        str,
        None,
        "a measured run of the store: its chip's shares of the peaks are fitted to it, those of other chips stay "
        "assumed",
        label="Calibrate on",
        of_run=True,
    ),
    STAGE,
    RAN,
    Option(
        "disaggregate",
        ("yes", "no"),
        None,
        "also compare with prefill and decode on machines of their own",
        label="Compare with two pools",
        bare="yes",
    ),
)
