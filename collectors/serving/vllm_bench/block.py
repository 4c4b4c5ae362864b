"""The block that `vllm bench serve` and SGLang's `bench_serving` print: rows of `label (unit): value` between rules.

    ============ Serving Benchmark Result ============
    Successful requests:                     3000
    Mean TTFT (ms):                          251.04
    ==================================================

A block whose first line was cut away begins at `Successful requests:`. Labels are found anywhere in a line, in any
case, so that prefixes of logs do no harm. Milliseconds become seconds with the digits that were printed. A block with
`xxx` in place of a number is a template out of a guide, not a result.
"""

import re
from collections.abc import Iterator

from collectors.base import Item, Source
from collectors.reading.line_prefix import plain
from collectors.reading.textlog import Buffer, Tally, clean
from collectors.serving.serving_rows import Loads, count, milliseconds, number, rate, scaled, statistic

# All of these are for lines without space at their end.
BARE_START = re.compile(r"\bSuccessful requests:[ \t]+\d[\d,]*\s*$", re.IGNORECASE)
START = re.compile(r"=\s*Serving Benchmark Result\s*=", re.IGNORECASE)
_RULE = re.compile(r"={20}$")
_SECTION = re.compile(r"(?<!-)-{3,}+\s*+[A-Za-z][^:]*+(?<=---)$")
_TEMPLATE = re.compile(r"[xX#?]+(?:[.,][xX#?]+)*%?|\.{3,}|<[^>]*>|\{[^}]*\}")
_ANY_ROW = re.compile(r"(?P<label>[A-Za-z][A-Za-z0-9 .,()/%-]{0,80}?)\s{0,80}+:(?:\s++(?P<value>\S.*))?$")

_LATENCY = re.compile(
    r"\b(?P<which>mean|median|std|min|max|p\d{1,3}(?:\.\d+)?) "
    r"(?P<metric>ttft|tpot|itl|e2el|e2e latency|client queue time) \((?P<unit>ms|s)\):\s*(?P<value>\S+)",
    re.IGNORECASE,
)
METRICS = {
    "ttft": "ttft",
    "tpot": "tpot",
    "itl": "itl",
    "e2el": "e2e",
    "e2e latency": "e2e",
    "e2e_latency": "e2e",
    "client queue time": "queue",
    "client_queue_time": "queue",
}
_COLUMNS = {
    "successful requests": ("completed", count),
    "failed requests": ("failed", count),
    "maximum request concurrency": ("max_concurrency", count),
    "max request concurrency": ("max_concurrency", count),
    "request rate configured (rps)": ("requested_rate_per_s", rate),
    "traffic request rate": ("requested_rate_per_s", rate),
    "benchmark duration (s)": ("duration_s", number),
    "total input tokens": ("input_tokens", count),
    "total generated tokens": ("output_tokens", count),
    "request throughput (req/s)": ("request_rate_per_s", number),
    "request goodput (req/s)": ("goodput_per_s", number),
    "output token throughput (tok/s)": ("output_tokens_per_s", number),
    "peak output token throughput (tok/s)": ("peak_output_tokens_per_s", number),
    "peak concurrent requests": ("peak_concurrency", number),
    "total token throughput (tok/s)": ("total_tokens_per_s", number),
}
_STATS = {  # label: (metric, statistic, what its number is divided by)
    "concurrency": ("concurrency", "mean", 1),
    "accept length": ("acceptance_length", "mean", 1),
    "acceptance rate (%)": ("acceptance_rate", "mean", 100),
    "acceptance length": ("acceptance_length", "mean", 1),
    "drafts": ("drafts", "total", 1),
    "draft tokens": ("drafted_tokens", "total", 1),
    "accepted tokens": ("accepted_tokens", "total", 1),
    "slo attainment (%)": ("slo_attainment", "mean", 100),
}
_SCALARS = {  # of diffusion decoding, for which no table has a column: (name, unit)
    "committed throughput (tok/s)": ("diffusion_committed_throughput", "tokens/s"),
    "denoising steps per canvas": ("diffusion_steps_per_canvas", None),
    "committed per denoising step": ("diffusion_committed_per_step", "tokens"),
    "committed tokens": ("diffusion_committed_tokens", "tokens"),
    "denoising steps": ("diffusion_denoising_steps", None),
    "canvas positions evaluated": ("diffusion_canvas_positions", None),
    "rtfx (inverse real-time factor)": ("rtfx", None),
}
_UNUSED = {  # sums of other rows, and settings that no table has a column for
    "backend",
    "total input text tokens",
    "total input vision tokens",
    "total generated tokens (retokenized)",
    "input token throughput (tok/s)",
    "per-position acceptance (%)",
}
_LABELS = "|".join(map(re.escape, sorted({*_COLUMNS, *_STATS, *_SCALARS, *_UNUSED}, key=len, reverse=True)))
_ROW = re.compile(rf"(?<![\w(])(?P<label>{_LABELS}|position \d{{1,3}}):[ \t]*(?P<value>\S.*)?$", re.IGNORECASE)
_SETTING = re.compile(r"\b(?P<label>traffic request rate|maximum request concurrency):\s*(?P<value>\S+)", re.IGNORECASE)
_MODEL = re.compile(r"(?>.*?Namespace\().*?\bmodel='(?P<model>[^']{1,300})'")
_LONGEST = 2_000  # characters of a line that are looked at: rows are short
_NO_NUMBER = {"none", "not", "n/a", "na", "nan", "-"}  # "not set", and what an empty list gives


class Blocks:
    """Finds the blocks among lines and adds each to `loads` as it ends. `templates` and `read` count them."""

    def __init__(self, source: Source, tally: Tally, loads: Loads):
        self._name, self._tally, self._loads = clean(source.name), tally, loads
        self._scalars = Buffer("scalars", "name", "value", "unit", "source")
        self._rows: dict[str, str] | None = None  # label in lower case: value as printed
        self._latencies: dict[tuple[str, str], float | None] = {}
        self._start, self._template, self._unknown = 0, False, set[str]()
        self._settings: dict[str, str] = {}
        self.templates = self.read = 0
        self.model: str | None = None

    def see(self, offset: int, line: str) -> bool:
        """Look at a line; whether it belongs to a block."""
        if self._rows is None and "===" not in line and ":" not in line and "Namespace(" not in line:
            return False
        line = plain(line.rpartition("\r")[2][:_LONGEST]).rstrip()  # a progress bar may stand in front
        if START.search(line):
            if self._rows is not None:
                self._tally.add("results", "they have no end: another begins in them", self._start)
                self.end()
            self._rows, self._latencies, self._start, self._template = {}, {}, offset, False
        elif self._rows is None and BARE_START.search(line):
            self._rows, self._latencies, self._start, self._template = {}, {}, offset, False
            self._row(line, offset)
        elif self._rows is not None and "successful requests" in self._rows and BARE_START.search(line):
            self.end()  # another block of which the first line was cut away
            self.see(offset, line)
        elif self._rows is None:
            self._before(line)
            return False
        elif _RULE.search(line):
            self.end()
        else:
            return self._row(line, offset)
        return True

    def _before(self, line: str) -> None:
        """What is printed ahead of a block says what older versions leave out of it."""
        if found := _SETTING.search(line):
            self._settings[found["label"].lower()] = found["value"]
        elif found := _MODEL.match(line):
            self.model = clean(found["model"])

    def _row(self, line: str, offset: int) -> bool:
        if found := _LATENCY.search(line):
            value = self._value(found["value"], offset)
            seconds = milliseconds(value) if found["unit"].lower() == "ms" else number(value)
            self._latencies[METRICS[found["metric"].lower()], str(statistic(found["which"]))] = seconds
            if value is not None and (seconds is None or seconds < 0):
                self._tally.add("times in results", "they are no time", offset)
                self._latencies[METRICS[found["metric"].lower()], str(statistic(found["which"]))] = None
        elif found := _ROW.search(line):
            if found["value"]:
                value = self._value(found["value"].split()[0], offset)
                if value is not None:
                    self._rows.setdefault(found["label"].lower(), value)  # type: ignore[union-attr]
        elif (found := _ANY_ROW.search(line)) and found["value"] and not _SECTION.search(line):
            self._value(found["value"].split()[0], offset)
            if len(self._unknown) < 20 and found["label"] not in self._unknown and number(found["value"]) is not None:
                self._unknown.add(found["label"])
                self._tally.add("rows of results", f"nothing reads {clean(found['label'][:80])!r}", offset)
        else:
            return bool(_SECTION.search(line))
        return True

    def _value(self, text: str, offset: int) -> str | None:
        """The text of a number; None where there is none."""
        if _TEMPLATE.fullmatch(text):
            self._template = True
            return None
        text = text.removesuffix("%")
        if number(text) is None and rate(text) is None and text.lower() not in _NO_NUMBER:
            if not self._template and re.match(r"[\d.+-]", text):
                self._tally.add("numbers in results", "they cannot be read", offset)
            return None
        return text

    def end(self) -> None:
        """The block that is open, if any, is at its end."""
        if self._rows is None:
            return
        rows, self._rows = self._rows, None
        settings, self._settings = self._settings, {}
        if self._template:
            self.templates += 1
            self._tally.add("results", "they are templates: `xxx` stands in place of numbers", self._start)
            return
        columns = {}
        for label, (column, read) in _COLUMNS.items():
            text = rows.get(label, settings.get(label))
            if text is not None and (value := read(text)) is not None:
                columns.setdefault(column, value)
        if not rows.keys() - {"backend"} and not self._latencies:
            self._tally.add("results", "they have no rows", self._start)
            return
        if columns.get("duration_s", 1.0) <= 0:
            self._tally.add("durations", "zero or negative: the load took no time", self._start)
            del columns["duration_s"]
        stats = dict(self._latencies)
        for label, (metric, which, divisor) in _STATS.items():
            if (value := number(rows.get(label))) is not None:
                stats[metric, which] = scaled(value, divisor)
        for label, text in rows.items():
            if label.startswith("position ") and (value := number(text)) is not None:
                stats["acceptance_rate", f"per_position_{int(label[9:])}"] = scaled(value, 100)
        if columns.get("completed") == 0:
            self._tally.add(
                "loads", "no request was answered: the 0.0 printed for times and rates are no measurement", self._start
            )
        without_empty(stats, self._tally, self._start)
        stage = self._loads.add(columns, stats)
        for label, (name, unit) in _SCALARS.items():
            if (value := number(rows.get(label))) is not None:
                self._scalars.add(f"{stage}/{name}", value, unit, self._name)
        self.read += 1

    def rest(self) -> Iterator[Item]:
        """At the end of the input: what no table of loads has a column for. An open block counts as cut off."""
        if self._rows is not None and (self._rows or self._latencies):
            self._tally.add("the last result", "the input ends in the middle of it", self._start)
        self.end()
        yield from self._scalars.rest()


def without_empty(stats: dict[tuple[str, str], float | None], tally: Tally, offset: int | None = None) -> None:
    """Take out metrics of time of which every statistic is 0.0: printed where there was nothing to take a mean of."""
    for metric in {m for m, _ in stats if m in ("ttft", "tpot", "itl", "e2e")}:
        mine = [key for key in stats if key[0] == metric]
        if all(stats[key] == 0 for key in mine):
            tally.add(f"statistics of {metric}", "all 0.0: printed where nothing was measured", offset)
            for key in mine:
                del stats[key]
