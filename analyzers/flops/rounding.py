"""Padding that software adds before a matrix unit sees anything: blocks of expert tokens, compiled length buckets."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from errors import QuestionError


@dataclass(frozen=True)
class Rounding:
    """What is rounded up: mean before and after, and tax = after / before - 1."""

    before: float
    after: float

    @property
    def tax(self) -> float:
        return self.after / self.before - 1 if self.before else 0.0


def expert_blocks(tokens_per_expert: float, block: int) -> Rounding:
    """Tokens of an expert in a grouped product, rounded up to whole blocks of rows.

    With every expert at the mean, after = ceil(mean / block) block. Real routing is uneven: on average half a block
    more per expert is lost where the tokens spread over many blocks.
    """
    if block < 1:
        raise QuestionError(f"a group block of {block} tokens", expected="a whole number from 1")
    return Rounding(tokens_per_expert, float(np.ceil(tokens_per_expert / block) * block))


def buckets_of(text: str) -> tuple[int, ...]:
    """`"128,256,512"` as bucket lengths, in order. Raises QuestionError where it is anything else."""
    try:
        found = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        found = ()
    if not found or found[0] < 1 or found[-1] > 1 << 31 or len(found) > 1000:
        raise QuestionError(f"buckets {text[:80]!r}", expected="lengths in tokens, such as 128,256,512")
    return found


def bucket_padding(lengths: Sequence[int] | np.ndarray, buckets: Sequence[int]) -> tuple[Rounding, float]:
    """(mean length before and after rounding up to a bucket, share of sequences longer than the largest bucket).

    Those longer are left out of the means: a server cuts them into pieces or refuses them.
    """
    lengths = np.asarray(lengths, dtype=np.int64)
    sizes = np.asarray(sorted(buckets), dtype=np.int64)
    at = np.searchsorted(sizes, lengths)
    fits = at < len(sizes)
    if not len(lengths) or not fits.any():
        return Rounding(0.0, 0.0), 1.0 if len(lengths) else 0.0
    kept = lengths[fits]
    return Rounding(float(kept.mean()), float(sizes[at[fits]].mean())), float(1 - fits.mean())
