"""What lines of Megatron-LM, Megatron-DeepSpeed and NeMo look like, and the names of their fields, of every era."""

import re

from collectors.reading.line_prefix import Clock
from collectors.reading.textlog import DATED

STEP = re.compile(r"iteration\s+(\d{1,18})\s*/\s*\d{1,18}\s*\|(.*)", re.ASCII)
BELOW_ZERO = re.compile(r"iteration +-\d")
ELAPSED = {"elapsed time per iteration (ms)": 1e-3, "elapsed time per iteration (s)": 1.0}
TFLOPS = ("throughput per GPU (TFLOP/s/GPU)", "TFLOPs", "TFLOP/s/GPU", "tflops", "TFLOPS_per_GPU")
TOKENS = ("tokens per gpu per second (tgs)", "tokens/sec/gpu", "tokens-per-second-per-gpu", "tokens_per_sec_per_gpu")
LOSSES = ("lm loss", "lm-loss", "loss", "reduced_train_loss")
UNITS: dict[str, str] = dict.fromkeys(  # of NeMo's memory
    ("peak_memory_usage", "memory_allocated", "max_memory_reserved", "max_memory_allocated"), "bytes"
)
OWN = {*ELAPSED, *TFLOPS, *TOKENS, *LOSSES}
MOMENT = re.compile(r"\[([^\]]{1,100}+)\] datetime: ")
INITIALISED = re.compile(r"time to initialize megatron \(seconds\): *(\d{1,9}(?:\.\d+)?)", re.ASCII)
UTILISED = re.compile(
    r"\bStep Time : (\d{1,9}(?:\.\d{1,9})?)s GPU utilization: (\d{1,9}(?:\.\d{1,9})?)\s?MODEL_TFLOP/s/GPU"
)
ROUNDED_S = 0.006  # how far off a time may be that is printed to a hundredth of a second
SAVING = re.compile(r"saving checkpoint at iteration +(\d{1,18})", re.ASCII)
LOADED = re.compile(r"(?>.*?load(?:ing|ed) checkpoint from ).*at iteration +(\d{1,18})", re.ASCII)  # for `match`
VALIDATED = re.compile(r"(validation|test) loss at (?:iteration (\d{1,18})|[\w ]{1,40})(.*)", re.ASCII)
SNIFF = re.compile(
    rb"iteration +\d+/ *\d+ \| .{0,400}elapsed time per iteration \(m?s\):"
    rb"|global_step.{0,400}train_step_timing in s[=:] ?\d"
)
SNIFF_START = re.compile(rb"using world size: *\d+, data.parallel.size|after megatron is initialized")
PRINTED = re.compile(rb"iteration +(\d{1,18})/ *\d+ \|")


def utilised(line: str) -> tuple[float, float] | None:
    """What Megatron-Bridge says right before a step line: seconds of an iteration, and TFLOP/s of a GPU."""
    match = UTILISED.search(line)
    return None if match is None else (float(match[1]), float(match[2]))


def with_utilised(fields: dict[str, float], seconds: float | None, before: tuple[float, float] | None) -> None:
    """Add to the fields of a step line what stood before it, where that is of the same iterations."""
    same = before is not None and seconds is not None and abs(seconds - before[0]) <= ROUNDED_S
    if before is not None and same and not any(name in fields for name in TFLOPS):
        fields[TFLOPS[0]] = before[1]


def moment(line: str, offset: int, clock: Clock) -> tuple[str, int] | None:
    """What of the program a line dates, and when, ns since the epoch: by the clock of step lines, which stands before
    it, else as the program says; None where it dates nothing."""
    match = MOMENT.search(line)
    if match is None or not DATED.match(line, match.end()):
        return None
    times = (clock.time_ns(text, offset) for text in (line[: match.start()], line[match.end() :]))
    at = next((at for at in times if at is not None), None)
    return None if at is None else (match[1], at)
