"""What Prometheus and its relatives answer to queries: samples of many scrapes, series by series.

    {"status":"success","data":{"resultType":"matrix","result":[{"metric":{...},"values":[[1700000000.5,"12"],...]}]}}
        of /api/v1/query_range and /api/v1/query (Prometheus, Thanos, Mimir, VictoriaMetrics); one answer or several,
        also the list of series alone, as clients in Python keep it
    {"metric":{"__name__":...},"values":[12,...],"timestamps":[1700000000500,...]}
        a line each: VictoriaMetrics' /api/v1/export
    vllm:num_requests_running{engine="0"} =>
    12 @[1700000000.5]
        what `promtool query range` and `instant` print
    {"results":{"A":{"frames":[{"schema":{...},"data":{"values":[[1700000000500,...],[12,...]]}}]}}}
        of Grafana's /api/ds/query, and the data of one of its panels (`grafana_frames`)

Files of one folder are one input together, as where each was asked for one metric (`ingesting.folders`). All samples
of one time are one scrape, whose series are those of `serving.prometheus`, which makes rows of them: so an
answer tells what the scrapes told that it was made of. Times are to the millisecond, as Prometheus keeps them.
Series without a name are what a query computed (`rate(...)`, `sum`, `histogram_quantile`): whatever they were made of,
they count nothing, and become scalars called QUERIED with all their labels. Native histograms are told as lost.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from collectors.base import Item, Source
from collectors.ingesting.folders import AnswerFolder
from collectors.ingesting.unpack import SafeSource
from collectors.reading.as_far import BROKEN
from collectors.reading.documents import JSON_LIMIT
from collectors.reading.exposition import Scrape, parsed
from collectors.reading.query_answer import is_answer, is_json
from collectors.reading.textlog import Tally, clean, lines
from collectors.serving import prometheus
from collectors.serving.grafana_frames import is_frame, series_of
from errors import InputError

NAME = "prometheus_json"
TITLE = "Prometheus query answer"
HELP = (
    "Answers of Prometheus' HTTP API, VictoriaMetrics' export, promtool's output, data frames of Grafana: series of "
    "metrics over time."
)

MAX_SAMPLES = 20_000_000  # held until they are in order
QUERIED = "query result"
EXPECTED = 'an answer such as {"status":"success","data":{"resultType":"matrix","result":[{"metric":{...},"values":...'
_PRINTED = re.compile(rb"^[^\n]{0,4000}? =>(?:\r?\n| )\S{1,40} @\[\d{1,13}(?:\.\d{1,9})?\]\r?$", re.MULTILINE)
_HEAD = re.compile(r"(?P<series>\S.*|) =>(?: (?P<value>\S{1,40}) @\[(?P<at>[\d.]{1,24})\])?")
_POINT = re.compile(r"(?P<value>\S{1,40}) @\[(?P<at>[\d.]{1,24})\]")
_BETWEEN = re.compile(r"[\s,\]\x1e\ufeff]*")
_NEXT = re.compile(r"\n[{\[]")
_KEYS = ("values", "value", "timestamps", "histograms", "histogram")
_MS = 1e11  # a larger time is of milliseconds
_MOST_MS = 9.2e12  # 64 bits hold it in ns


def sniff(source: Source) -> float:
    head = source.head
    if b"\0" in head:
        return 0.0
    if is_json(head):
        return 0.95 if is_answer(head) else 0.0
    return 0.96 if b" @[" in head and _PRINTED.search(head) else 0.0  # surer than of an exposition, which it resembles


def read(source: Source) -> Iterator[Item]:
    """Rows as of scrapes. Raises InputError where the server answered with an error, or with nothing."""
    tally = Tally()
    told = _Told(tally)
    if isinstance(source, AnswerFolder):
        for name, path in source.answers:
            told.one_of_several(SafeSource(path, name))
    elif is_json(source.head):
        told.json(source)
    else:
        told.printed(source)
    if not told.samples:
        why = "; ".join(f"{lost.what}: {lost.reason}" for lost in tally.lost())
        raise InputError(
            told.error or f"the query was answered with no sample{f' ({why})' if why else ''}",
            where=source.name,
            expected=EXPECTED,
            advice="Does the metric have samples in the time that was asked for?" if not told.error else "",
        )
    yield from prometheus.told(source, told.scrapes(), tally, {})


@dataclass
class _Told:
    """The series of a file: their texts, as an exposition would write them, with times (ms) and values."""

    tally: Tally
    error: str = ""
    samples: int = 0
    _numbers: dict[str, int] = field(default_factory=dict)
    _parts: list[tuple[int, np.ndarray, np.ndarray]] = field(default_factory=list)

    def one_of_several(self, source: SafeSource) -> None:
        """The answers of one of the files that are read together: one that cannot be read leaves the others."""
        try:
            self.json(source)
            why = source.broken_off
        except (InputError, *BROKEN) as e:
            why = e.what if isinstance(e, InputError) else str(e) or type(e).__name__
        if why:
            self.tally.add(clean(source.name), why)

    def json(self, source: Source) -> None:
        """All answers of a file; of one that is cut off the series before that."""
        with source.as_far() as f:
            raw = f.read(JSON_LIMIT + 1)
        if len(raw) > JSON_LIMIT:
            raise InputError(
                f"longer than {JSON_LIMIT:,} bytes",
                where=source.name,
                expected=EXPECTED,
                advice="Ask for less time at once, or for fewer metrics, and ingest the answers together.",
            )
        text = raw.decode("utf-8", "replace")
        del raw
        decoder = json.JSONDecoder(object_hook=self._object, parse_int=float)  # of any number of digits
        at = 0
        while (at := _match_end(_BETWEEN, text, at)) < len(text):
            try:
                document, at = decoder.raw_decode(text, at)
            except RecursionError:
                self.tally.add("answers", "JSON with too many levels: the series before that are read", at)
                return
            except json.JSONDecodeError as e:
                following = _NEXT.search(text, max(e.pos, at))
                cut = "the file ends in the middle of it" if following is None else "it is not valid JSON"
                self.tally.add("answers", f"{cut}: the series before that are read", at)
                at = following.start() if following else len(text)
            else:
                self._document(document)

    def printed(self, source: Source) -> None:
        """The same of what promtool prints."""
        series, times, values = "", list[float](), list[float]()
        for offset, line, _ in lines(source):
            if match := _POINT.fullmatch(line):
                self._pair([match["at"], match["value"]], times, values)
            elif match := _HEAD.fullmatch(line):
                self._add(series, times, values)
                series, times, values = self._named(*parsed(match["series"])), [], []
                if match["value"]:
                    self._pair([match["at"], match["value"]], times, values)
            elif line and not line.isspace():
                self.tally.add("lines", "they are no series or sample as promtool prints them", offset)
        self._add(series, times, values)

    def scrapes(self) -> Iterator[Scrape]:
        """What was told at each time, in their order."""
        texts = list(self._numbers)
        series = np.concatenate([np.full(len(times), number, np.int32) for number, times, _ in self._parts])
        at = np.concatenate([times for _, times, _ in self._parts])
        values = np.concatenate([values for *_, values in self._parts])
        self._parts = []
        order = np.argsort(at, kind="stable")
        series, at, values = series[order], at[order], values[order]
        ends = [*(np.flatnonzero(np.diff(at)) + 1).tolist(), len(at)]
        begin = 0
        for end in ends:
            scrape = Scrape(int(at[begin]) * 1_000_000, marked=True)
            told = scrape.values
            for number, value in zip(series[begin:end].tolist(), values[begin:end].tolist(), strict=True):
                before = told.setdefault(texts[number], value)
                if before != value and before == before:
                    self.tally.add("samples", "their series is there twice at one time; the first counts")
            yield scrape
            begin = end

    def _object(self, found: dict[str, Any]) -> Any:
        """An object of the JSON: a series is taken in and let go, so that it stays in memory as numbers alone."""
        metric = found.get("metric")
        if is_frame(found):
            return self._frame(found)
        if not isinstance(metric, dict) or not any(key in found for key in _KEYS):
            return found
        if "histograms" in found or "histogram" in found:
            self.tally.add("series", "native histograms are not read: ask for `..._bucket`, `_sum` and `_count`")
        labels = {key: value for key, value in metric.items() if isinstance(value, str)}
        times, values = list[float](), list[float]()
        pairs = found.get("values", [found["value"]] if "value" in found else [])
        stamps = found.get("timestamps")
        if isinstance(stamps, list) and isinstance(pairs, list):
            if len(stamps) != len(pairs):
                self.tally.add("samples", "more times than values, or fewer", count=abs(len(stamps) - len(pairs)))
            pairs = [*map(list, zip(stamps, pairs, strict=False))]
        for pair in pairs if isinstance(pairs, list) else ():
            self._pair(pair, times, values)
        self._add(self._named("", labels), times, values)
        return None

    def _frame(self, found: dict[str, Any]) -> None:
        """A data frame of Grafana's."""
        told = False
        for series in series_of(found):
            told = True
            times, values = list[float](), list[float]()
            for pair in series.points:
                self._pair(pair, times, values)
            self._add(self._named(series.metric, series.labels), times, values)
        if not told:
            self.tally.add("frames", "they hold no number by time, as tables and logs do not")

    def _pair(self, pair: Any, times: list[float], values: list[float]) -> None:
        """A time and a value, as whichever of them wrote these."""
        try:
            at, value = pair
            if isinstance(at, bool) or isinstance(value, bool):
                raise ValueError
            at, value = float(at), float("nan" if value is None else value)
        except (TypeError, ValueError, OverflowError):
            self.tally.add("samples", "they are no time and number")
            return
        ms = at if at >= _MS else at * 1e3
        if 0 <= ms < _MOST_MS:
            times.append(ms)
            values.append(value)
        else:
            self.tally.add("samples", "their time is none")

    def _add(self, text: str, times: list[float], values: list[float]) -> None:
        if self.samples + len(times) > MAX_SAMPLES:
            self.tally.add("samples", f"more than {MAX_SAMPLES:,} of them", count=len(times))
        elif times:
            number = self._numbers.setdefault(text, len(self._numbers))
            self._parts.append((number, np.rint(np.array(times)).astype(np.int64), np.array(values)))
            self.samples += len(times)

    def _named(self, name: str, labels: Mapping[str, str]) -> str:
        """A series as an exposition writes it; one without a name as a name that holds its labels."""
        name = (name or labels.get("__name__", "")).replace("{", "(")
        told = ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items() if key != "__name__")
        if name:
            return f"{name}{{{told}}}" if told else name
        self.tally.add(
            "series", f"a query made them of others, and the answer names no metric: kept as scalars called {QUERIED!r}"
        )
        return f"{QUERIED}({told})".replace("{", "(") if told else QUERIED

    def _document(self, document: Any) -> None:
        """What an answer tells beside its series."""
        if not isinstance(document, dict):
            return
        if document.get("status") == "error":
            said = " ".join(clean(str(document.get(key, "")))[:300] for key in ("errorType", "error")).strip()
            self.error = self.error or f"the server answered with an error ({said or 'it does not say which'})"
            self.tally.add("answers", self.error)
        for key in ("warnings", "infos"):
            for said in document[key] if isinstance(document.get(key), list) else ():
                self.tally.add("answers", f"their server says: {clean(str(said))[:300]}")
        if document.get("isPartial") is True:
            self.tally.add("answers", "their server says that they are partial: a part of its storage gave no answer")
        data = document.get("data")
        kind, result = (data.get("resultType"), data.get("result")) if isinstance(data, dict) else (None, None)
        if kind == "scalar" and isinstance(result, list):
            times, values = list[float](), list[float]()
            self._pair(result, times, values)
            self._add(self._named("", {}), times, values)
        elif kind not in (None, "matrix", "vector", "scalar"):
            self.tally.add("answers", f"their result is a {clean(str(kind))[:40]}, which holds no series")


def _match_end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
