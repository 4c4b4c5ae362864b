"""What a driver of vLLM's engine writes of single requests, and beside it: four files of one run.

    *.jsonl   one request a line, with vLLM's own times of it: arrival_time is a time of day, queued_ts, scheduled_ts,
              first_token_ts and last_token_ts count from the start of the machine. The smallest (queued - arrival) of
              the file moves them onto the calendar. A request arrives when the engine queued it, as in vLLM's own
              statistics; how much longer than the fastest the others took to get there is said.
    *.csv     t,prompt_throughput,gen_throughput,running,waiting,kv_cache_pct: samples of the engine, t in seconds
              since its start, rates per second since the sample before, kv_cache_pct in per cent. ts_ns counts from
              the start, and the fact `engine_times` says so.
    meta      (meta.json) the model, vLLM's version, how the engine was started
    config    (config.json of LLMServingSim) hardware and number of devices of the system
What the engine did not reach it writes as 0.0: a request without a first and a last token did not complete.
"""

import json
from collections.abc import Iterator
from typing import Any

from catalog.chips import chips
from catalog.lookup import key
from collectors.base import Fact, Item, Source
from collectors.reading.textlog import DATED, NS_PER_S, Buffer, Tally, clean, lines, moment_ns, seconds_to_ns
from collectors.serving.serving_rows import Requests, count, number, scaled
from errors import InputError

NAME = "vllm_requests"
TITLE = "vLLM request times"
HELP = "Times of single requests in vLLM's engine (JSON lines), with timeseries.csv, meta.json and config.json beside."

PRECISIONS = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32"}
PARALLEL = {"data": "data_parallel_size", "tensor": "tensor_parallel_size", "pipeline": "pipeline_parallel_size"}
_TIMES = ("queued_ts", "scheduled_ts", "first_token_ts", "last_token_ts")
_HEADER = ["t", "prompt_throughput", "gen_throughput", "running", "waiting", "kv_cache_pct"]
_SMALL = 1 << 20  # bytes of a file of facts
_APART_NS = 3600 * NS_PER_S  # from the median delay: a time that is further off is broken
_MOST = 5_000_000  # requests of one file: they are held until their clocks are aligned
_COUNTS = ("max_num_seqs", "max_num_batched_tokens", "max_model_len", "block_size", "num_speculative_tokens")


def sniff(source: Source) -> float:
    head = source.head.lstrip(b"\xef\xbb\xbf \t\r\n")
    first = head.partition(b"\n")[0]
    if first.startswith(b"{") and all(f'"{k}"'.encode() in first for k in ("arrival_time", *_TIMES)):
        return 0.95
    if [c.strip() for c in first.decode("utf-8", "replace").split(",")] == _HEADER:
        return 0.95
    if head.startswith(b"{") and b'"engine_kwargs"' in head and b'"vllm_version"' in head:
        return 0.95
    return 0.9 if head.startswith(b"{") and b'"npu_mem"' in head and b'"hardware"' in head else 0.0


def read(source: Source) -> Iterator[Item]:
    """Requests, samples of the engine, or facts. Raises InputError where the file holds none of them."""
    head = source.head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if not head.startswith(b"{"):
        yield from _samples(source)
    elif b'"engine_kwargs"' in head:
        yield from _meta(_object(source))
    elif b'"npu_mem"' in head:
        yield from _system(source.name, _object(source))
    else:
        yield from _requests(source)


def _requests(source: Source) -> Iterator[Item]:
    tally = Tally()
    rows: list[tuple] = []
    for offset, line, whole in lines(source):
        if not line.strip():
            continue
        try:
            found = json.loads(line, parse_constant=lambda _: None)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or not any(k in found for k in _TIMES):
            if whole:
                tally.add("lines", "they are no JSON object with the times of a request", offset)
            else:
                tally.add("the last line", "the file ends in the middle of it", offset)
            continue
        if len(rows) >= _MOST:
            raise InputError(f"more than {_MOST:,} requests", where=source.name, expected="the requests of one run")
        name = found.get("request_id", found.get("id"))
        times = [seconds_to_ns(found.get(k)) for k in ("arrival_time", *_TIMES)]
        if any(t is None and found.get(k) is not None for t, k in zip(times, ("arrival_time", *_TIMES), strict=True)):
            tally.add("times of requests", "they are no numbers, or no times", offset)
        tokens = [
            next((v for k in keys if (v := count(found.get(k))) is not None), None)
            for keys in (
                ("input_toks", "num_prompt_tokens", "prompt_tokens"),
                ("output_toks", "num_generation_tokens", "output_tokens"),
            )
        ]
        rows.append((None if name is None else clean(str(name)[:300]), *tokens, *times, offset))
    if not rows:
        raise InputError(
            "no request in it",
            where=source.name,
            expected='a JSON object a line with "arrival_time", "queued_ts", "scheduled_ts", "first_token_ts", '
            '"last_token_ts"',
        )
    yield from _aligned(source, rows, tally)
    yield from tally.lost()


def _aligned(source: Source, rows: list[tuple], tally: Tally) -> Iterator[Item]:
    """The requests with all their times on the calendar of `arrival_time`."""
    delays = sorted(queued - arrival for *_, arrival, queued, _, _, _, _ in rows if arrival and queued)
    # One broken time must not move all the others.
    delays = [d for d in delays if abs(d - delays[len(delays) // 2]) < _APART_NS]
    if not delays:
        tally.add(
            "engine times",
            "no request has both an arrival and a time at which it was queued: their clocks cannot be aligned",
        )
    shift = delays[0] if delays else None
    requests = Requests(source)
    for name, prompt, output, sent, queued, *engine, offset in rows:
        arrival = queued - shift if queued and shift is not None else sent
        scheduled, first, last = (t - shift if t and shift is not None else None for t in engine)
        served = bool(engine[1]) and bool(engine[2])
        if not served:
            tally.add("requests", "they have no first or no last token: they did not complete", offset)
        requests.add(
            id=name,
            arrival_ns=arrival or None,
            scheduled_ns=scheduled,
            first_token_ns=first,
            last_token_ns=last,
            prompt_tokens=prompt,
            output_tokens=output,
            status="completed" if served else "failed",
        )
        yield from requests.full()
    yield from requests.rest()
    if delays:
        median_ms, most_ms = ((delays[i] - delays[0]) / 1e6 for i in (len(delays) // 2, -1))
        tally.add(
            "engine times",
            "moved onto the calendar by the smallest time from being sent to being queued; the "
            f"others took up to {most_ms:.1f} ms longer (median {median_ms:.1f} ms), which is not in their "
            "latencies",
        )


def _samples(source: Source) -> Iterator[Item]:
    tally = Tally()
    header: list[str] | None = None
    rows: list[tuple] = []
    for offset, line, _ in lines(source):
        cells = [c.strip() for c in line.split(",")]
        if not any(cells):
            continue
        if header is None:
            header = [c.lstrip("\ufeff") for c in cells]
            continue
        given = dict(zip(header, cells, strict=False))
        seconds, prompt, output, kv = (number(given.get(k)) for k in ("t", *_HEADER[1:3], _HEADER[5]))
        running, waiting = count(given.get("running")), count(given.get("waiting"))
        at = None if seconds is None or seconds < 0 else seconds_to_ns(seconds)
        if at is None or len(cells) != len(header) or None in (prompt, output, running, waiting):
            tally.add("samples", "cut off, or with something else than numbers", offset)
        if at is None:
            continue
        if kv is not None and not 0 <= kv <= 100:
            tally.add("KV cache usage", "it is no percentage", offset)
            kv = None
        rates = [None if r is None or r < 0 else r for r in (prompt, output)]
        rows.append((at, running, waiting, kv, *rates))
    if not rows:
        raise InputError("no sample in it", where=source.name, expected=f"the columns {','.join(_HEADER)}")
    # A column of zeros beside running requests was never filled.
    empty = all(not kv for *_, kv, _, _ in rows) and any(running for _, running, *_ in rows)
    if empty:
        tally.add("KV cache usage", "0.0 throughout while requests ran: it was not measured, so it is not known")
    samples = Buffer(
        "engine",
        "ts_ns",
        "order",
        "running",
        "waiting",
        "kv_usage",
        "prompt_tokens_per_s",
        "output_tokens_per_s",
        "source",
    )
    for order, (at, running, waiting, kv, prompt, output) in enumerate(rows):
        usage = None if empty or kv is None else scaled(kv, 100)
        samples.add(at, order, running, waiting, usage, prompt, output, clean(source.name))
        yield from samples.full()
    yield from samples.rest()
    yield Fact("engine_times", "since start")
    yield from tally.lost()


def _object(source: Source) -> dict[str, Any]:
    with source.open() as f:
        raw = f.read(_SMALL + 1)
    try:
        found = json.loads(raw.decode("utf-8-sig"), parse_constant=lambda _: None) if len(raw) <= _SMALL else None
    except (ValueError, RecursionError) as e:
        raise InputError(f"not JSON ({e})".replace("\n", " "), where=source.name, advice="Is it complete?") from e
    if not isinstance(found, dict):
        raise InputError("not a JSON object of settings", where=source.name, expected="a small JSON object")
    return found


def _meta(meta: dict[str, Any]) -> Iterator[Item]:
    given = meta.get("engine_kwargs")
    given = given if isinstance(given, dict) else {}
    yield Fact("engine", "vllm")
    if isinstance(version := meta.get("vllm_version"), str):
        yield Fact("engine_version", clean(version)[:100])
    if isinstance(model := meta.get("model") or given.get("model"), str):
        yield Fact("model", clean(model)[:300])
    yield from engine_facts(given)
    started, finished = (_moment(meta.get(k)) for k in ("started_at", "finished_at"))
    if started is not None:
        yield Fact("started_ns", started)
    if finished is not None:
        yield Fact("finished_ns", finished)


def engine_facts(given: dict[str, Any]) -> Iterator[Fact]:
    """Facts from vLLM's engine arguments: parallel sizes and the devices they make, limits, precisions."""
    sizes = {axis: size for axis, name in PARALLEL.items() if (size := count(given.get(name)))}
    for axis, size in sizes.items():
        yield Fact(PARALLEL[axis], size)
    if sizes:
        devices = 1
        for size in sizes.values():
            devices *= size
        yield Fact("parallelism", sizes)
        if "tensor" in sizes and devices < 1 << 31:
            yield Fact("chips", devices, "derived")
    for name in _COUNTS:
        if value := count(given.get(name)):
            yield Fact(name, value)
    dtype = given.get("dtype")
    if isinstance(dtype, str) and (precision := PRECISIONS.get(dtype.removeprefix("torch."))):
        yield Fact("precision", precision)
    quantization = given.get("quantization")  # of the weights, where they are not kept in dtype
    if isinstance(quantization, str) and quantization not in ("", "None", "null"):
        yield Fact("quantization", clean(quantization)[:40])
    if (spread := str(given.get("enable_expert_parallel")).lower()) in ("true", "false"):  # a log's word, or JSON's
        yield Fact("enable_expert_parallel", spread == "true")
    kv = given.get("kv_cache_dtype")
    if isinstance(kv, str) and kv and kv != "auto":  # auto: as the model
        yield Fact("kv_precision", clean(kv)[:40])


def _system(name: str, config: dict[str, Any]) -> Iterator[Item]:
    nodes = [node for node in _list(config.get("nodes")) if isinstance(node, dict)]
    instances = [i for node in nodes for i in _list(node.get("instances")) if isinstance(i, dict)]
    if not instances:
        raise InputError("it names no instance", where=name, expected='"nodes" with "instances", each with "hardware"')
    first = instances[0]
    if isinstance(hardware := first.get("hardware"), str) and hardware:
        memory = first.get("npu_mem")
        chip = _edition(hardware, number(memory.get("mem_bw")) if isinstance(memory, dict) else None)
        yield Fact("chip", chip or clean(hardware)[:100], "derived" if chip else "measured")
    numbers = [count(i.get("num_npus")) for i in instances]
    chips = sum(n for n in numbers if n)
    if all(numbers) and chips < 1 << 31:
        yield Fact("chips", chips)
    if isinstance(model := first.get("model_name"), str) and model:
        yield Fact("model", clean(model)[:300])


def _edition(name: str, gb_per_s: float | None) -> str | None:
    """The chip of the catalogue that `name` begins the name of and whose memory is as fast; None unless just one is."""
    found = [
        chip.name
        for chip in chips().values()
        if key(name)
        and key(chip.name).startswith(key(name))
        and gb_per_s
        and (speed := chip.value("hbm_bytes_per_s"))
        and abs(gb_per_s * 1e9 / speed - 1) < 0.01
    ]
    return found[0] if len(found) == 1 else None


def _list(value: object) -> list:
    return value if isinstance(value, list) else []


def _moment(value: object) -> int | None:
    match = DATED.match(value) if isinstance(value, str) else None
    return moment_ns(match) if match else None
