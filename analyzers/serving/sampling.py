"""How often a server is sampled, and where its samples leave a gap of which nothing is known.

The usual gap is the median of those between samples. An SGLang log writes a line for each batch of prompts, in bursts,
and lines that print an output rate at an even pace: where only some lines print one, these tell the usual gap.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

LONG_GAP = 5.0  # usual gaps
SILENT = 1.5  # usual gaps, from which a log that follows on an idle line was silent


@dataclass(frozen=True)
class Gaps:
    """Of one server's samples in order of time: `gap` since the sample before (NaN for the first), `usual` of them
    (None where all samples are of one moment), `silent`: in it a log was silent because nothing ran, `far`: it is
    over LONG_GAP usual ones, and what happened in it is not known. In the unit of the times given."""

    gap: np.ndarray
    usual: float | None
    silent: np.ndarray
    far: np.ndarray

    @property
    def lasts(self) -> np.ndarray:
        """The time that each sample stands for: since the one before it, after a gap or a silence one usual gap."""
        return np.where(np.isnan(self.gap) | self.far | self.silent, self.usual or 1.0, self.gap)


def gaps_of(rows: pd.DataFrame, at: np.ndarray) -> Gaps:
    """`rows`: of the table `engine`, of one server in order of time; `at`: their times."""
    gap = np.diff(at.astype(float), prepend=np.nan)
    silent = _silent(rows)
    usual = _paced(rows, at, silent) or _median(gap[~silent]) or _median(gap)
    if usual is None:
        none = np.zeros(len(rows), dtype=bool)
        return Gaps(gap, None, none, none)
    silent &= gap > SILENT * usual
    return Gaps(gap, usual, silent, (gap > LONG_GAP * usual) & ~silent)


def _median(gap: np.ndarray) -> float | None:
    return float(np.median(gap[gap > 0])) if (gap > 0).any() else None


def _paced(rows: pd.DataFrame, at: np.ndarray, silent: np.ndarray) -> float | None:
    """The usual gap without lines of a log that print no output rate; None where there are none, or no others. Between
    lines of a log from before and after scrapes of its server lie these."""
    paced = (rows["output_tokens_per_s"].notna() | ~rows["log"]).to_numpy(dtype=bool)
    return None if paced.all() or silent.any() else _median(np.diff(at[paced].astype(float)))


def _silent(rows: pd.DataFrame) -> np.ndarray:
    """Which lines of a log follow on one of the same log that says that nothing ran, waited or was generated.

    vLLM goes on counting every interval and leaves out the lines of those in which nothing happened, so that the next
    line tells of its own interval alone.
    """
    printed = (rows["output_tokens_per_s"].notna() & rows["output_tokens"].isna()).to_numpy()
    nothing = [(rows[c].fillna(0) == 0).to_numpy() for c in ("waiting", "prompt_tokens_per_s", "output_tokens_per_s")]
    idle = printed & (rows["running"] == 0).fillna(False).to_numpy(dtype=bool) & np.logical_and.reduce(nothing)
    one = rows["source"].astype("string").fillna("").to_numpy()
    after = np.zeros(len(rows), dtype=bool)
    after[1:] = idle[:-1] & printed[1:] & (one[1:] == one[:-1])
    return after
