"""Jobs and logs of them, short enough to write down in a test."""

import random

from runs.tables import MemoryTables
from tests.analyzers.told_jobs import Take, log, tables


def job_of(*attempts: tuple[int, int, float], dur_s: float = 5.0) -> list[Take]:
    """Takes of (first step, last step, start): steps laid end to end."""
    return [Take(k, n, at + (n - a) * dur_s, dur_s) for k, (a, b, at) in enumerate(attempts) for n in range(a, b + 1)]


def logs(*parts, **options) -> MemoryTables:
    """Tables of (takes, source) pairs."""
    rng = random.Random(0)
    return tables([r for takes, source in parts for r in log(rng, takes, source, **options)])
