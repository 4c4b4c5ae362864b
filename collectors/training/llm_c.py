"""llm.c's standard output: a line for each step, and a table of what the job is before them.

dur_ns                  the milliseconds of the line, of this step alone
tokens_per_s_per_chip   tokens of a batch over that time and the processes; the line's own `tok/s` is a mean
model_flops_per_chip    the line's MFU of the peak in the table, over that time; to a tenth of a per cent
start_ns                where something dates the lines: the line's time less the duration
Its `main.log` tells of steps without a time: `s:1 trl:10.9 lr:0.0006 norm:15.1`, and what it evaluated: `s:250 tel:6.1`
(the loss), `s:250 eval:0.25` (HellaSwag). It is gone on with where a job is resumed.
"""

import re
from collections.abc import Iterator

from collectors.base import Item, Source
from collectors.reading.textlog import clean, is_text_log, seconds_to_ns
from collectors.training.step_lines import StepLines, Told

NAME = "llm_c"
TITLE = "llm.c log"
HELP = (
    "llm.c training log (standard output, Slurm's output file): step times, loss, MFU, the model and its batch; "
    "main.log: loss by step."
)

_NUMBER = r"([-+]?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|nan|inf))"
_STEP = re.compile(rf"step +(\d{{1,18}})/(\d{{1,18}}) \| (?:train )?loss {_NUMBER}(.*)", re.ASCII)
_NORM = re.compile(rf"\bnorm {_NUMBER}")
_RATE = re.compile(rf"\blr {_NUMBER}")
_TIME = re.compile(r"(?<![\w.])(\d{1,12}\.\d+) ms\b", re.ASCII)
_MFU = re.compile(r"(?<![\w.-])(\d{1,4}\.\d+)% (?:\w+ )?MFU\b", re.ASCII)
_VALIDATED = re.compile(rf"(?:^|\s)val loss {_NUMBER}\s*$")
_ROW = re.compile(r"\| ([A-Za-z][\w ()/#.-]{0,40}?) +\| (\S(?:.{0,200}\S)?) +\|\s*$", re.ASCII)
_COUNTS = {  # what the table calls it: what a run calls it
    "num_processes": "chips",
    "sequence length T": "sequence_length",
    "micro batch size B": "micro_batch",
    "num_parameters": "parameters",
    "train_num_batches": "planned_steps",
}
_DIMENSIONS = {
    "num_layers L": "layers",
    "num_heads NH": "heads",
    "channels C": "d_model",
    "padded_vocab_size Vp": "vocab",
}
_PRECISIONS = {"BF16": "bf16", "FP16": "fp16", "FP32": "fp32"}
_SNIFF = re.compile(rb"(?m)(?:^|\s)step +\d+/\d+ \| (?:train )?loss [-\d.naif]+ .{0,120}? ms\b")
_SHORT = re.compile(
    rf"(?:^|\s)s:(\d{{1,18}}) (trl|tel|eval):{_NUMBER}(?: lr:{_NUMBER})?(?: norm:{_NUMBER})?\s*$", re.ASCII
)
_EVALUATED = {"tel": "eval/loss", "eval": "eval/hellaswag"}
_SNIFF_SHORT = re.compile(rb"(?m)\A(?:s:\d+ (?:eval|tel):[-\d.naif]+\s+)*s:\d+ trl:[-\d.naif]+(?: lr:|\s*$)")
_SNIFF_TABLE = re.compile(rb"\| train data pattern +\| ")
NO_TIME = "main.log tells no time of a step: standard output does"
EXPECTED = "lines such as `step 1/100 | loss 11.01 (+nanz)| norm 15.1 (+nanz)| lr 8.57e-07 | 4.2 ms | 29.2% bf16 MFU`"


def sniff(source: Source) -> float:
    if not is_text_log(source):
        return 0.0
    return 0.9 if _SNIFF.search(source.head) or is_short(source) else 0.8 if _SNIFF_TABLE.search(source.head) else 0.0


def is_short(source: Source) -> bool:
    """Whether it is a `main.log`."""
    return _SNIFF_SHORT.search(source.head) is not None


def read(source: Source) -> Iterator[Item]:
    """Steps, evaluations and the job's settings. Raises InputError where the log holds none of them."""
    yield from _Log(source).read(source, EXPECTED)


class _Log(StepLines):
    def __init__(self, source: Source):
        super().__init__(source, NAME)
        self.dims: dict[str, object] = {}
        self.batch: int | None = None  # tokens of a step
        self.peak: float | None = None  # FLOP/s of a chip
        self.handlers = (("step ", self.step), ("val loss ", self.validation), ("| ", self.row), ("s:", self.short))

    def step(self, offset: int, line: str, whole: bool) -> None:
        match = _STEP.search(line)
        if not match:
            return
        prefix, step, rest = line[: match.start()], int(match[1]), match[4]
        timed = _TIME.search(rest)
        took = seconds_to_ns(float(timed[1]) / 1e3) if timed else None
        if took is None:
            self.tally.add("step lines", "they name a step but give no time for it", offset)
            return
        if (taken := self.taken(offset, prefix, step)) is None:
            return
        name, _, at, place = taken
        chips, share = self.facts.get("chips"), _MFU.search(rest)
        tokens = self.batch * 1e9 / took / chips if self.batch and took and isinstance(chips, int) else None
        flops = float(share[1]) / 100 * self.peak * took / 1e9 if share and self.peak else None
        self.enter(name, place, step, 1, at, Told(took, tokens, flops or None, float(match[3])))
        found = {n: float(m[1]) for n, m in (("norm", _NORM.search(rest)), ("lr", _RATE.search(rest))) if m}
        self.values(at, step, {n: (value, None) for n, value in found.items()})

    def short(self, offset: int, line: str, whole: bool) -> None:
        """A line of main.log."""
        match = _SHORT.search(line) if whole else None
        if match is None:
            return
        step, what, value = int(match[1]), match[2], float(match[3])
        prefix = line[: match.start()]
        if what != "trl":
            self.values(self.clock.time_ns(prefix, offset), step, {_EVALUATED[what]: (value, None)})
        elif (taken := self.taken(offset, prefix, step)) is not None:
            name, _, at, place = taken
            self.tally.add("steps", NO_TIME)
            self.enter(name, place, step, 1, at, Told(None, loss=value))
            rates = {n: (float(text), None) for n, text in (("lr", match[4]), ("norm", match[5])) if text}
            self.values(at, step, rates)

    def validation(self, offset: int, line: str, whole: bool) -> None:
        if (match := _VALIDATED.search(line)) and whole:
            at = self.clock.time_ns(line[: match.start()], offset)
            self.values(at, self.last_step, {"eval/loss": (float(match[1]), None)})

    def row(self, offset: int, line: str, whole: bool) -> None:
        """A row of the table before the steps."""
        if not whole or not (match := _ROW.search(line)):
            return
        name, value = match[1], clean(match[2])
        count = int(value) if re.fullmatch(r"\d{1,15}", value, re.ASCII) else None
        if name == "device":
            self.facts["chip"] = value
        elif name == "precision" and value in _PRECISIONS:
            self.facts["precision"] = _PRECISIONS[value]
        elif name == "peak TFlops" and re.fullmatch(r"\d{1,6}(?:\.\d+)?", value, re.ASCII):
            self.peak = float(value) * 1e12 or None
        elif name == "total batch size" and count:
            self.batch = count
        elif count and name in _COUNTS:
            self.facts[_COUNTS[name]] = count
        elif count and name in _DIMENSIONS:
            self.dims[_DIMENSIONS[name]] = count
        self._settle()

    def _settle(self) -> None:
        """What follows from several rows: GPT-2's shape, and sequences in a batch."""
        length, width = self.facts.get("sequence_length"), self.dims.get("d_model")
        if self.batch and isinstance(length, int):
            self.facts["global_batch"] = self.batch // length
        if len(self.dims) == len(_DIMENSIONS) and isinstance(width, int):
            self.facts["model"] = {**self.dims, "d_ff": 4 * width, "gated": False, "tied_embeddings": True}
