"""The log of an SGLang server: its `Prefill batch` lines, one for each, and `Decode batch` lines, one in forty or so.

    engine   running, waiting (#queue-req), kv_usage (token usage; of hybrid models the larger of full and swa), from
             both; from Prefill lines the prompt tokens computed (#new-token) and found (#cached-token), added up, and
             the input throughput; from Decode lines the output throughput and the accept len, which counts the sure
             token. Retracted requests are preemptions, added up. `#running-req` of a Prefill line counts those that
             decode; those whose prompt the batch reads (#new-seq) run as well.
    scalars  `server_started`: when a server that had served was started anew, as often as the log tells it
    facts    of the start: model, parallel sizes, limits, room for the KV cache. How many requests may run is what the
             scheduler of a rank says of itself; the argument is of all ranks that share attention. A draft is as long
             as `speculative_num_steps`: `speculative_num_draft_tokens` counts the sure token at its root too.
With data parallelism each DP rank is a replica, behind the host where what stands before the lines names one. Of
tensor and pipeline ranks only the first counts: the others tell of the same batches. Times without a zone are read as
UTC.
"""

import re
from collections.abc import Iterator
from typing import Any, Literal

from collectors.base import Fact, Item, Source
from collectors.reading.evidence import Evidence
from collectors.reading.line_prefix import Clock, bare, host_prefix, plain
from collectors.reading.server_ran import ServerRan
from collectors.reading.textlog import NS_PER_S, Buffer, Tally, clean, lines, mentions, shows
from collectors.serving.serving_rows import count, number
from errors import InputError
from runs.serving_schema import STARTED

NAME = "sglang_log"
TITLE = "SGLang server log"
HELP = "Log of an SGLang server: Prefill batch and Decode batch lines; model and limits from its start."

_SNIFF = re.compile(
    rb"\b(?:Prefill|Decode) batch[^\n]{0,20}#(?:new-seq|running-req)|server_args=ServerArgs\(model_path="
)
_BATCH = re.compile(r"\b(?P<kind>Prefill|Decode) batch(?: \[\d+\])?[.,]? *(?=#)(?P<rest>.*)")
_FIELD = re.compile(  # a name begins once in a run of letters, spaces and hyphens
    r"(?:(?<![A-Za-z -])[ -]*+(?=[A-Za-z])|(?=#))"
    r"(?P<name>[#A-Za-z][A-Za-z -]{0,40}(?: \(token/s\))?): (?P<value>[\d.]+)"
)
_RANK = re.compile(r"\b(?P<axis>DP|TP|PP)(?P<n>\d{1,5})\b")
_RETRACTED = re.compile(r"Retract requests\..{0,200}?#retracted_reqs: (?P<n>\d{1,9})")
_TELLS = re.compile(rb"Retract requests\.[^\n]{0,200}?#retracted_reqs: \d")
_ARGUMENTS = re.compile(r"server_args=ServerArgs\((?P<rest>.*)")
_ARGUMENT = re.compile(
    r"\b(?P<name>model_path|tp_size|dp_size|pp_size|ep_size|max_running_requests|chunked_prefill_size|context_length"
    r"|kv_cache_dtype|page_size|speculative_num_draft_tokens|speculative_num_steps|enable_dp_attention)"
    r"='?(?P<value>[^',)]+)"
)
_POOL = re.compile(r"\bmax_total_num_tokens=(?P<tokens>\d{1,15})\b")
_SEATS = re.compile(r"\bmax_running_requests=(?P<seats>\d{1,9})\b")
_ALLOCATED = re.compile(
    r"KV Cache is allocated\..{0,400}?K(?: size)?:? (?P<k>[\d.]+) GB, V(?: size)?:? (?P<v>[\d.]+) GB"
)
_FACTS = {
    "tp_size": "tensor_parallel_size",
    "dp_size": "data_parallel_size",
    "pp_size": "pipeline_parallel_size",
    "ep_size": "expert_parallel_size",
    "max_running_requests": "max_num_seqs",
    "chunked_prefill_size": "chunked_prefill_tokens",
    "context_length": "max_model_len",
    "page_size": "block_size",
}
_USAGE = ("token usage", "full token usage", "swa token usage")
_STAMPED = re.compile(r"\[?20\d\d-\d\d-\d\d[ T]\d\d:")
_HOSTS = 10_000  # of which the last line that tells a time is held
_HEAD = 200  # characters in which a line says when it was written
_LONGEST = 1 << 16  # characters of a line that are looked at
_MOST = 10_000_000  # lines of batches


def sniff(source: Source) -> float:
    return 0.92 if shows(source, _SNIFF) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Samples, facts and evidence. Raises InputError where no line is one of an SGLang server's."""
    log = _Log(source)
    for offset, line, _ in lines(source):
        if line:
            log.line(offset, plain(line[:_LONGEST]))
            yield from log.rows.full()
            yield from log.evidence.full()
    yield from log.rest()


class _Log:
    def __init__(self, source: Source):
        self.name, self.tally = clean(source.name), Tally()
        self.clock, self.ran = Clock(source, self.tally), ServerRan(source)
        self.evidence = Evidence(source, self.tally, self.clock)
        self.rows = Buffer(
            "engine",
            "order",
            "ts_ns",
            "replica",
            "running",
            "waiting",
            "kv_usage",
            "prefix_hits",
            "prefix_queries",
            "prompt_tokens",
            "prompt_tokens_per_s",
            "output_tokens_per_s",
            "preemptions",
            "acceptance_length",
            "source",
        )
        self.sampled = 0
        self.totals: dict[str | None, list[int]] = {}  # of each replica: computed, found, retracted
        # a log that never tells of retractions may be one that cannot
        self.retracts = mentions(source, b"#retracted_reqs", _TELLS)
        self.facts: dict[str, Any] = {}
        self.starts = Buffer("scalars", "ts_ns", "name", "value", "source")  # of servers that had served before
        self.stamped: dict[str | None, str] = {}  # how the last line of a host that tells a time begins

    def line(self, offset: int, line: str) -> None:
        if " batch" in line and (match := _BATCH.search(line)):
            self._batch(match, line[: match.start()], offset)
        elif "Retract requests" in line and (match := _RETRACTED.search(line)):
            if (replica := _replica(line[: match.start()])) is not False:
                self.totals.setdefault(replica, [0, 0, 0])[2] += int(match["n"])
        else:
            near = self._near(line)
            if "=" in line or "KV Cache" in line:
                self._start(line)
                again = self.sampled and _ARGUMENTS.search(line)
                if again and (ns := self.clock.time_ns(near, offset)) is not None:
                    self.starts.add(ns, STARTED, ns / NS_PER_S, self.name)
            self.evidence.see(offset, line, near=near)

    def _near(self, line: str) -> str:
        """How the last line of the same host that tells a time begins, this one too: what stands before both names the
        host, and lines of several are mixed."""
        before = line[: len(line) - len(bare(line))]
        host = host_prefix(before)
        if _STAMPED.search(before[:_HEAD]) and (host in self.stamped or len(self.stamped) < _HOSTS):
            self.stamped[host] = line[:_HEAD]
        return self.stamped.get(host, "")

    def _batch(self, match: re.Match, before: str, offset: int) -> None:
        replica = _replica(before)
        if replica is False:
            return
        found = {f["name"].strip(): number(f["value"]) for f in _FIELD.finditer(match["rest"])}
        totals = self.totals.setdefault(replica, [0, 0, 0])
        prefill = match["kind"] == "Prefill"
        if prefill:
            for i, name in enumerate(("#new-token", "#cached-token")):
                totals[i] = min(totals[i] + (count(found.get(name)) or 0), 1 << 62)
        running, waiting = count(found.get("#running-req")), count(found.get("#queue-req"))
        if prefill and running is not None and found.get("#new-token"):
            running += max(count(found.get("#new-seq")) or 0, 1)  # of a prompt in pieces every piece is a batch
        usage = [v for name in _USAGE if (v := found.get(name)) is not None and 0 <= v <= 1]
        if running is None:
            self.tally.add("batch lines", "cut off, or of a kind that is not known", offset)
        if self.sampled >= _MOST:
            raise InputError(f"more than {_MOST:,} batches", where=self.name, expected="the log of one server")
        ts_ns = self.clock.time_ns(before, offset)
        self.ran.see(ts_ns, replica, None, match.string)  # a host's alone, where chips are told
        self.rows.add(
            self.sampled,
            ts_ns,
            replica,
            running,
            waiting,
            max(usage) if usage else None,
            totals[1],
            totals[0] + totals[1],
            totals[0],
            found.get("input throughput (token/s)") if prefill else None,
            found.get("gen throughput (token/s)") if not prefill else None,
            totals[2] if self.retracts else None,
            found.get("accept len"),
            self.name,
        )
        self.sampled += 1

    def _start(self, line: str) -> None:
        if match := _ARGUMENTS.search(line):
            self._arguments(match["rest"])
        if (match := _POOL.search(line)) and "kv_cache_tokens" not in self.facts:
            self.facts["kv_cache_tokens"] = int(match["tokens"])
            if (seats := _SEATS.search(line)) and int(seats["seats"]):
                self.facts["max_num_seqs"] = int(seats["seats"])
        if match := _ALLOCATED.search(line):
            keys, values = number(match["k"]), number(match["v"])
            if keys is not None and values is not None and keys + values < 1e6:
                # the first is the model's, a second that of a draft model; its GB are GiB
                self.facts.setdefault("kv_available_bytes", round((keys + values) * (1 << 30)))

    def _arguments(self, text: str) -> None:
        given = {m["name"]: m["value"] for m in _ARGUMENT.finditer(text)}
        if path := given.get("model_path"):
            self.facts.setdefault("model", clean(path)[:300])
        for name, fact in _FACTS.items():
            if value := count(given.get(name)):
                self.facts.setdefault(fact, value)
        if given.get("enable_dp_attention") == "True":
            whole, ranks = (self.facts.get(name) for name in ("max_num_seqs", "data_parallel_size"))
            if whole and ranks and "kv_cache_tokens" not in self.facts:
                self.facts["max_num_seqs"] = max(whole // ranks, 1)
        root_too = count(given.get("speculative_num_draft_tokens")) or 0
        draft = count(given.get("speculative_num_steps")) or root_too - 1
        if draft > 0:
            self.facts.setdefault("num_speculative_tokens", draft)
        kv = given.get("kv_cache_dtype", "auto")
        if kv != "auto":
            self.facts.setdefault("kv_precision", clean(kv)[:40])

    def rest(self) -> Iterator[Item]:
        if not self.sampled and not self.facts:
            raise InputError(
                "no line of an SGLang server's scheduler in it",
                where=self.name,
                expected="lines such as `Decode batch. #running-req: 12, #token: 8192, token usage: 0.31, ...`",
            )
        yield from self.rows.rest()
        yield from self.evidence.rest()
        yield from self.starts.rest()
        yield Fact("engine", "sglang")
        for name, value in self.facts.items():
            yield Fact(name, value)
        yield from self._devices()
        yield from self.tally.lost()

    def _devices(self) -> Iterator[Fact]:
        tensor, pipeline = (self.facts.get(f"{axis}_parallel_size") for axis in ("tensor", "pipeline"))
        data = self.facts.get("data_parallel_size") or 1
        # With more than one, DP attention shares the tensor ranks and replicas have their own: the log does not tell.
        if tensor and data == 1 and tensor * (pipeline or 1) < 1 << 31:
            chips = tensor * (pipeline or 1)
            yield Fact("chips", chips, "derived")
            yield from self.ran.facts(chips)
            yield Fact("parallelism", {"tensor": tensor, "pipeline": pipeline or 1})


def _replica(before: str) -> str | None | Literal[False]:
    """The DP rank that wrote a line, None where there are none; False for a rank that repeats what the first says."""
    ranks = {m["axis"]: int(m["n"]) for m in _RANK.finditer(before)}
    if "DP" not in ranks and (ranks.get("TP") or ranks.get("PP")):
        return False
    parts = [host_prefix(before), str(ranks["DP"]) if "DP" in ranks else None]
    return "/".join(part for part in parts if part is not None) or None
