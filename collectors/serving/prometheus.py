"""What a serving engine tells at `/metrics`: Prometheus text, one scrape or many (see `exposition`).

    engine       one row a scrape and replica: vLLM's and SGLang's gauges and counters under their names of any version
    histograms   every bucket as it was exposed; labels that tell series of one name apart become part of the name
    scalars      every other sample, at most MAX_SCALAR_SERIES series
    facts        engine (how its metrics are named), model (label model_name), block_tokens and kv_cache_tokens
                 (vllm:cache_config_info)
Counters are kept as they stand, also where a restart set them back: who reads them knows
(`analyzers/serving/counters.py`). Replica: labels instance, pod, engine and dp_rank as far as they are there.
Ranks of one replica tell the same: the
first counts. Labels that split what one replica tells (SPLITS) are added up, unless one series tells of all. Any other
label of an engine's gauge (`cluster`) is of who tells: it is left out, or part of the replica where it differs.
Servers that answer in turn at one address, or whose scrapes were joined in one file, are replicas of their own (see
`in_turn`, `joined`).
Of vLLM computed tokens are those that it counts by source as such.
SGLang looks up every prompt token, so that its prompt tokens are its prefix queries. Hits of vLLM outside its device
(`external`) are hits. Of Triton the TensorRT-LLM backend's gauges are read, and its own counters by model as scalars.
`*_created` (when a counter began) is passed over. What NVIDIA's DCGM exporter tells of GPUs in the same scrape becomes
rows of them (`collectors.device.dcgm_rows`).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import inf, isfinite, nan
from typing import Any

from collectors.base import Fact, Item, Source
from collectors.device.dcgm_rows import Gpus
from collectors.reading.exposition import NO_ANSWER, SCRAPED_AT, Reader, Scrape, parsed
from collectors.reading.textlog import Buffer, Tally, clean, digits, fits
from collectors.serving.engine_metrics import (
    COLUMNS,
    ENGINE,
    HELPERS,
    KINDS,
    REALS,
    SHARES,
    SPLITS,
    Row,
    engine_of,
    metric_of,
)
from collectors.serving.in_turn import InTurn, in_turn
from errors import InputError

NAME = "prometheus"
TITLE = "Prometheus metrics"
HELP = "Prometheus text of a serving engine (/metrics of vLLM, SGLang and others): gauges, counters, histograms."

MAX_SCALAR_SERIES, MAX_SCALARS = 2_000, 2_000_000
MAX_HISTOGRAMS = 1_000
TRITON = "nv_inference_"
MAX_NAME = 200  # characters of a name with its labels
_TYPED = re.compile(
    rb"^# (?:TYPE [a-zA-Z_:][\w:.]* (?:counter|gauge|(?:gauge)?histogram|summary|untyped|unknown|info|stateset)\s*$"
    rb"|scraped_at \d)",
    re.MULTILINE,
)
_OURS = re.compile(
    rb"^(?:(?:vllm|sglang|lmdeploy|llamacpp):|trtllm_|nv_trt_llm_|nv_inference_)[a-z_]+(?:\{[^\n]*\})? +\S",
    re.MULTILINE,
)

_PER_POSITION = "vllm:spec_decode_num_accepted_tokens_per_pos"
_REPLICA = ("instance", "pod", "engine", "dp_rank")
_WHO = {
    *_REPLICA,
    "model_name",
    "model",
    "job",
    "namespace",
    "node",
    "container",
    "endpoint",
    "service",
    "tp_rank",
    "pp_rank",
    "moe_ep_rank",
    "engine_type",
    "pid",
    "prometheus",
    "prometheus_replica",
}  # who tells
_MAX_POSITIONS = 64


def sniff(source: Source) -> float:
    head = source.head
    if b"\0" in head:
        return 0.0
    if _OURS.search(head):
        return 0.95
    return 0.9 if _TYPED.search(head) or head.startswith((SCRAPED_AT.encode(), NO_ANSWER.encode())) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Engine samples, histograms, scalars, GPUs, facts. Raises InputError where there is no sample."""
    tally = Tally()
    several = in_turn(source)
    reader = Reader(source, tally, several is not None and several.together)
    yield from told(source, reader.scrapes(), tally, reader.help, several)


def told(
    source: Source, scrapes: Iterable[Scrape], tally: Tally, help: dict[str, str], several: InTurn | None = None
) -> Iterator[Item]:
    """The same of scrapes, whatever they were read from."""
    metrics = _Metrics(source, tally, help, several)
    order = -1
    for order, scrape in enumerate(scrapes):
        metrics.take(scrape, order)
        for buffer in metrics.buffers:
            yield from buffer.full()
    if order < 0:
        why = "; ".join(f"{lost.what}: {lost.reason}" for lost in tally.lost())
        raise InputError(
            f"no sample in it{f' ({why})' if why else ''}",
            where=source.name,
            expected='lines such as `vllm:num_requests_running{engine="0",model_name="llama"} 12`',
        )
    for buffer in metrics.buffers:
        yield from buffer.rest()
    if any(name.startswith(TRITON) for name in metrics._scalar_names):
        yield Fact("engine", "triton")
    elif metrics.engine_name is not None:
        yield Fact("engine", metrics.engine_name)
    for name, value in metrics.facts.items():
        yield Fact(name, value)
    if metrics.untold:
        tally.add("samples of an engine", metrics.untold)
    yield from tally.lost()


@dataclass(frozen=True, slots=True)
class _Series:
    """What a series is to us. `kind`: engine, position, bucket, sum, count, capacity, gpu, skip or
    scalar."""

    kind: str
    replica: str | None = None
    name: str = ""
    columns: tuple[str, ...] = ()
    le: float = nan
    part: tuple[str, ...] = ()  # values of the labels that split what a replica tells


@dataclass
class _Buckets:
    counts: dict[float, float] = field(default_factory=dict)
    total: float | None = None
    count: float | None = None


class _Metrics:
    def __init__(self, source: Source, tally: Tally, help: dict[str, str], in_turn: InTurn | None = None):
        self.source, self.tally, self.help = clean(source.name), tally, help
        self._in_turn, self._server = in_turn, ""  # servers that answer in turn, and which did just now
        self.engine = Buffer("engine", "ts_ns", "order", "replica", *COLUMNS, "accepted_per_position", "source")
        self.histograms = Buffer("histograms", "ts_ns", "order", "replica", "name", "le", "count", "total", "source")
        self.scalars = Buffer("scalars", "ts_ns", "name", "value", "source")
        self.gpus = Gpus(source, tally)
        self.buffers = (self.engine, self.histograms, self.scalars, self.gpus)
        self.facts: dict[str, Any] = {}
        self._known: dict[str, _Series] = {}
        self._bases: set[str] = set()  # names that have buckets
        self._bounds: dict[tuple[str | None, str], tuple[float, ...]] = {}
        self._scalar_names: set[str] = set()
        self._scalar_rows = 0
        self._model: str | None = None
        self._about: dict[str, str] = {}  # labels of who tells that are not known ones, and the first value of each
        self._differ: set[str] = set()  # those that have others too
        self._sampled = False
        self.engine_name: str | None = None

    def take(self, scrape: Scrape, order: int) -> None:
        """Rows of one scrape."""
        if self._in_turn:
            self._server = self._in_turn.server(scrape.values, scrape.ts_ns)
            self.tally.add("scrapes", self._in_turn.said)
        for text in scrape.values:
            if text not in self._known and "_bucket" in text:
                self._bases.add(text.partition("{")[0].strip().removesuffix("_bucket"))
        self._learn(text for text in scrape.values if text not in self._known)
        for text in scrape.values:
            if text not in self._known:
                self._known[text] = self._series(text)
        rows: dict[str | None, Row] = {}
        shapes: dict[tuple[str | None, str], _Buckets] = {}
        for text, value in scrape.values.items():
            self._enter(self._known[text], value, scrape.ts_ns, rows, shapes)
        self.gpus.end(scrape.ts_ns)
        for replica, found in rows.items():
            row = self._whole(found.whole())
            if row or found.positions:
                self._sampled = True
                cells = (*(row.get(c) for c in COLUMNS), _listed(found.positions), self.source)
                self.engine.add(scrape.ts_ns, order, self._of_server(replica), *cells)
        for (replica, name), shape in shapes.items():
            self._histogram(scrape.ts_ns, order, self._of_server(replica), name, shape)

    def _of_server(self, replica: str | None) -> str | None:
        """The replica with the server that answered, where several do in turn."""
        return " ".join(filter(None, (replica, self._server))) or None

    def _learn(self, texts: Iterable[str]) -> None:
        """Which labels of an engine's series say who tells. What was known of series is forgotten where it changes."""
        before = len(self._about), len(self._differ)
        for text in texts:
            name, labels = parsed(text)
            if metric_of(name, labels) in ENGINE:
                for key in set(labels) - _WHO - SPLITS - set(KINDS.values()):
                    if self._about.setdefault(key, labels[key]) != labels[key]:
                        self._differ.add(key)
        if before != (len(self._about), len(self._differ)):
            self._known.clear()

    def _whole(self, row: dict[str, Any]) -> dict[str, Any]:
        """Columns of `engine` from what several metrics tell."""
        helpers = {name: row.pop(name, None) for name in HELPERS}
        if helpers["external_hits"] is not None:
            row["prefix_hits"] = (row.get("prefix_hits") or 0) + helpers["external_hits"]
            row["prefix_queries"] = row.get("prefix_queries") or helpers["external_queries"]
        if helpers["host_hit_rate"] is not None:
            row["prefix_hit_rate"] = max(row.get("prefix_hit_rate") or 0.0, helpers["host_hit_rate"])
        if helpers["swapped"] and row.get("waiting") is not None:
            row["waiting"] += helpers["swapped"]  # put back by vLLM v0: they wait, as its log has it
        if helpers["seats"]:
            self.facts["max_num_seqs"] = helpers["seats"]
        used, most, tokens = helpers["used_blocks"], helpers["most_blocks"], helpers["block_tokens"]
        if row.get("kv_usage") is None and used is not None and most and used <= most:
            row["kv_usage"] = used / most
        if most and tokens and tokens < 1 << 20 and most < 1 << 40:
            self.facts |= {"block_tokens": tokens, "kv_cache_tokens": most * tokens}
        return row

    @property
    def untold(self) -> str | None:
        """What must be said where no metric of an engine was among those read."""
        if self._sampled or self.gpus.any:
            return None
        if any(name.startswith(TRITON) for name in self._scalar_names):
            return (
                "Triton's own counters tell requests, failures, queue and computing of each model (question "
                "serving), and nothing of what ran at a time, of tokens or of a cache"
            )
        return (
            "none of the metrics is a gauge or counter of an engine that is read (vLLM, SGLang, TGI, JetStream, "
            "TensorRT-LLM and its Triton backend, LMDeploy, llama.cpp): what ran, waited and was cached is not told"
        )

    def _enter(
        self,
        series: _Series,
        value: float,
        ts_ns: int | None,
        rows: dict[str | None, Row],
        shapes: dict[tuple[str | None, str], _Buckets],
    ) -> None:
        match series.kind:
            case "engine":
                row = rows.setdefault(series.replica, Row())
                for column in series.columns:
                    row.add(column, series.name, series.part, self._cell(series, column, value))
            case "position":
                if isfinite(value) and value >= 0:
                    rows.setdefault(series.replica, Row()).positions.setdefault(int(series.le), value)
            case "bucket":
                shapes.setdefault((series.replica, series.name), _Buckets()).counts.setdefault(series.le, value)
            case "sum" | "count":
                shape = shapes.setdefault((series.replica, series.name), _Buckets())
                side = "total" if series.kind == "sum" else "count"
                if getattr(shape, side) is None:
                    setattr(shape, side, value)
            case "capacity":
                if isfinite(value) and 0 < value < 1 << 50:
                    self.facts.setdefault("kv_cache_tokens", round(value))
            case "gpu":
                self.gpus.enter(series.name, value)
            case "scalar":
                self._scalar(series.name, value, ts_ns)

    def _series(self, text: str) -> _Series:
        name, labels = parsed(text)
        if self.gpus.place(text, name, labels):
            return _Series("gpu", name=text)
        bare = name.removesuffix("_total")
        replica = self._replica(labels)
        about = {key: value for key, value in labels.items() if key not in self._about}
        if "le" in labels and name.endswith("_bucket"):
            bound = _bound(labels["le"])
            if bound is None:
                self.tally.add("buckets", f"their bound is no number ({clean(labels['le'])[:40]!r})")
                return _Series("skip")
            return _Series("bucket", replica, _named(name.removesuffix("_bucket"), about), le=bound)
        for side in ("sum", "count"):
            if name.endswith(f"_{side}") and name.removesuffix(f"_{side}") in self._bases:
                return _Series(side, replica, _named(name.removesuffix(f"_{side}"), about))
        if name.endswith("_created"):
            return _Series("skip")
        if bare == _PER_POSITION and (place := labels.get("position", "")).isdecimal() and int(place) < _MAX_POSITIONS:
            return _Series("position", replica, le=float(place))
        if bare == "vllm:cache_config_info":
            self._config(labels)
            return _Series("skip")
        if name == "sglang:max_total_num_tokens":
            return _Series("capacity")
        if (metric := metric_of(name, labels)) in ENGINE:
            part = tuple(labels[key] for key in sorted(SPLITS & set(labels)))
            self.engine_name = self.engine_name or engine_of(name)
            return _Series("engine", replica, name, ENGINE[metric], part=part)
        return _Series("scalar", replica, _named(name, about, replica))

    def _replica(self, labels: dict[str, str]) -> str | None:
        """Who tells: the labels that name a replica; the model too where it is not the first one's."""
        parts = [labels[key] for key in _REPLICA if labels.get(key)]
        parts = [labels[key] for key in sorted(self._differ.intersection(labels)) if labels[key]] + parts
        if model := labels.get("model_name"):
            if self._model is None:
                self._model = model
                self.facts["model"] = clean(model)[:MAX_NAME]
            elif model != self._model:
                parts.insert(0, model)
        return clean(" ".join(parts))[:MAX_NAME] or None

    def _cell(self, series: _Series, column: str, value: float) -> float | int | None:
        if not isfinite(value) or (column == "prefix_hit_rate" and value == -1):  # that is: no prefix cache
            return None
        if value < 0 or (column in SHARES and value > 1.001):
            self.tally.add(f"samples of {series.name}", "below 0, or a share above 1")
            return None
        if column in SHARES or column in REALS:
            return value
        bare = series.name.removesuffix("_total")
        said = self.help.get(series.name) or self.help.get(bare, "")
        if bare.startswith("vllm:gpu_prefix_cache_") and "block" in said:
            if (tokens := self.facts.get("block_tokens")) is None:
                self.tally.add(f"samples of {series.name}", "they count blocks, and nothing says how long a block is")
                return None
            value *= tokens
        return round(value) if fits(round(value)) else None

    def _config(self, labels: dict[str, str]) -> None:
        size, blocks = (digits(labels.get(key, "")) for key in ("block_size", "num_gpu_blocks"))
        if size and size < 1 << 20:
            self.facts["block_tokens"] = size
            if blocks and blocks < 1 << 40:
                self.facts["kv_cache_tokens"] = size * blocks

    def _scalar(self, name: str, value: float, ts_ns: int | None) -> None:
        if self._server:
            bare, brace, labels = name.partition("{")
            name = f'{bare}{{server="{self._server}"{"," + labels if brace else "}"}'[:MAX_NAME]
        if name not in self._scalar_names and len(self._scalar_names) >= MAX_SCALAR_SERIES:
            self.tally.add("samples", f"of more than {MAX_SCALAR_SERIES:,} other series")
        elif self._scalar_rows >= MAX_SCALARS:
            self.tally.add("samples", f"more than {MAX_SCALARS:,} of other series")
        elif not isfinite(value):
            return  # the series stands for nothing at this moment
        else:
            self._scalar_names.add(name)
            self._scalar_rows += 1
            self.scalars.add(ts_ns, name, value, self.source)

    def _histogram(self, ts_ns: int | None, order: int, replica: str | None, name: str, shape: _Buckets) -> None:
        counts = dict(sorted(shape.counts.items()))
        if shape.count is not None:
            counts.setdefault(inf, shape.count)
        values = list(counts.values())
        if not counts or not all(isfinite(v) and v >= 0 and fits(round(v)) for v in values):
            self.tally.add(f"histogram {name}", "it has no buckets, or counts that are no numbers from 0")
            return
        if any(b < a for a, b in zip(values, values[1:], strict=False)):
            self.tally.add(f"histogram {name}", "a bucket holds fewer than the one below it: left out of this scrape")
            return
        bounds, key = tuple(counts), (replica, name)
        if key not in self._bounds and len(self._bounds) >= MAX_HISTOGRAMS:
            self.tally.add("histograms", f"more than {MAX_HISTOGRAMS:,} of them")
            return
        if self._bounds.setdefault(key, bounds) != bounds:
            self._bounds[key] = bounds
            self.tally.add(f"histogram {name}", "its bounds changed: what all scrapes have in common can be compared")
        total = shape.total if shape.total is not None and isfinite(shape.total) else None
        for le, count in counts.items():
            self.histograms.add(ts_ns, order, replica, name, le, round(count), total, self.source)


def _bound(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return None if value != value or value == -inf else value


def _named(name: str, labels: dict[str, str], replica: str | None = None) -> str:
    """The name with the labels that tell what it is about: `vllm:request_success_total{finished_reason="stop"}`."""
    about = [
        f'{key}="{value}"'
        for key, value in labels.items()
        if (key not in _WHO or key == "model" and name.startswith("nv_")) and key != "le"
    ]
    if replica is not None:
        about += [f'{key}="{labels[key]}"' for key in _REPLICA if labels.get(key)]
    return clean(name + (f"{{{','.join(about)}}}" if about else ""))[:MAX_NAME]


def _listed(positions: dict[int, float] | None) -> list[float] | None:
    """Values by position from 0; None where a position is missing."""
    if not positions or set(positions) != set(range(len(positions))):
        return None
    return [positions[n] for n in range(len(positions))]
