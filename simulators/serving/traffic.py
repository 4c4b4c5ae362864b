"""Requests to be served: drawn at random, kept at a number in flight, or as a trace or a run has them.

poisson(rate)      gaps between arrivals are exponential, mean 1 / rate
gamma(rate, cv)    the same mean, standard deviation cv times it: 1 is Poisson, more comes in bursts
closed(B)          B requests are in flight at any time: the next comes when one is done
of_tables(tables)  arrivals, lengths, cache hits or identities of blocks as the table `requests` has them
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from errors import QuestionError
from errors.numbers import COUNT, RATE, VARIATION, Number
from runs.tables import Tables, int_column

MAX_REQUESTS = 5_000_000
EVEN = 1e-6  # gaps that vary less are even: their square is no number that a distribution could be drawn from
BLOCK_TOKENS = 512  # of one identity in the traces of Mooncake
BLOCK_SIZES = (BLOCK_TOKENS, 16, 32, 64, 128, 256, 1024, 2048)  # of those that fit alike the first is taken


@dataclass(frozen=True)
class Traffic:
    """`arrival_s` rise from 0; `concurrency` above 0: they are not used. Lengths in tokens; `cached`: prompt tokens
    found in the cache as the traffic states it. `hash_start`, `hash_ids`: identities of the blocks of `block_tokens`
    tokens of each prompt, flat; `block_tokens` 0: not known. `own_cache`: what is found of a prompt takes room of its
    own (its cache was sent along with it); otherwise all requests share the longest of them. `name`: what it is, in
    words. `rows`: position of each request in the table that it came from.
    """

    arrival_s: np.ndarray
    prompt: np.ndarray
    output: np.ndarray
    cached: np.ndarray
    name: str
    concurrency: int = 0
    hash_start: np.ndarray | None = None
    hash_ids: np.ndarray | None = None
    block_tokens: int = 0
    own_cache: bool = False
    rows: np.ndarray | None = None
    origin_ns: int | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.prompt)

    def faster(self, factor: float) -> "Traffic":
        """The same requests, `factor` times as many a second."""
        RATE.read(factor, "", shown=f"traffic {factor} times as fast")
        return replace(self, arrival_s=self.arrival_s / factor, name=f"{self.name}, {factor:g} times as fast")

    def first(self, count: int) -> "Traffic":
        """The first `count` requests; all where there are no more."""
        COUNT.read(count, "", shown=f"the first {count:,} requests")
        if count >= len(self):
            return self
        hashes = None if self.hash_start is None else self.hash_start[: count + 1]
        cut = {k: getattr(self, k)[:count] for k in ("arrival_s", "prompt", "output", "cached")}
        return replace(
            self,
            **cut,
            hash_start=hashes,
            rows=None if self.rows is None else self.rows[:count],
            notes=(*self.notes, f"Only the first {count:,} requests of {len(self):,}."),
        )

    def only(self, at: np.ndarray) -> "Traffic":
        """The requests at these positions, when they came."""
        cut = {k: getattr(self, k)[at] for k in ("arrival_s", "prompt", "output", "cached")}
        start, ids = self.hash_start, self.hash_ids
        if ids is not None and start is not None:
            counts = np.diff(start)
            keep = (
                np.concatenate([np.arange(int(start[i]), int(start[i + 1])) for i in at])
                if len(at)
                else np.zeros(0, int)
            )
            start, ids = np.concatenate(([0], np.cumsum(counts[at]))), ids[keep]
        rows = None if self.rows is None else self.rows[at]
        return replace(self, **cut, hash_start=start, hash_ids=ids, rows=rows)


def poisson(rate: float, requests: int, prompt: int, output: int, cached: int = 0, seed: int = 0) -> Traffic:
    return gamma(rate, 1.0, requests, prompt, output, cached, seed)


def gamma(rate: float, cv: float, requests: int, prompt: int, output: int, cached: int = 0, seed: int = 0) -> Traffic:
    """`requests` of equal lengths at `rate` a second, gaps with a coefficient of variation of `cv`."""
    RATE.read(rate, "", shown=f"{rate} requests a second")
    VARIATION.read(cv, "a coefficient of variation of")
    lengths = _lengths(requests, prompt, output, cached)
    if cv < EVEN:
        cv = 0.0
        gaps = np.full(requests, 1 / rate)
    else:
        gaps = np.random.default_rng(seed).gamma(1 / cv**2, cv**2 / rate, requests)
    kind = {0.0: "even gaps", 1.0: "Poisson"}.get(cv, f"gamma, coefficient of variation {cv:g}")
    name = f"{requests:,} requests of {prompt:,} + {output:,} tokens at {rate:g}/s ({kind})"
    return Traffic(np.cumsum(gaps) - gaps[0], *lengths, name)


def closed(concurrency: int, requests: int, prompt: int, output: int, cached: int = 0) -> Traffic:
    """`requests` of equal lengths, `concurrency` of them in flight at any time."""
    Number(1, MAX_REQUESTS, whole=True).read(concurrency, "", shown=f"{concurrency} requests in flight")
    lengths = _lengths(requests, prompt, output, cached)
    arrival = np.where(np.arange(requests) < concurrency, 0.0, np.inf)
    name = f"{requests:,} requests of {prompt:,} + {output:,} tokens, {concurrency:,} in flight"
    return Traffic(arrival, *lengths, name, concurrency)


def _lengths(requests: int, prompt: int, output: int, cached: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    Number(1, MAX_REQUESTS, whole=True).read(requests, "", shown=f"{requests:,} requests")
    for tokens in (prompt, output):
        COUNT.read(tokens, "", shown=f"requests of {prompt} + {output} tokens")
    if not 0 <= cached <= prompt:
        raise QuestionError(f"{cached} of {prompt} prompt tokens cached", expected="from none to all of them")
    prompts, outputs, found = (np.full(requests, v, dtype=np.int64) for v in (prompt, output, cached))
    return prompts, outputs, found


def of_tables(tables: Tables, name: str, prefix_cache: bool = True) -> Traffic:
    """The requests of a run or a trace, in order of arrival. Raises QuestionError where it has none that can be used.

    Left out, and said: requests without a time or without lengths, and those that failed. Identities of blocks go
    before stated cache hits, since they hold on another setup too.
    """
    columns = ["arrival_ns", "prompt_tokens", "output_tokens", "cached_tokens", "hash_ids", "status"]
    table = tables.arrow("requests", columns)
    arrival, prompt = int_column(table, "arrival_ns", -1), int_column(table, "prompt_tokens", 0)
    output, cached = int_column(table, "output_tokens", 0), int_column(table, "cached_tokens", 0)
    status = table["status"].cast(pa.string()).combine_chunks()
    failed = pc.not_equal(status, pa.scalar("completed")).fill_null(False).to_numpy(zero_copy_only=False)
    timed = table["arrival_ns"].combine_chunks().is_valid().to_numpy(zero_copy_only=False)
    usable = timed & (prompt > 0) & (output > 0) & ~failed
    if not usable.any():
        raise QuestionError(
            f"{name} has no requests with times of arrival and lengths",
            advice="Give a trace with a time, prompt tokens and generated tokens of each request.",
        )
    order = np.flatnonzero(usable)
    order = order[np.argsort(arrival[order], kind="stable")]
    notes = []
    if dropped := int((~usable).sum()):
        notes.append(f"{dropped:,} of {len(usable):,} requests are left out: failed, or without times or lengths.")
    start, ids, block = _hashes(table, order, prompt) if prefix_cache else (None, None, 0)
    given = np.zeros(len(order), dtype=np.int64)
    if start is None and prefix_cache:
        given = np.clip(cached[order], 0, prompt[order])
    seconds = (arrival[order] - arrival[order[0]]) / 1e9
    return Traffic(
        seconds,
        prompt[order],
        output[order],
        given,
        f"{len(order):,} requests of {name}",
        hash_start=start,
        hash_ids=ids,
        block_tokens=block,
        rows=order,
        origin_ns=int(arrival[order[0]]),
        notes=tuple(notes),
    )


def _hashes(table: pa.Table, order: np.ndarray, prompt: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None, int]:
    """(where each request's begin, identities of blocks, tokens of one); nothing where no request has any."""
    column = table["hash_ids"].combine_chunks().take(pa.array(order, pa.int64()))
    counts = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    if not counts.any():
        return None, None, 0
    flat = pc.list_flatten(column).to_numpy(zero_copy_only=False).astype(np.int64)
    return np.concatenate(([0], np.cumsum(counts))), flat, _block_tokens(prompt[order], counts)


def _block_tokens(prompt: np.ndarray, counts: np.ndarray) -> int:
    """Tokens of a block: the power of two that gives the most prompts as many blocks as they have, whole or begun."""
    known = counts > 0
    lengths, blocks = prompt[known], counts[known]

    def fitting(size: int) -> float:
        return max(np.mean(-(-lengths // size) == blocks), float(np.all(lengths // size == blocks)))

    best = max(BLOCK_SIZES, key=fitting)
    return best if fitting(best) > 0.9 else BLOCK_TOKENS
