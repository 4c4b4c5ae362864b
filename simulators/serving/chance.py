"""Numbers drawn at random within the compiled loop: the Mersenne Twister, as numpy's `RandomState` has it.

Its state is the caller's, so that a loop that is left for more room goes on where it was, whichever thread runs it.
"""

from typing import NamedTuple

import numpy as np

from simulators.serving.compiled import compiled

_WORDS, _APART = 624, 397
_HIGH, _LOW, _TWIST = 0x80000000, 0x7FFFFFFF, 0x9908B0DF


class Chance(NamedTuple):
    """The words of the twister, and how many of them were drawn."""

    words: np.ndarray
    drawn: np.ndarray


def chance(seed: int) -> Chance:
    """What draws the numbers of this seed."""
    state = np.random.RandomState(seed & 0xFFFFFFFF).get_state(legacy=False)["state"]
    return Chance(state["key"].copy(), np.array([state["pos"]], dtype=np.int64))


@compiled
def _twist(words: np.ndarray) -> None:
    """As many new words."""
    for k in range(_WORDS):
        both = (np.int64(words[k]) & _HIGH) | (np.int64(words[(k + 1) % _WORDS]) & _LOW)
        odd = _TWIST if both & 1 else 0
        words[k] = np.uint32(np.int64(words[(k + _APART) % _WORDS]) ^ (both >> 1) ^ odd)


@compiled
def _word(c: Chance) -> int:
    if c.drawn[0] == _WORDS:
        _twist(c.words)
        c.drawn[0] = 0
    y = np.int64(c.words[c.drawn[0]])
    c.drawn[0] += 1
    y ^= y >> 11
    y ^= (y << 7) & 0x9D2C5680
    y ^= (y << 15) & 0xEFC60000
    return y ^ (y >> 18)  # pyright: ignore[reportReturnType]  # compiled, it is a plain number


@compiled
def draw(c: Chance) -> float:
    """The next number in [0, 1)."""
    high, low = _word(c) >> 5, _word(c) >> 6
    return (high * 67108864.0 + low) / 9007199254740992.0
