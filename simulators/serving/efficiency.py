"""Shares of the peaks that an engine reaches: assumed as a range until a run of the machine has been measured.

What is known: Llama 3.3 70B on 8 TPU v6e (vLLM, 1,000 tokens in and out) ran at 52 % and 44 % of its roofline at 64 and
128 requests at a time, everything included. NVIDIA's estimator, fitted to kernels measured on H100, puts Llama 3.1 70B
on 8 of them at 52 % of its own ideal for one sequence, and at 69 to 84 % for reading prompts. Fits of this model to
vLLM on RTX PRO 6000 reach 70 to 85 % of the memory bandwidth and about 60 % of the peak. But gpt-oss-120b on one B200
gave 701 output tokens/s where these shares give 4,600: software that does not use what a chip has is as real. Hence the
range below, whose slow end is so slow that it holds that measurement.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Efficiency:
    """`bandwidth`, `compute`, `communication`: shares of the peak of memory, matrix units and links, 0 to 1.
    `step_s`: time of each step that does not depend on its batch; `sequence_s`: time for each sequence in it.
    `hop_s`: latency of one hop of a collective, None: as assumed for the kind of link. `basis`: how they are known.
    """

    bandwidth: float = 1.0
    compute: float = 1.0
    communication: float = 1.0
    step_s: float = 0.0
    sequence_s: float = 0.0
    hop_s: float | None = None
    basis: str = "assumed"

    def to_dict(self) -> dict[str, float | str | None]:
        return dict(vars(self))


IDEAL = Efficiency(hop_s=0.0, basis="ideal: every peak reached, nothing waited for")
SLOW = Efficiency(bandwidth=0.08, compute=0.06, communication=0.15, step_s=6e-3, sequence_s=3e-5)
TYPICAL = Efficiency(bandwidth=0.7, compute=0.5, communication=0.5, step_s=1.5e-3, sequence_s=5e-6)
FAST = Efficiency(bandwidth=0.92, compute=0.85, communication=0.9, step_s=0.2e-3, sequence_s=0.0)
SOURCE = (
    "No run of this machine was given to calibrate on. Assumed: 8 to 92 % of the memory bandwidth, 6 to 85 % of the "
    "peak FLOP/s, 15 to 90 % of the links, 0.2 to 6 ms a step. The range is wide because measurements are: Llama 3.3 "
    "70B on 8 TPU v6e reached 52 % and 44 % of its roofline, gpt-oss-120b on one B200 a seventh of what is usual."
)
