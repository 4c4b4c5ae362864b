"""What drafting k tokens ahead is worth: by Leviathan's rule alone, and on a chip whose steps turn compute-bound.

With chance a that a draft token is accepted where all before it were, and a draft step that costs c of a step:

    position i is accepted with a^i          tokens of a step  L = 1 + a + ... + a^k
    speed-up = L / (k c + 1)                 (Leviathan et al., arXiv 2211.17192: verifying costs nothing more)

Verifying k + 1 tokens of each of B sequences costs nothing more only while a step is bound by reading. A step over t
tokens of each sequence (F: FLOPs of a token in matrices, A: in attention; W: weights met, V: cache of a sequence):

    T(t) = max(B t F / P, W / BW) + B max(V / BW, t A / P)
    speed-up(B) = L T(1) / (T(k + 1) + k c T(1))       free up to B = critical batch / (k + 1);   break-even: 1
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from catalog.chips import Chip
from catalog.inference import (
    accepted_length,
    decode_attention_flops,
    decode_step_s,
    kv_bytes,
    speculation_speedup,
    token_flops,
)
from catalog.inference import weights_read_bytes as read
from catalog.models import Model
from errors import QuestionError

MOST_DRAFT = 16  # draft tokens that are tried for the best, and as many more as it takes to pass it
LONGEST = 1000  # draft tokens, as many as can be asked for
MOST_BATCH = 1 << 17  # sequences: beyond any engine
SMALL = 1e-9


def needed_chance(length: float, draft: float) -> float:
    """The chance a for which 1 + a + ... + a^k is `length`, where tokens are accepted independently and alike.

    `draft` may be an average, so no whole number. 0 where nothing was accepted, 1 where all was.
    """
    if length <= 1 or draft <= 0:
        return 0.0
    if length >= draft + 1:
        return 1.0
    return _root_between(lambda a: (1 - a ** (draft + 1)) / (1 - a) - length, 0.0, 1 - 1e-12)


def wilson(share: np.ndarray, trials: float, z: float = 1.96) -> tuple[np.ndarray, np.ndarray]:
    """The 95 % interval of a share of `trials` (Wilson's)."""
    middle = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
    half = z / (1 + z**2 / trials) * np.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    return np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1)


@dataclass(frozen=True)
class Draft:
    """A draft length and what it is worth by Leviathan's rule."""

    tokens: int
    length: float
    speedup: float


def by_draft(acceptance: float, cost: float, most: int | None = None) -> tuple[Draft, ...]:
    """Each draft length from 0 (no speculation, 1) to `most`; None: as far as `_tried`."""
    if most is None:
        most = _tried(np.cumsum(acceptance ** np.arange(LONGEST + 1)), cost)
    return tuple(
        Draft(k, accepted_length(acceptance, k), speculation_speedup(acceptance, k, cost)) for k in range(most + 1)
    )


def by_positions(shares: np.ndarray, cost: float, most: int | None = None) -> tuple[Draft, ...]:
    """The same from the share of drafts accepted at each position, all known; beyond them the chance of the last,
    where all before it were accepted, is taken to hold on."""
    shares = np.asarray(shares, dtype=float)
    before = shares[-2] if len(shares) > 1 else 1.0
    hold = min(shares[-1] / before, 1.0) if before > 0 else 0.0
    beyond = shares[-1] * hold ** np.arange(1, max(LONGEST - len(shares), 0) + 1)
    lengths = 1 + np.concatenate([[0.0], np.cumsum(np.concatenate([shares, beyond]))])
    most = max(_tried(lengths, cost) if most is None else most, len(shares))
    return tuple(Draft(k, float(n), float(n / (k * cost + 1))) for k, n in enumerate(lengths[: most + 1]))


def _tried(lengths: np.ndarray, cost: float) -> int:
    """Past the draft that is worth most; MOST_DRAFT where there is none, as each further token gains."""
    at = int(np.round(lengths / (np.arange(len(lengths)) * cost + 1), 12).argmax())
    if cost == 0 or at >= LONGEST:
        return MOST_DRAFT
    return max(MOST_DRAFT, min(at + at // 4 + 1, LONGEST))


def best(drafts: tuple[Draft, ...]) -> Draft:
    """The one that is worth most; of equals the shortest."""
    return max(drafts, key=lambda d: (round(d.speedup, 12), -d.tokens))


def still_rising(drafts: tuple[Draft, ...]) -> bool:
    """Whether the best is only the longest that was tried: no length is known to be the best."""
    return best(drafts) == drafts[-1]


def least_acceptance(draft: int, cost: float) -> float | None:
    """The chance of acceptance from which a draft of k tokens pays; None where none does (c of 1 or more)."""
    if draft < 1 or speculation_speedup(1.0, draft, cost) <= 1:
        return None
    return 0.0 if cost == 0 else _root_between(lambda a: speculation_speedup(a, draft, cost) - 1, 0.0, 1 - 1e-12)


def greatest_cost(length: float, draft: float) -> float | None:
    """The cost of a draft step up to which it pays: (L - 1) / k."""
    return (length - 1) / draft if draft > 0 else None


@dataclass(frozen=True)
class Machine:
    """What steps of a model take on a chip, of any number of chips that share weights and caches evenly.

    `kv_bytes`: of one sequence at its present length; 0: short ones. Rates are the chip's BF16 peak and bandwidth.
    """

    model: Model
    flops_per_s: float
    bytes_per_s: float
    kv_bytes: float = 0.0
    attention_flops: float = 0.0
    precision: str = "bf16"

    def step_s(self, sequences: float, tokens: float = 1.0) -> float:
        """One pass over `tokens` tokens of each sequence, s, on one chip. More tokens meet more experts."""
        weights = decode_step_s(
            sequences,
            weights_bytes=read(self.model, sequences * tokens, self.precision),
            kv_bytes=0.0,
            bytes_per_s=self.bytes_per_s,
            flops_per_token=token_flops(self.model),
            flops_per_s=self.flops_per_s,
            tokens=tokens,
        )
        caches = max(self.kv_bytes / self.bytes_per_s, tokens * self.attention_flops / self.flops_per_s)
        return weights + sequences * caches

    def critical_tokens(self) -> float:
        """Tokens of a pass from which it is bound by computing; infinite where that is beyond MOST_BATCH."""

        def excess(tokens: float) -> float:
            maths = tokens * token_flops(self.model) / self.flops_per_s
            return maths - read(self.model, tokens, self.precision) / self.bytes_per_s

        return _root(excess, SMALL, 16.0 * MOST_BATCH)

    def speedup(self, sequences: float, length: float, draft: float, cost: float) -> float:
        """Tokens per second with drafts by tokens per second without, at this many sequences."""
        plain = self.step_s(sequences)
        return length * plain / (self.step_s(sequences, draft + 1) + draft * cost * plain)

    @property
    def routed(self) -> bool:
        """Whether tokens choose among experts: verifying reads those of every draft, so that it is never free."""
        return any(f.experts for f in self.model.feedforward)

    def free_batch(self, draft: float) -> float | None:
        """Sequences up to which verifying costs no more than a plain step; 0: at none, as attention turns
        compute-bound; None of a model with experts."""
        if self.routed:
            return None
        attention_s = (draft + 1) * self.attention_flops / self.flops_per_s
        return 0.0 if attention_s > self.kv_bytes / self.bytes_per_s else self.critical_tokens() / (draft + 1)

    def caches_bound(self, draft: float) -> bool:
        """Whether reading the caches outlasts all maths of a pass that verifies, at however many sequences."""
        maths = max(self.attention_flops, token_flops(self.model)) * (draft + 1)
        return self.kv_bytes / self.bytes_per_s > maths / self.flops_per_s

    def pays(self, length: float, draft: float, cost: float) -> tuple[tuple[float, float], ...]:
        """Between which sequences drafting pays, in order; infinite where it does at any more.

        Of a model with experts it may pay at one, lose at a few that meet experts for their drafts alone, and pay again
        at many, which meet every expert anyway.
        """
        grid = np.unique(np.round(np.geomspace(1, MOST_BATCH, 200)))

        def gain(sequences: float) -> float:
            return self.speedup(sequences, length, draft, cost) - 1

        gains = np.array([gain(b) for b in grid]) >= 0
        turns = np.flatnonzero(gains[1:] != gains[:-1])
        crossings = [_root_between(gain, float(grid[i]), float(grid[i + 1])) for i in turns]
        ends = [*([1.0] if gains[0] else []), *crossings, *([float("inf")] if gains[-1] else [])]
        return tuple(zip(ends[::2], ends[1::2], strict=True))

    def break_even(self, length: float, draft: float, cost: float) -> float:
        """Sequences beyond which drafting loses; infinite: it pays at any more; 0: at none. See `pays` for fewer."""
        found = self.pays(length, draft, cost)
        return found[-1][1] if found else 0.0


def at_any(pays: tuple[tuple[float, float], ...]) -> bool:
    return len(pays) == 1 and pays[0][0] <= 1 and np.isinf(pays[0][1]).item()


def ranges_told(pays: tuple[tuple[float, float], ...]) -> list[list[float | None]]:
    """As JSON has it: None where there is no end."""
    return [[low, high if np.isfinite(high) else None] for low, high in pays]


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    if function(high) < 0:
        return float("inf")
    return _root_between(function, low, high)


def machine(model: Model, chip: Chip, context: int = 0, precision: str = "bf16", kv: str = "bf16") -> Machine:
    """The steps of `model` on `chip`. Raises QuestionError where the catalogue lacks the chip's peak or bandwidth."""
    if not 0 <= context < 1 << 31:
        raise QuestionError(f"a context of {context} tokens", expected="a whole number from 0")
    cache = kv_bytes(model, context, kv) if context else 0.0
    return Machine(
        model,
        float(chip.need("bf16_flops_per_s")),
        float(chip.need("hbm_bytes_per_s")),
        cache,
        decode_attention_flops(model, context),
        precision,
    )


def _root_between(function: Callable[[float], float], low: float, high: float) -> float:
    from scipy.optimize import brentq  # late: a third of a second, that a run without drafts does not wait for

    return float(brentq(function, low, high))
