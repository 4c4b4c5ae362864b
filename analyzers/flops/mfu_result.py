"""MFU: the answer."""

from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from analyzers.flops.fingerprint import Fingerprint
from analyzers.flops.precision import Peaks
from analyzers.time.useful import Printed
from catalog.flops import FlopsPerToken

COLUMNS = [
    "attempt",
    "step",
    "start_ns",
    "dur_s",
    "kept",
    "first",
    "implausible",
    "tokens_per_s_per_chip",
    "tflops_per_s_per_chip",
    "mfu",
]
NAMED = 20  # impossible steps that the JSON names


@dataclass(frozen=True, kw_only=True)
class MfuResult:
    """Utilisations are shares of a chip's peak; None where something they need is not known.

    mfu      useful FLOPs of usual steps (kept, plausible, not the first of their attempt) over their time, at the
             native peak: that of the formats that ran
    hfu      the same with recomputed FLOPs added, where they are not among those counted; `hfu_basis`: derived from a
             profile, or modelled from a policy
    emfu     the same FLOPs over the BF16 peak, whatever ran; may exceed 1
    best     the best kept, plausible step
    average  useful FLOPs of all kept steps over the wall time from the first to the last step, restarts, saves and
             lost steps included; `wall_s`: that time, in seconds. A last step of unknown end is in neither. Both are
             None where profiles alone tell of steps (`profiled`) and saw only some of them

    `convention`: how FLOPs are counted, `job` for the job's own. `flops`: a token's, by that convention (by `causal`
    where the job's own counts), split. `rows`: one per step taken, see COLUMNS; rates and MFU by the convention.
    """

    convention: str
    mfu: float | None
    hfu: float | None
    emfu: float | None
    best: float | None
    average: float | None
    tflops_per_s_per_chip: float | None
    tokens_per_s_per_chip: float | None
    flops_per_token: float | None
    wall_s: float | None
    peaks: Peaks
    hfu_basis: str
    model: str | None
    seq: int | None
    flops: FlopsPerToken | None
    printed: Printed
    fingerprint: Fingerprint
    conventions: tuple[str, ...]
    profiled: bool = False
    rows: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=COLUMNS))
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        false = self.rows[self.rows["implausible"] != ""] if len(self.rows) else self.rows
        usual = self.fingerprint.matching
        return {
            "mfu": self.mfu,
            "hfu": self.hfu,
            "emfu": self.emfu,
            "convention": self.convention,
            "peak_flops_per_s": self.peaks.native,
            "flops_per_token": self.flops_per_token,
            "tokens_per_s_per_chip": self.tokens_per_s_per_chip,
            "average": self.average,
            "best": self.best,
            "tflops_per_s_per_chip": self.tflops_per_s_per_chip,
            "wall_s": self.wall_s,
            "bf16_peak_flops_per_s": self.peaks.bf16,
            "peak_source": self.peaks.source or None,
            "chip": self.peaks.chip and self.peaks.chip.name,
            "precision": self.peaks.precision,
            "model": self.model,
            "seq": self.seq,
            "hfu_basis": self.hfu_basis or None,
            "printed_convention": usual[0].name if usual else None,
            "printed_tflops_per_s_per_chip": self.printed.tflops_per_s,
            "printed_tokens_per_s_per_chip": self.printed.tokens_per_s,
            "flops_parts": self.flops and self.flops.parts(),
            "implausible_steps": len(false),
            "implausible": [
                {"step": None if step is pd.NA else int(step), "reason": reason}
                for step, reason in zip(false["step"].astype("Int64"), false["implausible"].head(NAMED), strict=False)
            ],
            "fingerprint": self.fingerprint.to_dict(),
            "notes": list(self.notes),
        }
