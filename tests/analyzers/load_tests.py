"""Load tests made for tests: summaries of loads with known truth, and single requests of a simulated server."""

import heapq

import numpy as np

from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables

EPOCH_NS = 1_767_571_200_000_000_000


def ask(question, tables, facts=None, **options):
    return question.analyze(tables, facts_of(facts or {}), parse_options(question.OPTIONS, options))


def summaries(loads: list[dict]) -> MemoryTables:
    """`stages` and `stage_stats` of loads; keys `ttft_p99` and the like become statistics, in seconds."""
    stages: dict[str, list] = {}
    stats: dict[str, list] = {"stage": [], "metric": [], "statistic": [], "value": []}
    for n, load in enumerate(loads):
        row = {
            "stage": f"load {n}",
            "tool": "test",
            "order": n,
            "failed": 0,
            "outcome": "measured",
            "source": "x",
            "requested_rate_per_s": None,
            "max_concurrency": None,
            "input_tokens": 200 * load.get("completed", 0),
            "output_tokens": 100 * load.get("completed", 0),
            "peak_concurrency": None,
        }
        for key, value in load.items():
            metric, _, statistic = key.partition("_")
            metric, statistic = ("to_send", "total") if key == "to_send" else (metric, statistic)
            if metric in ("ttft", "tpot", "e2e", "concurrency", "to_send"):
                for name, cell in zip(stats, (row["stage"], metric, statistic, value), strict=True):
                    stats[name].append(cell)
            else:
                row[key] = value
        for key, value in row.items():
            stages.setdefault(key, []).append(value)
    return MemoryTables({"stages": stages, "stage_stats": stats})


def open_loop(rates: list[float], capacity: float, seconds: float = 60.0, base_s: float = 0.5) -> list[dict]:
    """Loads of so many requests per second on a server that answers at most `capacity` per second.

    Below it latency is base / (1 - rate / (2 capacity)); above it requests queue up for half of the load on average.
    """
    loads = []
    for rate in rates:
        count = round(rate * seconds)
        e2e = base_s / (1 - min(rate / capacity, 1) / 2)
        lasts = seconds + e2e
        if rate > capacity:
            lasts = count / capacity
            e2e += (lasts - seconds) / 2
        loads.append(
            {
                "requested_rate_per_s": rate,
                "completed": count,
                "duration_s": lasts,
                "e2e_mean": e2e,
                "e2e_p99": 1.2 * e2e,
                "ttft_mean": e2e / 10,
                "ttft_p99": e2e / 8,
                "tpot_mean": 0.009 * e2e,
                "tpot_p99": 0.01 * e2e,
            }
        )
    return loads


def requests(start: np.ndarray, first: np.ndarray, end: np.ndarray, tokens: np.ndarray, **more) -> MemoryTables:
    """Single requests from times in seconds. `more`: further columns of the table."""

    def ns(seconds: np.ndarray) -> list[int]:
        return [EPOCH_NS + round(s * 1e9) for s in np.asarray(seconds, dtype=float)]

    if "scheduled" in more:
        more["scheduled_ns"] = ns(more.pop("scheduled"))
    return MemoryTables(
        {
            "requests": {
                "id": [f"r{i}" for i in range(len(start))],
                "arrival_ns": ns(start),
                "first_token_ns": ns(first),
                "last_token_ns": ns(end),
                "output_tokens": [int(t) for t in tokens],
                "prompt_tokens": [50] * len(start),
                "status": ["completed"] * len(start),
                **more,
            }
        }
    )


def closed_loop(count: int, clients: int, ttft_s: float, tpot_s: float, tokens: int, seed: int = 0) -> np.ndarray:
    """start, first token and end of each request of `clients` that each send the next when the last is answered."""
    rng = np.random.default_rng(seed)
    free = [0.0] * clients
    rows = []
    for _ in range(count):
        start = heapq.heappop(free)
        first = start + ttft_s * rng.uniform(0.5, 1.5)
        end = first + (tokens - 1) * tpot_s * rng.uniform(0.7, 1.3)
        heapq.heappush(free, end)
        rows.append((start, first, end))
    return np.array(rows).T


def queued(rate: float, count: int, seats: int, service_s: float, seed: int = 0) -> np.ndarray:
    """start, scheduled, first token and end with Poisson arrivals and `seats` servers, first come first served."""
    rng = np.random.default_rng(seed)
    starts = np.cumsum(rng.exponential(1 / rate, count))
    free = [0.0] * seats
    rows = []
    for start in starts:
        scheduled = max(start, heapq.heappop(free))
        end = scheduled + service_s * rng.uniform(0.8, 1.2)
        heapq.heappush(free, end)
        rows.append((start, scheduled, scheduled + 0.05 * service_s, end))
    return np.array(rows).T
