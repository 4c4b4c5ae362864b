"""The engine: iterations of continuous batching with chunked prefill, paged and shared KV cache, and speculation."""

import time
from collections.abc import Callable
from functools import partial

import jax
import numpy as np

from reference.serve import model
from reference.serve.plan import Plan
from reference.serve.scheduler import Part, Scheduler, Sequence

_OFFSET_NS = time.time_ns() - time.perf_counter_ns()


def now_ns() -> int:
    """Nanoseconds since the epoch by a clock that only goes forward: it is set once, when the program starts."""
    return time.perf_counter_ns() + _OFFSET_NS


def bucket(count: int, buckets: tuple[int, ...]) -> int:
    """The smallest compiled size that `count` fits."""
    return next(b for b in buckets if b >= count)


class Engine:
    """Serves sequences with a target model and a draft model (weights as from `model.init`).

    `step` runs one iteration and hands each sequence's new bytes to its `send`. `iterations` keeps a row of each, as
    in the table `iterations`; `done` every sequence that has ended.
    """

    def __init__(self, plan: Plan, target: dict, draft: dict):
        self.config, self.plan = plan.engine, plan
        noise = model.noise(self.config.context + self.config.row, plan.dims, plan.temperature, plan.seed)
        # each layer's weights in arrays of their own: out of stacked ones every pass would copy them
        by_layer = [{k: list(w) if w.ndim == 3 else w for k, w in weights.items()} for weights in (target, draft)]
        self._weights = jax.tree.map(jax.numpy.asarray, (*by_layer, noise))
        pages = self.config.pages + 1
        self._pages = [
            array for dims in (plan.dims, plan.draft_dims) for array in model.empty_pages(dims, pages, self.config.page)
        ]
        self._forward = jax.jit(partial(model.forward, dims=plan.dims), donate_argnums=3)
        self._propose = jax.jit(
            partial(model.propose, dims=plan.draft_dims, count=self.config.row - 1), donate_argnums=2
        )
        self.scheduler = Scheduler(self.config)
        self.iterations: list[dict] = []
        self.done: list[Sequence] = []
        self.accepted_at = [0] * (self.config.row - 1)
        self.drafts = 0
        self.on_step: Callable[[dict, list[tuple[Sequence, int]]], None] = lambda row, pieces: None

    def warm_up(self) -> list[dict]:
        """Compiles every program: {program, rows, pages, start_ns, end_ns} of each."""
        done = []
        for pages in self.config.page_buckets:
            table = np.zeros((max(self.config.row_buckets), pages), np.int32)
            for name, sizes in (("forward", self.config.row_buckets), ("propose", self.config.draft_buckets)):
                for rows in sizes:
                    start_ns, zeros = now_ns(), np.zeros(rows, np.int32)
                    if name == "forward":
                        self._run_forward(np.zeros((rows, self.config.row), np.int32), zeros, zeros, table[:rows])
                    else:
                        self._run_propose(zeros, zeros, zeros, table[:rows])
                    done.append(
                        {"program": name, "rows": rows, "pages": pages, "start_ns": start_ns, "end_ns": now_ns()}
                    )
        return done

    def add(self, sequence: Sequence) -> None:
        sequence.tokens = bytearray(sequence.prompt)
        self.scheduler.waiting.append(sequence)

    @property
    def busy(self) -> bool:
        return bool(self.scheduler.running or self.scheduler.waiting)

    def step(self) -> None:
        """One iteration. Sequences whose client left are dropped first; where no other is there, nothing runs."""
        start_ns = now_ns()
        for s in [s for s in (*self.scheduler.running, *self.scheduler.waiting) if s.left]:
            self._end(s, "aborted", "the client closed the connection")
        parts, preempted = self.scheduler.schedule(start_ns)
        if not parts:
            return
        pages = bucket(max(len(p.sequence.pages) for p in parts), self.config.page_buckets)
        drafts, draft_ns = self._draft_for([p for p in parts if p.drafts], pages)
        following, compiled, device_ns = self._compute(parts, drafts, pages)
        done_ns = now_ns()
        usage = self.scheduler.cache.usage  # before the pages of finished sequences are given back
        pieces = [
            (p.sequence, self._keep(p, out, drafts.get(p.sequence.id), done_ns))
            for p, out in zip(parts, following, strict=True)
        ]
        generating = [(p, kept) for p, (_, kept) in zip(parts, pieces, strict=True) if not p.reading]
        used = sum(p.count for p in parts)
        row = {
            "order": len(self.iterations),
            "replica": "0",
            "start_ns": start_ns,
            "dur_ns": 0,
            "device_ns": draft_ns + device_ns,
            "prefill_requests": len(parts) - len(generating),
            "prefill_tokens": sum(p.count for p in parts if p.reading),
            "recomputed_tokens": sum(p.recomputed for p in parts),
            "decode_requests": len(generating),
            "decode_tokens": sum(kept for _, kept in generating),
            "drafted_tokens": sum(p.drafts for p, _ in generating),
            "accepted_tokens": sum(kept - 1 for _, kept in generating),
            "padded_tokens": compiled - used,
            "kv_usage": usage,
            "running": len(self.scheduler.running),
            "waiting": len(self.scheduler.waiting),
            "preempted": preempted,
        }
        for s in [s for s in self.scheduler.running if len(s.tokens) == len(s.prompt) + s.max_tokens]:
            self._end(s, "completed")
        row["dur_ns"] = now_ns() - start_ns
        self.iterations.append(row)
        self.on_step(row, [(s, kept) for s, kept in pieces if kept])

    def _end(self, s: Sequence, status: str, error: str | None = None) -> None:
        self.scheduler.drop(s)
        s.status, s.error = status, error
        self.done.append(s)

    def _table(self, sequences: list[Sequence], rows: int, pages: int) -> np.ndarray:
        table = np.zeros((rows, pages), np.int32)
        for i, s in enumerate(sequences):
            table[i, : len(s.pages)] = s.pages
        return table

    def _draft_for(self, parts: list[Part], pages: int) -> tuple[dict[str, np.ndarray], int]:
        """{id: draft tokens} of these sequences, and how long that took, ns."""
        if not parts:
            return {}, 0
        rows = bucket(len(parts), self.config.draft_buckets)
        last, start, valid = np.zeros((3, rows), np.int32)
        for i, p in enumerate(parts):
            last[i], start[i], valid[i] = p.sequence.tokens[-1], p.sequence.computed, 1
        begun = time.perf_counter_ns()
        drafts = self._run_propose(last, start, valid, self._table([p.sequence for p in parts], rows, pages))
        took = time.perf_counter_ns() - begun
        return {p.sequence.id: drafts[i, : p.drafts] for i, p in enumerate(parts)}, took

    def _compute(self, parts: list[Part], drafts: dict, pages: int) -> tuple[list[np.ndarray], int, int]:
        """The token chosen after each token of each part, tokens of the compiled shape, and ns it took."""
        width = self.config.row
        owners = [p.sequence for p in parts for _ in range(p.rows(width))]
        rows = bucket(len(owners), self.config.row_buckets)
        tokens, start, valid = np.zeros((rows, width), np.int32), *np.zeros((2, rows), np.int32)
        at = 0
        for p in parts:
            s = p.sequence
            mine = np.frombuffer(bytes(s.tokens[s.computed : s.computed + p.count - p.drafts]), np.uint8)
            tokens.reshape(-1)[at * width : at * width + p.count] = np.append(mine, drafts.get(s.id, ()))
            for offset in range(0, p.count, width):
                start[at], valid[at] = s.computed + offset, min(width, p.count - offset)
                at += 1
        table = self._table(owners, rows, pages)
        begun = time.perf_counter_ns()
        following = self._run_forward(tokens, start, valid, table).reshape(-1)
        took = time.perf_counter_ns() - begun
        first = np.cumsum([0] + [p.rows(width) * width for p in parts])
        return [following[f : f + p.count] for f, p in zip(first, parts, strict=False)], tokens.size, took

    def _keep(self, part: Part, following: np.ndarray, drafts: np.ndarray | None, done_ns: int) -> int:
        """Take over what an iteration gave a sequence; how many tokens it generated."""
        s, before = part.sequence, len(part.sequence.tokens)
        if part.reading:
            s.computed += part.count
            new = following[-1:] if not s.reading else following[:0]
        else:
            wrong = np.flatnonzero(drafts != following[:-1]) if part.drafts else ()
            kept = int(wrong[0]) if len(wrong) else part.drafts
            s.computed += 1 + kept
            s.drafted, s.accepted = s.drafted + part.drafts, s.accepted + kept
            self.drafts += part.drafts > 0
            for position in range(kept):
                self.accepted_at[position] += 1
            new = following[: kept + 1]
        s.furthest = max(s.furthest, s.computed)
        piece = bytes(new.astype(np.uint8))
        s.tokens += piece
        self.scheduler.cache.names(s.tokens[: s.computed], s.names)
        for page, name in zip(s.pages[: s.computed // self.config.page], s.names, strict=False):
            self.scheduler.cache.know(page, name)
        if piece:
            s.pieces_ns.append(done_ns)
            s.send(piece)
        return len(s.tokens) - before

    def _run_forward(self, tokens, start, valid, table) -> np.ndarray:
        self._pages, following = self._forward(*self._weights, self._pages, tokens, start, valid, table)
        return np.asarray(following)  # waits until the device is done

    def _run_propose(self, last, start, valid, table) -> np.ndarray:
        self._pages[-1], drafts = self._propose(*self._weights[1:], self._pages[-1], last, start, valid, table)
        return np.asarray(drafts)
