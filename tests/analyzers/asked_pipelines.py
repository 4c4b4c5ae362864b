"""Questions about pipelines made for a test."""

import numpy as np

from analyzers.ranks import slowdown
from errors.options import parse_options
from runs.run import facts_of
from tests.analyzers.pipelines import MS, Pipelines


def ask(tables, facts=None, **options):
    return slowdown.analyze(tables, facts_of(facts or {}), parse_options(slowdown.OPTIONS, options))


def noisy(seed, dp=3, stages=3, microbatches=5, steps=3):
    rng = np.random.default_rng(seed)
    f, b = (rng.integers(1 * MS, 30 * MS, (steps, dp, stages, microbatches)) for _ in range(2))
    return Pipelines(
        dp=dp,
        stages=stages,
        microbatches=microbatches,
        steps=steps,
        forward=lambda *at: int(f[at]),
        backward=lambda *at: int(b[at]),
    )
