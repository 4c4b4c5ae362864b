"""The log of a vLLM server: what the engine says of itself, about every ten seconds.

    engine       `Avg prompt throughput: ...` lines of v1 (Running, Waiting) and v0 (Running, Swapped, Pending; the
                 swapped wait too), for any device, with the `SpecDecoding metrics:` that follow on them. Preemptions
                 and draft tokens are printed for the time since the line before; they are added up here. Lines of
                 several engines together are one replica (fact `engines_aggregated`).
                 A prefix cache on the host (v0's CPU) or behind a connector (External) counts like that of the device:
                 of v0's two rates, each of its own look-ups, the larger; External is of what the device lacked.
    iterations   `Iteration(n): ...` lines. With speculation the generated tokens that were scheduled are one for each
                 request and the drafts. A duration under 0.1 ms is that of handing work over, not of a forward pass.
                 Lines tell the second in which one ended; within it they are put one after the other.
    scalars      `server_started`: when a server that had served was started anew, as often as the log tells it;
                 `server_start_s`: how long one took until the server listened, of long ones
    facts        of the start: version, model, parallel sizes, limits, room for the KV cache
Lines give month and day, and no year. It is that of a full date in the log's head or in the file's name; without one
ts_ns counts from the start of the unknown year, and the fact `engine_times` says "since start". Times are read as
UTC. Where what stands before the lines names pods or hosts, each is a server, and replicas are host/engine. A result
of `vllm bench serve` in the same file is read as `vllm_bench` does.
"""

import re
from collections.abc import Iterator
from typing import Any

from collectors.base import Fact, Item, Source
from collectors.reading.evidence import Evidence
from collectors.reading.line_prefix import host_prefix, plain
from collectors.reading.server_ran import ServerRan
from collectors.reading.textlog import (
    NS_PER_S,
    Buffer,
    Tally,
    clean,
    lines,
    mentions,
    shows,
    tail,
)
from collectors.serving.engine_clock import EngineClock
from collectors.serving.serving_rows import Loads, count, number, scaled
from collectors.serving.vllm_bench import BLOCK
from collectors.serving.vllm_bench.block import Blocks
from collectors.serving.vllm_requests import engine_facts
from errors import InputError
from runs.serving_schema import LONG_START_S, STARTED, STARTING

NAME = "vllm_log"
TITLE = "vLLM server log"
HELP = "Log of a vLLM server: running, waiting, KV cache, speculation, iterations; model and limits from its start."

_SNIFF = re.compile(
    rb"Avg prompt throughput: [\d.]+ tokens/s|\bIteration\(\d+\): \d+ context requests"
    rb"|Initializing an? (?:V\d )?LLM engine \(v|KV cache size: [\d,]+ tokens|vLLM API server version"
)
_SAMPLE = re.compile(
    r"(?:Engine (?P<engine>\d{1,6}): |(?P<engines>\d{1,6}) Engines Aggregated: )?"
    r"Avg prompt throughput: (?P<prompt>[\d.]+) tokens/s, "
    r"Avg generation throughput: (?P<output>[\d.]+) tokens/s(?P<rest>.*?)"
    r"(?=(?:Engine \d{1,6}: |\d{1,6} Engines Aggregated: )?Avg prompt throughput: |$)"
)
_NUMBERS = {
    name: re.compile(pattern)
    for name, pattern in {
        "running": r"\bRunning: (\d+) reqs",
        "waiting": r"\b(?:Waiting|Pending): (\d+) reqs",
        "swapped": r"\bSwapped: (\d+) reqs",
        "preemptions": r"\bPreemptions: (\d+)",
        "kv": r"\bKV cache usage: ([\d.]+)%",
        "prefix": r"(?<!External )\bPrefix cache hit rate: (?:GPU: )?([\d.]+)%",
        "external": r"\bExternal prefix cache hit rate: ([\d.]+)%",
    }.items()
}
_PREFIX_V0 = re.compile(r"\] Prefix cache hit rate: GPU: (?P<gpu>-?[\d.]+)%(?:, CPU: (?P<cpu>-?[\d.]+)%)?")
_SPECULATION = re.compile(r"SpecDecoding metrics: (?P<rest>.*)")
_SPECULATED = {
    name: re.compile(pattern)
    for name, pattern in {
        "length": r"Mean acceptance length: ([\d.]+)",
        "accepted": r"\bAccepted: (\d+) tokens",
        "drafted": r"\bDrafted: (\d+) tokens",
        "positions": r"Per-position acceptance rate: ([\d., ]*\d)",
    }.items()
}
_ITERATION = re.compile(  # for `match`; atomic: only the first such words are tried, others would fare no better
    r"(?>.*?(?P<from>(?<![A-Za-z])Iteration\((?P<n>\d{1,18})\): (?P<prefills>\d{1,18}) context requests, "
    r"(?P<prompt>\d{1,18}) context tokens, (?P<decodes>\d{1,18}) generation requests"
    r"(?:, (?P<tokens>\d{1,18}) generation tokens)?))"
    r".*?iteration elapsed time: (?P<ms>[\d.]+) ms(?:.*?KV cache usage: (?P<kv>[\d.]+)%)?"
)
_PREEMPTED = re.compile(r"\btotal_num_cumulative_preemption=(?P<total>\d+)|\bPreempting request \S+")
_PROCESS = re.compile(r"\bEngineCore_(?:DP)?(?P<n>\d{1,6})\b")
_CONFIG = re.compile(r"Initializing an? (?:V\d )?LLM engine \((?P<version>v?[^)\s]+)\) with config: (?P<rest>.*)")
_VERSION = re.compile(r"vLLM API server version (?P<version>\S+)")
_ARGUMENT = re.compile(
    r"'?\b(?P<name>model|dtype|(?:tensor|pipeline|data)_parallel_size|max_num_seqs|max_num_batched_tokens|max_model_len"
    r"|max_seq_len|block_size|kv_cache_dtype|num_speculative_tokens|quantization|enable_expert_parallel)'?(?:=|: )"
    r"'?(?P<value>[^',)}\s]+)"
)
_MEASURES = {  # name of the fact: pattern, what it counts in, which value counts where devices say different ones
    "kv_available_bytes": (
        re.compile(
            r"Available KV cache memory: ([\d.]+) ?GiB|reserved ([\d.]+) ?GiB memory for KV Cache"
            r"|reserved for KV Cache is ([\d.]+) ?GiB"
        ),
        1 << 30,
        min,
    ),
    "kv_cache_tokens": (re.compile(r"\bKV cache size: ([\d,]+) tokens"), 1, min),
    "kv_cache_blocks": (re.compile(r"num_gpu_blocks is: (\d+)|# (?:GPU|cuda|TPU) blocks: (\d+)"), 1, min),
    "weights_loaded_bytes": (re.compile(r"Model loading took ([\d.]+) ?GiB"), 1 << 30, max),
}
_TELLS = re.compile(rb"\bPreemptions: \d|\btotal_num_cumulative_preemption=\d|\bPreempting request \S")
_COLUMNS = (
    "ts_ns",
    "replica",
    "running",
    "waiting",
    "kv_usage",
    "prefix_hit_rate",
    "prompt_tokens_per_s",
    "output_tokens_per_s",
    "preemptions",
    "drafted",
    "accepted",
    "acceptance_length",
    "acceptance_per_position",
)
_LISTENS = "Starting vLLM API server"
_CONCURRENCY = re.compile(r"Maximum concurrency for ([\d,]+) tokens per request: ([\d.]+)x")
_BATCHED = re.compile(r"Chunked prefill is enabled with max_num_batched_tokens=(\d+)")
_START = (
    "LLM engine (",
    "non-default args",
    "args: Namespace(",
    "KV cache",
    "KV Cache",
    "API server version",
    "blocks",
    "Model loading took",
    "Maximum concurrency",
    "max_num_batched_tokens",
    _LISTENS,
)
_SAME = {"max_seq_len": "max_model_len"}
_NOT_SAID = ("None", "auto")  # an argument left to the engine: a later line says what came of it
_LONGEST = 1 << 16  # characters of a line that are looked at
_AROUND = 1000  # characters on either side of what is too long to be searched again and again
_LEAST_MS = 0.1
_MOST_STARTS = 10_000  # servers that were started and do not listen yet
_MOST = 5_000_000  # samples of one log: 18 months of ten seconds


def sniff(source: Source) -> float:
    return 0.92 if shows(source, _SNIFF) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Samples, iterations, facts and evidence. Raises InputError where no line is one of a vLLM server's."""
    log = _Log(source)
    for offset, line, _ in lines(source):
        if line:
            log.line(offset, plain(line[:_LONGEST]))
            yield from log.engine.full()
            yield from log.iterations.full()
            yield from log.evidence.full()
    yield from log.rest()


class _Log:
    def __init__(self, source: Source):
        self.name, self.tally = clean(source.name), Tally()
        # of its own: lines that tell why are judged later than those around them, and what their clock cannot read is
        # told of those
        self.evidence = Evidence(source, self.tally, EngineClock(source, Tally()))
        self.loads = Loads(source, "vllm_bench")
        self.blocks = Blocks(source, self.tally, self.loads) if BLOCK.search(source.head + tail(source)) else None
        self.clock = EngineClock(source, self.tally)
        self.ran = ServerRan(source)
        self.iterations = Buffer(
            "iterations",
            "order",
            "replica",
            "start_ns",
            "dur_ns",
            "prefill_requests",
            "prefill_tokens",
            "decode_requests",
            "decode_tokens",
            "drafted_tokens",
            "kv_usage",
            "source",
        )
        self.engine = Buffer("engine", "order", *_COLUMNS, "source")
        self.starts = Buffer("scalars", "ts_ns", "name", "value", "source")  # of servers that had served before
        self.begun: dict[str | None, int] = {}  # when servers that do not listen yet were started, by host
        self.start_clock = EngineClock(source, Tally())
        self.sample: dict[str, Any] | None = None  # the last one, to which a line after it may add
        self.sampled = 0
        # a log that never tells of preemptions may be one that cannot
        self.counted = mentions(source, b"reempt", _TELLS)
        self.arguments: dict[str, str] = {}
        self.facts: dict[str, Any] = {}
        self.printed: dict[str | None, int] = {}  # preemptions so far, by replica, of the samples' own count
        self.warned: dict[str | None, int] = {}  # preemptions so far, of warnings, by host
        self.drafts: dict[str | None, list[int]] = {}
        self.ended: dict[str | None, int] = {}  # when the last iteration of each replica ended
        self.iterated = 0

    def line(self, offset: int, line: str) -> None:
        if "Avg prompt throughput" in line:
            for match in _SAMPLE.finditer(line):
                self._sample(match, _before(line, match.start()), offset)
        elif "Iteration(" in line and (match := _ITERATION.match(line)):
            self._iteration(match, line[: match.start("from")], offset)
        elif "SpecDecoding metrics" in line and (match := _SPECULATION.search(line)):
            self._speculation(match["rest"], self.clock.time_ns(line[: match.start()], offset))
        elif "reempt" in line and (match := _PREEMPTED.search(line)):
            host, total = host_prefix(line[: match.start()]), match["total"] or ""
            told = int(total or 0) if len(total) < 19 else 0
            self.warned[host] = max(self.warned.get(host, 0) + 1, told)
        elif (match := _PREFIX_V0.search(line)) and self.sample is not None:
            known = [s for s in (_share(match["gpu"]), _share(match["cpu"])) if s is not None]
            self.sample["prefix_hit_rate"] = max(known, default=None)
        elif self.blocks is None or not self.blocks.see(offset, line):  # a server may go on writing amid a block
            if any(word in line for word in _START):
                self._start(line)
                self._listens(line, offset)
                if self.sampled and (match := _VERSION.search(line)):
                    self._started(self.clock.time_ns(line[: match.start()], offset))
            self.evidence.see(offset, line)

    def _started(self, ns: int | None) -> None:
        """A server that had served was started anew."""
        if ns is not None:
            self.starts.add(ns, STARTED, ns / NS_PER_S, self.name)

    def _listens(self, line: str, offset: int) -> None:
        """How long it took from a server's first line until it listened."""
        match = _VERSION.search(line)
        end = match.start() if match else line.find(_LISTENS)
        if end < 0 or (ns := self.start_clock.time_ns(line[:end], offset)) is None:
            return
        host = host_prefix(line[:end])
        if match and len(self.begun) < _MOST_STARTS:
            self.begun[host] = ns
        elif (took := (ns - self.begun.pop(host, ns)) / NS_PER_S) >= LONG_START_S:
            self.starts.add(ns, STARTING, took, self.name)

    def _sample(self, match: re.Match, before: str, offset: int) -> None:
        ts_ns, host = self.clock.time_ns(before, offset), host_prefix(before)
        found = {k: number(m[1]) if (m := p.search(match["rest"])) else None for k, p in _NUMBERS.items()}
        replica = _replica(host, match["engine"])
        self.ran.see(ts_ns, host, replica, match.string)
        if match["engines"]:
            self.facts["engines_aggregated"] = max(self.facts.get("engines_aggregated", 1), int(match["engines"]))
        if found["preemptions"] is not None:
            self.printed[replica] = self.printed.get(replica, 0) + (count(found["preemptions"]) or 0)
        waiting = [count(found[k]) for k in ("waiting", "swapped") if found[k] is not None]
        if found["running"] is None:
            self.tally.add("engine lines", "cut off", offset)
        self._next(
            {
                "ts_ns": ts_ns,
                "replica": replica,
                "running": count(found["running"]),
                "waiting": None if None in waiting or not waiting else sum(n for n in waiting if n is not None),
                "kv_usage": _share(found["kv"]),
                "prefix_hit_rate": _found(found["prefix"], found["external"]),
                "prompt_tokens_per_s": number(match["prompt"]),
                "output_tokens_per_s": number(match["output"]),
                "preemptions": max(self.warned.get(host, 0), self.printed.get(replica, 0)) if self.counted else None,
            }
        )

    def _next(self, sample: dict[str, Any] | None) -> None:
        """Begin a sample: nothing adds to the one before any more."""
        if self.sample is not None:
            self.engine.add(self.sampled - 1, *(self.sample.get(c) for c in _COLUMNS), self.name)
        if sample is not None:
            if self.sampled >= _MOST:
                raise InputError(f"more than {_MOST:,} samples", where=self.name, expected="the log of one server")
            self.sampled += 1
        self.sample = sample

    def _speculation(self, rest: str, ts_ns: int | None) -> None:
        """Belongs to the sample just before it; on its own where there is none, or that has its own already."""
        found = {k: m[1] if (m := p.search(rest)) else None for k, p in _SPECULATED.items()}
        sample = self.sample
        if sample is None or "acceptance_length" in sample:
            sample = {"ts_ns": ts_ns, "replica": sample["replica"] if sample else None}
            self._next(sample)
        totals = self.drafts.setdefault(sample["replica"], [0, 0])
        for i, name in enumerate(("drafted", "accepted")):
            totals[i] = min(totals[i] + (count(found[name]) or 0), 1 << 62)
        positions = [number(p) for p in found["positions"].split(",")] if found["positions"] else None
        sample |= {
            "drafted": totals[0],
            "accepted": totals[1],
            "acceptance_length": number(found["length"]),
            "acceptance_per_position": positions,
        }

    def _iteration(self, match: re.Match, before: str, offset: int) -> None:
        prompt, decodes = int(match["prompt"]), int(match["decodes"])
        tokens = None if match["tokens"] is None else int(match["tokens"])
        ms = number(match["ms"])
        if ms is not None and ms < _LEAST_MS and prompt + decodes:
            self.tally.add(
                "durations of iterations",
                f"shorter than {_LEAST_MS} ms: the engine timed handing the work over, not the work",
                offset,
            )
            ms = None
        dur_ns = None if ms is None or ms > 1e12 else round(ms * 1e6)
        end_ns = self.clock.time_ns(before, offset)
        drafted = None if tokens is None or tokens < decodes else tokens - decodes
        process, host = _PROCESS.search(before), host_prefix(before)
        replica = _replica(host, process and process["n"])
        self.ran.see(end_ns, host, replica, match.string)
        self.iterations.add(
            int(match["n"]),
            replica,
            self._begin(replica, end_ns, dur_ns),
            dur_ns,
            int(match["prefills"]),
            prompt,
            decodes,
            decodes if drafted == 0 else None,
            drafted,
            _share(match["kv"]),
            self.name,
        )
        self.iterated += 1

    def _begin(self, replica: str | None, end_ns: int | None, dur_ns: int | None) -> int | None:
        """When an iteration began: its line tells the second of its end, and it follows on the one before."""
        if end_ns is None or dur_ns is None:
            return None
        begin = max(end_ns - dur_ns, min(self.ended.get(replica, 0), end_ns + NS_PER_S - dur_ns))
        self.ended[replica] = begin + dur_ns
        return begin

    def _start(self, line: str) -> None:
        if match := _CONFIG.search(line):
            self.facts.setdefault("engine_version", clean(match["version"].removeprefix("v"))[:100])
            self._arguments(match["rest"])
            if "num_spec_tokens=" in line and (tokens := re.search(r"num_spec_tokens=(\d{1,6})", line)):
                self.arguments["num_speculative_tokens"] = tokens[1]
        elif "non-default args" in line:
            self._arguments(line.partition("non-default args")[2])
        elif "args: Namespace(" in line:
            self._arguments(line.partition("args: Namespace(")[2])
        elif match := _VERSION.search(line):
            self.facts.setdefault("engine_version", clean(match["version"].removeprefix("v"))[:100])
        elif match := _CONCURRENCY.search(line):
            tokens, sequences = count(match[1]), number(match[2])
            if tokens and sequences:
                self.facts["max_concurrency_at"] = {"tokens": tokens, "sequences": sequences}
        elif match := _BATCHED.search(line):
            self.arguments["max_num_batched_tokens"] = match[1]
        for name, (pattern, unit, choose) in _MEASURES.items():
            if (match := pattern.search(line)) and (value := number(next(g for g in match.groups() if g))):
                found = round(value * unit)
                if found < 1 << 62:
                    self.facts[name] = choose(self.facts.get(name, found), found)

    def _arguments(self, text: str) -> None:
        # A draft model has arguments of its own, in brackets.
        for match in _ARGUMENT.finditer(re.sub(r"SpeculativeConfig\([^)]{0,4000}+\)", "", text)):
            if match["value"] not in _NOT_SAID:
                self.arguments.setdefault(_SAME.get(match["name"], match["name"]), match["value"])

    def rest(self) -> Iterator[Item]:
        if not (self.sampled or self.iterated or self.facts or self.arguments or (self.blocks and self.blocks.read)):
            raise InputError(
                "no line of a vLLM server's engine in it",
                where=self.name,
                expected="lines such as `Engine 000: Avg prompt throughput: 98.1 tokens/s, ..., Running: 3 reqs`",
            )
        self._next(None)
        yield from self.engine.rest()
        yield from self.iterations.rest()
        yield from self.evidence.rest()
        yield from self.starts.rest()
        if self.blocks is not None:
            scalars = list(self.blocks.rest())
            yield from self.loads.rows()
            yield from scalars
        yield Fact("engine", "vllm")
        if isinstance(model := self.arguments.get("model"), str):
            yield Fact("model", clean(model)[:300])
        for name, value in self.facts.items():
            yield Fact(name, value)
        engines = count(self.arguments.get("data_parallel_size")) or 1, self.facts.get("engines_aggregated", 1)
        for said in engine_facts({k: count(v) if v.isdigit() else v for k, v in self.arguments.items()}):
            yield said
            if said.name == "chips":
                yield from self.ran.facts(said.value, *engines)
        if self.clock.yearless:
            yield Fact("engine_times", "since start")
        yield from self.tally.lost()


def _before(line: str, start: int) -> str:
    """What stands before a message. Of much, the beginning and the end: a line may hold hundreds of messages."""
    return line[:start] if start <= 2 * _AROUND else line[:_AROUND] + line[start - _AROUND : start]


def _replica(host: str | None, engine: str | None) -> str | None:
    """The engine's number, behind the host where the lines name one; None where they name neither."""
    parts = [host, None if engine is None else str(int(engine))]
    return "/".join(part for part in parts if part is not None) or None


def _found(local: object, external: object) -> float | None:
    """The share of looked-up prompt tokens found in the cache or outside it; the second is of what the first lacked."""
    here, there = _share(local), _share(external)
    if here is None or there is None:
        return there if here is None else here
    return here + (1 - here) * there


def _share(percent: object) -> float | None:
    found = number(percent)
    return None if found is None or not 0 <= found <= 100 else scaled(found, 100)
