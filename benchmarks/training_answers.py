"""Published jobs beside what the planner says of them, each by a fit that knows nothing of their sources.

The jobs of the catalogue are its rows; DeepSeek-V3 is no row there: its report (arXiv 2412.19437) tells 180 thousand
H800-hours for 10^12 tokens, 16 pipeline stages, experts over 64 ways, ZeRO-1 and no tensor parallelism, 15,360
sequences of 4,096 tokens a step, products in FP8, one layer that predicts a further token, and a schedule that hides
what goes to experts behind another microbatch's products.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from catalog.published import published
from simulators.training.backtest import Case, cases, made
from simulators.training.efficiency import Efficiency
from simulators.training.written import MEGATRON

JOBS = {  # rows of the catalogue
    "r0619": "Llama-3.1-405B on 16,384 H100",
    "r0033": "MaxText 256B on 512 TPU v5p",
    "r0039": "MaxText 1,024B on 2,048 TPU v5p",
}
DEEPSEEK = "DeepSeek-V3 on 2,048 H800"
HOURS, TOKENS = 180e3, 1e12


def deepseek() -> Case:
    """DeepSeek-V3 as its report tells it, in the form of a row."""
    like = next(r for r in published() if r.model == "deepseek3-671b" and r.convention == "megatron")
    row = replace(
        like,
        id=DEEPSEEK,
        chip="H800 SXM",
        chips=2048,
        precision="fp8",
        parallelism={"tensor": 1, "pipeline": 16, "context": 1, "expert": 64},
        seq=4096,
        global_batch_tokens=15_360 * 4096,
        printed={"tokens_per_s": f"{TOKENS / HOURS / 3600:.1f}"},
        source="arXiv:2412.19437",
        note="",
    )
    case = made(row, replace(MEGATRON, exchange_beside=True))
    if case is None:
        raise ValueError("the catalogue has no numbers for DeepSeek-V3 on H800")
    return case


def answers(
    shares: Callable[[str], Callable[[Case], Efficiency]], known: Callable[[Case], Efficiency]
) -> list[dict[str, Any]]:
    """Each job's rate as published and as planned; `shares` gives those of a fit without a source, `known` those of
    the fit to all."""
    rows = {case.run.id: case for case in cases()}
    told = [(name, rows[row]) for row, name in JOBS.items()] + [(DEEPSEEK, deepseek())]
    return [
        _answer(name, case, shares(case.source)(case))
        | {"error_known": _short(case.step_s / case.predicted_s(known(case)) - 1)}
        for name, case in told
    ]


def _answer(name: str, case: Case, shares: Efficiency) -> dict[str, Any]:
    timed = case.peaks.timed(replace(shares, scores=case.scores)).seconds
    best = int(np.argmin(timed))
    tokens = case.batch * case.work.seq / case.run.chips
    flops = case.work.flops_per_token
    return {
        "job": name,
        "source": case.source,
        "layout": {axis: n for axis, n in case.layouts.one(best).items() if n != 1},
        "published_step_s": _short(case.step_s),
        "step_s": _short(float(timed[best])),
        "published_tokens_per_s_per_chip": _short(tokens / case.step_s),
        "tokens_per_s_per_chip": _short(tokens / float(timed[best])),
        "published_tflops_per_s_per_chip": _short(flops * tokens / case.step_s / 1e12),
        "tflops_per_s_per_chip": _short(flops * tokens / float(timed[best]) / 1e12),
        "error": _short(case.step_s / float(timed[best]) - 1),
    }


def _short(value: float) -> float:
    return float(f"{value:.4g}")
