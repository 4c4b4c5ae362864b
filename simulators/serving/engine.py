"""Continuous batching, simulated step by step: `simulate(setup, traffic, efficiency)`.

The rules are those of vLLM's engine (v1), see `scheduling.py`; the time of each step is that of `step.py`. A request's
first token comes at the end of the step that read the last of its prompt. What happens on the way to the engine and
back (network, tokenizer, client) is not in it.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from catalog.inference import kv_bytes
from errors import QuestionError
from simulators.serving.efficiency import TYPICAL, Efficiency
from simulators.serving.kernel import serve
from simulators.serving.memory import cache_spans, kv_capacity_bytes
from simulators.serving.scheduling import ROW
from simulators.serving.setup import Setup
from simulators.serving.state import Limits, Requests, fresh_replicas, fresh_requests, fresh_step
from simulators.serving.step import PARTS, step_model
from simulators.serving.traffic import Traffic

MAX_GAPS = 50_000_000
NOT_SERVED = "it would not fit into the cache even alone"


@dataclass(frozen=True)
class Outcome:
    """What happened. `requests`: one row a request, seconds from the first arrival: arrival_s, scheduled_s,
    first_token_s, last_token_s (NaN: refused), ttft_s, tpot_s, e2e_s, prompt, output, cached, replica, preemptions,
    drafted, accepted. `steps`: one row a step in order of their starts, columns of scheduling.ROW; empty unless
    recorded. `late_gaps_s`: gaps between tokens that did not come in successive steps. `part_s`: seconds of all steps
    by what they were spent on. `gaps_s`: (gaps between the pieces of each request's answer, flat; how many of them each
    request has), or None.
    """

    setup: Setup
    efficiency: Efficiency
    traffic: Traffic
    requests: pd.DataFrame
    steps: pd.DataFrame
    late_gaps_s: np.ndarray
    part_s: dict[str, float]
    gaps_s: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def served(self) -> pd.DataFrame:
        return self.requests[self.requests["last_token_s"].notna()]

    @cached_property
    def duration_s(self) -> float:
        """First arrival to last token."""
        return float(self.served["last_token_s"].max() - self.requests["arrival_s"].min())

    @cached_property
    def output_tokens_per_s(self) -> float:
        return float(self.served["output"].sum() / self.duration_s)

    @property
    def bound(self) -> str:
        """What the largest part of the steps' time was spent on, of step.PARTS."""
        return max(self.part_s, key=self.part_s.__getitem__)


def simulate(
    setup: Setup,
    traffic: Traffic,
    efficiency: Efficiency = TYPICAL,
    *,
    routing: str = "round_robin",
    seed: int = 0,
    record: bool = True,
    gaps: bool = False,
) -> Outcome:
    """Serve `traffic` on `setup`. `routing`: `round_robin` or `least_loaded`. `record` keeps every step; `gaps` every
    gap between two tokens of a request.

    Raises QuestionError where the setup does not fit, no request fits, or a number of the chip is not known.
    """
    if routing not in ("round_robin", "least_loaded"):
        raise QuestionError(f"routing {routing!r}", expected="round_robin or least_loaded")
    lim = _limits(setup, traffic, routing)
    fits = _fits(setup, traffic, lim)
    if not fits.any():
        need = int((traffic.prompt + traffic.output).min())
        raise QuestionError(
            f"no request fits: the smallest has {need:,} tokens",
            expected=f"at most {lim.capacity_bytes / 1e9:,.2f} GB of cache on a chip, and prompts within a step of "
            f"{setup.token_budget:,} tokens unless they may be chunked",
            advice="Take more chips, a smaller format for the cache, or shorter requests.",
        )
    q = _requests(traffic, fits)
    always = _shared_bytes(setup, traffic, lim, q)
    model = step_model(setup, efficiency)
    reps = fresh_replicas(
        setup.replicas, lim.seats, int(q.hash_ids.max(initial=-1)) + 1, always, len(model.spans), lim.page
    )
    flat, at = _gap_space(q, setup, gaps)
    rows, late, parts = serve(
        lim,
        q,
        reps,
        fresh_step(lim.seats, len(model.spans), len(PARTS)),
        model.scalars,
        model.spans,
        model.experts,
        seed,
        record,
        flat,
        at,
    )
    return Outcome(
        setup,
        efficiency,
        traffic,
        _frame(traffic, q, fits),
        _steps(rows),
        late,
        dict(zip(PARTS, parts.tolist(), strict=True)),
        _gap_lists(flat, at, q.output, fits) if gaps else None,
    )


def _limits(setup: Setup, traffic: Traffic, routing: str) -> Limits:
    speculation = setup.speculation
    capacity = kv_capacity_bytes(setup) * setup.groups
    hashed = setup.prefix_cache and traffic.hash_ids is not None
    spans = cache_spans(setup)
    page = setup.page_tokens
    block = sum(size for size, window in spans if math.isinf(window)) * traffic.block_tokens
    return Limits(
        seats=setup.max_sequences * setup.groups,
        budget=setup.token_budget * setup.groups,
        page=page,
        capacity_bytes=float(capacity),
        chunked=bool(setup.chunked),
        depth=2 if setup.asynchronous else 1,
        draft=speculation.draft if speculation else 0,
        acceptance=float(speculation.acceptance) if speculation else 0.0,
        silent=setup.silent_tokens,
        least_loaded=routing == "least_loaded",
        concurrency=traffic.concurrency,
        own_cache=bool(traffic.own_cache),
        block_tokens=traffic.block_tokens if hashed else 0,
        block_bytes=float(block),
        pages=np.array(
            [(size * page, window if math.isinf(window) else math.ceil(window / page) + 1) for size, window in spans],
            dtype=float,
        ),
    )


def _fits(setup: Setup, traffic: Traffic, lim: Limits) -> np.ndarray:
    """Which requests could be served at all: a sequence lies in one group's cache, and is read in its steps."""
    within = _need_bytes(lim, traffic.prompt + traffic.output) <= lim.capacity_bytes / setup.groups
    return within if setup.chunked else within & (traffic.prompt + traffic.output <= setup.token_budget)


def _need_bytes(lim: Limits, tokens: np.ndarray) -> np.ndarray:
    """Pages of sequences of so many tokens, in bytes on one chip."""
    pages = -(-tokens // lim.page)
    return sum((np.minimum(pages, most) * size for size, most in lim.pages), start=np.zeros(tokens.shape))


def _shared_bytes(setup: Setup, traffic: Traffic, lim: Limits, q: Requests) -> float:
    """Room that is always taken by the longest prefix that the traffic states as found, once a group. It gives way
    where a request could not be served beside it, as an engine evicts what nobody uses: else that one, and all behind
    it, would wait forever."""
    if traffic.own_cache or not q.given.any():
        return 0.0
    longest = kv_bytes(setup.model, int(q.given.max()), setup.kv_precision, setup.split) * setup.groups
    found = np.minimum(q.given, q.prompt - 1)
    own = _need_bytes(lim, q.prompt + q.output) - np.where(found > 0, _need_bytes(lim, found), 0.0)
    return float(min(longest, max(lim.capacity_bytes - own.max(), 0.0)))


def _requests(traffic: Traffic, fits: np.ndarray) -> Requests:
    """The requests that fit. What does not is refused when it arrives and costs nothing."""
    arrival = traffic.arrival_s[fits]
    if traffic.concurrency:
        arrival = np.where(np.arange(fits.sum()) < traffic.concurrency, 0.0, np.inf)
    n = int(fits.sum())
    start, ids = np.zeros(n + 1, dtype=np.int64), np.zeros(0, dtype=np.int64)
    if traffic.hash_ids is not None and traffic.hash_start is not None:
        counts = np.diff(traffic.hash_start)
        keep = np.repeat(fits, counts)
        _, ids = np.unique(traffic.hash_ids[: traffic.hash_start[-1]][keep], return_inverse=True)  # from 0 on
        start = np.concatenate(([0], np.cumsum(counts[fits])))
    return fresh_requests(arrival, traffic.prompt[fits], traffic.output[fits], traffic.cached[fits], start, ids)


def _gap_space(q: Requests, setup: Setup, gaps: bool) -> tuple[np.ndarray, np.ndarray]:
    if not gaps:
        return np.zeros(0), np.zeros(0, dtype=np.int64)
    total = int((q.output - 1).sum())
    if total > MAX_GAPS:
        raise QuestionError(f"{total:,} gaps between tokens", expected=f"at most {MAX_GAPS:,} to be kept one by one")
    return np.zeros(max(total, 1)), np.concatenate(([0], np.cumsum(q.output - 1)))[:-1].astype(np.int64)


def _gap_lists(flat: np.ndarray, at: np.ndarray, output: np.ndarray, fits: np.ndarray) -> tuple:
    """(the gaps that came, how many each request has): fewer than tokens where several come at once."""
    starts = np.concatenate(([0], np.cumsum(output - 1)))[:-1]
    filled = at - starts
    place = np.arange(int(filled.sum())) - np.repeat(np.cumsum(filled) - filled, filled) + np.repeat(starts, filled)
    counts = np.zeros(len(fits), dtype=np.int64)
    counts[fits] = filled
    return flat[place], counts


def _frame(traffic: Traffic, q: Requests, fits: np.ndarray) -> pd.DataFrame:
    def whole(values: np.ndarray, missing: float) -> np.ndarray:
        out = np.full(len(traffic), missing, dtype=values.dtype if missing == int(missing) else float)
        out[fits] = values
        return out

    arrival = traffic.arrival_s.copy()
    arrival[fits] = q.arrival
    frame = pd.DataFrame(
        {
            "arrival_s": arrival,
            "scheduled_s": _seconds(q.scheduled, fits),
            "first_token_s": _seconds(q.first, fits),
            "last_token_s": _seconds(q.last, fits),
            "prompt": traffic.prompt,
            "output": traffic.output,
            "cached": whole(q.hits, 0),
            "replica": whole(q.replica, -1),
            "preemptions": whole(q.preemptions, 0),
            "drafted": whole(q.drafted, 0),
            "accepted": whole(q.accepted, 0),
        }
    )
    frame["ttft_s"] = frame["first_token_s"] - frame["arrival_s"]
    frame["e2e_s"] = frame["last_token_s"] - frame["arrival_s"]
    after = (frame["output"] - 1).where(frame["output"] > 1)
    frame["tpot_s"] = (frame["last_token_s"] - frame["first_token_s"]) / after
    return frame


def _seconds(values: np.ndarray, fits: np.ndarray) -> np.ndarray:
    out = np.full(len(fits), np.nan)
    out[fits] = values
    return out


def _steps(rows: np.ndarray) -> pd.DataFrame:
    """The record, in order of the starts of steps."""
    frame = pd.DataFrame(rows, columns=list(ROW))
    if frame["replica"].nunique() > 1:
        frame = frame.sort_values("start_s", kind="stable", ignore_index=True)
    return frame
