"""Who waits for input, in words: what the page's head and a terminal say."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from app.whatif.base import Words
from app.words import Table, Verdict, headline, sentence
from errors import format as fmt
from simulators.storage.waiting import NOBODY, nobody_waits

if TYPE_CHECKING:
    from app.whatif.storage.answers import StorageAnswer
    from simulators.storage.needed import Needed
    from simulators.storage.pipe import Pipe

BINDS = {
    "latency": "{readers} a host cannot hide the latency of requests",
    "stream": "the streams of {readers} a host carry no more",
    "host_network": "the host's network binds",
    "store": "the store's bandwidth binds",
    "request_rate": "the requests that the store takes bind",
    "decode": "decoding binds",
    "prefetch": "too little is fetched ahead",
    "spread": "latencies spread too far, though their mean would do",
    "unknown": "what binds is not known",
}
PARTS = {
    "latency": "latency of requests",
    "stream": "bytes of requests",
    "host_network": "host's network",
    "store": "store's bandwidth",
    "request_rate": "requests that the store takes",
    "decode": "decoding",
}


def verdict(result: "StorageAnswer") -> Verdict:
    """Whether anybody waits and what it costs, what binds and what would mend it, and the two times."""
    times = f"a batch takes {fmt.duration(result.batch_s)}, a step {fmt.duration(result.step_s)}."
    if result.limit == "nothing":
        return headline(f"Nobody waits: {times}", _least(result))
    paid = ""
    if result.chip_hours is not None:
        dollars = "" if result.usd is None else f", {fmt.usd(result.usd)}"
        paid = f" ({fmt.chip_time(result.chip_hours * 3600)}{dollars})"
    waited = f"{fmt.duration(result.waits.wait_s)} a step for input, {fmt.share(result.share)} of the time"
    return headline(f"Chips wait {waited}{paid}.", sentence(f"{_binds(result)}{mend(result)}."), sentence(times))


def _least(result: "StorageAnswer") -> str:
    """How much less would do."""
    n, p = result.needed, result.pipe
    if n is None or p is None or n.readers is None or n.readers >= p.readers:
        return ""
    return f"{fmt.count(n.readers, 'reader')} a host would do in place of {p.readers:,}."


def _binds(result: "StorageAnswer") -> str:
    readers = "" if result.pipe is None else fmt.count(result.pipe.readers, "reader")
    return BINDS[result.limit].format(readers=readers)


def mend(result: "StorageAnswer") -> str:
    """What alone would be enough; where nothing is, what a step asks of each part that is too slow. It ends a
    sentence."""
    n, p = result.needed, result.pipe
    if n is None or p is None:
        return ""
    ways = []
    if n.readers is not None:
        ways.append(fmt.count(n.readers, "reader") + " a host")
    if n.prefetch is not None:
        ways.append(fmt.count(n.prefetch, "batch", "batches") + " ahead")
    if n.file_bytes is not None:
        ways.append(f"files of {fmt.size(n.file_bytes)}")
    if n.together is not None:
        readers, ahead = n.together
        ways.append(f"{fmt.count(readers, 'reader')} a host with {ahead} batches ahead")
    return f": enough would be {' or '.join(ways)}" if ways else _asks(result, n, p)


def _asks(result: "StorageAnswer", n: "Needed", p: "Pipe") -> str:
    """What a step that never waits asks for, of each part that is too slow; and whether that would be enough."""
    slow = {name for name, s in p.parts.items() if s > (1 + NOBODY) * result.step_s}
    asks, change = list[str](), dict[str, float]()
    if "store" in slow:
        asks.append(f"{_rate(n.store_bytes_per_s)} of the store, which has {_rate(p.store_bytes_per_s)}")
        change["store_bytes_per_s"] = n.store_bytes_per_s
    if "request_rate" in slow:
        rate = fmt.number(p.store_requests_per_s)
        asks.append(f"{fmt.number(n.requests_per_s)} requests a second of the store, which takes {rate}")
        change["store_requests_per_s"] = n.requests_per_s
    if "host_network" in slow:
        asks.append(f"{_rate(n.host_bytes_per_s)} a host, which has {_rate(p.host_bytes_per_s)}")
        change["host_bytes_per_s"] = n.host_bytes_per_s
    if "decode" in slow:
        now = result.asked.decoders or 1
        more = math.ceil(now * p.decode_s / result.step_s)
        asks.append(f"{fmt.count(more, 'decoder')} a host, which has {now:,}")
        change["decode_s"] = p.decode_s * now / more
    if not asks:
        return ": enough would be no number of readers, of batches ahead or of bytes a file alone"
    if (flying := math.ceil(n.in_flight)) > p.readers:
        asks.append(f"{fmt.count(flying, 'reader')} a host, of which there {_are(p.readers)}")
        change["readers"] = flying
    enough = nobody_waits(replace(p, **change), result.step_s, result.seed)
    return f": {'enough would be' if enough else 'it takes at least'} {', and '.join(asks)}"


def _are(number: int) -> str:
    return f"is {number:,}" if number == 1 else f"are {number:,}"


def _rate(bytes_per_s: float | None) -> str:
    return fmt.NO_VALUE if bytes_per_s is None else f"{fmt.size(bytes_per_s)}/s"


def words(result: "StorageAnswer") -> Words:
    """What each part alone takes, then what the job needs, an epoch, and published readings."""
    rows = [("time per batch", fmt.duration(result.batch_s)), ("step", fmt.duration(result.step_s))]
    rows += [("first batch", fmt.duration(result.waits.first_s)), ("wait a step", _wait(result))]
    if result.alone is not None:
        rows.append(("wait, were there one host", fmt.duration(result.alone.wait_s)))
    if result.pipe is not None:
        rows += [(f"alone: {PARTS[name]}", fmt.duration(s)) for name, s in result.pipe.parts.items() if s]
        rows.append(("a host holds ahead", f"{fmt.size(result.pipe.prefetch * result.pipe.batch_bytes)} at most"))
    if (n := result.needed) is not None:
        rows += [
            ("needed of the store", f"{_rate(n.store_bytes_per_s)}, {fmt.number(n.requests_per_s)} requests/s"),
            ("needed of a host", f"{_rate(n.host_bytes_per_s)}, {fmt.number(n.in_flight)} requests in flight"),
        ]
    for e in result.epochs or ():
        if e is not None:
            what = f"an epoch, {fmt.count(e.files, 'file')} of {fmt.size(e.file_bytes)}"
            rows.append((what, f"{fmt.duration(e.list_s)} to list, {fmt.duration(e.read_s)} to read"))
    if result.save_s is not None:
        rows.append(("a save", f"{fmt.duration(result.save_s)}: whatif goodput --save-s {result.save_s:.4g}"))
    if (m := result.measured) is not None and m.fetch_s is not None:
        rows.append(("measured fetch", fmt.duration(m.fetch_s)))
    return Words(verdict(result), Table(("what", "how much"), tuple(rows)), (*published(), *result.notes))


def _wait(result: "StorageAnswer") -> str:
    w = result.waits
    if not w.wait_s or w.wait_s < 1e-9 * result.step_s:
        return fmt.duration(0)
    sure = f" ± {fmt.duration(w.error_s)}" if w.error_s > 1e-3 * w.wait_s else ""
    return f"{fmt.duration(w.wait_s)}{sure}, {fmt.share(result.share)} of the time"


def published() -> tuple[str, ...]:
    """How well a latency and a bandwidth tell each published series."""
    from app.whatif.storage.cases import worked

    return tuple(case_said(case) for case in worked() if case["fit"] is not None)


def case_said(case: dict[str, Any]) -> str:
    """`Cloud Storage, direct calls: told within 7.3 %, rows left out within 13.3 %.`"""
    errors = f"{fmt.share(case['worst_error'])}, rows left out within {fmt.share(case['worst_held_out_error'])}"
    if case["explained"]:
        return f"{case['title']}: a latency and a bandwidth tell it within {errors}."
    return f"{case['title']}: a latency and a bandwidth do not explain it; they tell it within {errors}."
