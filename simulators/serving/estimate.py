"""What a setup bears, by plain arithmetic: quick, for choosing what to simulate; it knows no queue.

A batch of B sequences gives B tokens a step, and takes in B / output new prompts meanwhile:

    time per output token(B) = decode step(B) + B / output x time to read a prompt
    rate(B) = B / (output x time per output token(B))

The estimate is the rate of the largest B that seats, cache and the objective for the time per output token allow.

The most that could be borne is reckoned as well: prompts are then read in the steps that generate anyway, each step as
the mean one or a prompt in one of many, whichever is quicker. No simulation should come out above it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from simulators.serving.efficiency import TYPICAL, Efficiency
from simulators.serving.memory import max_sequences, room
from simulators.serving.objectives import Objectives, Shape
from simulators.serving.setup import Setup
from simulators.serving.step import (
    PARTS,
    SPAN_WINDOW,
    StepModel,
    decode_s,
    positions,
    prefill_s,
    step_model,
    step_seconds,
)


@dataclass(frozen=True)
class Estimate:
    """Of one replica. `rate_per_s` 0: it cannot keep the objectives, `why` in words. `limit`: what holds the batch
    down: seats, cache or tpot_s. `most_per_s`: what it could bear at best; it never bears less than `rate_per_s`."""

    rate_per_s: float
    batch: int = 0
    ttft_s: float = float("nan")
    tpot_s: float = float("nan")
    limit: str = ""
    why: str = ""
    most_per_s: float = 0.0


def estimate(setup: Setup, shape: Shape, objectives: Objectives, efficiency: Efficiency = TYPICAL) -> Estimate:
    """The estimate for one replica of `setup`."""
    whole = shape.prompt + shape.output
    found = room(setup, whole)
    if not found.fits:
        return Estimate(0.0, why=found.why)
    model = step_model(setup, efficiency)
    read = prefill_s(model, shape.prompt, shape.cached, setup.token_budget)
    context = shape.prompt + shape.output / 2

    def gap(batch: int) -> float:
        return decode_s(model, batch, context) + batch / shape.output * read

    alone = decode_s(model, 1, context)
    for name, value in (("ttft_s", read), ("tpot_s", alone), ("e2e_s", read + (shape.output - 1) * alone)):
        most = getattr(objectives, name)
        if most is not None and value > most and (name != "tpot_s" or shape.output > 1):
            words = {"ttft_s": "reading the prompt takes", "tpot_s": "a token takes", "e2e_s": "an answer takes"}[name]
            return Estimate(0.0, 1, read, alone, name, f"{words} {value:.3g} s even alone, {most:.3g} s are allowed")
    cache = max_sequences(setup, whole)
    most = min(cache, setup.max_sequences * setup.groups)
    limit = "cache" if cache < setup.max_sequences * setup.groups else "seats"
    per_token = _per_token(objectives, shape, read)
    if gap(most) > per_token:
        most, limit = _largest(gap, per_token, most), "tpot_s" if objectives.tpot_s == per_token else "e2e_s"
    step = gap(most)
    rate = most / (shape.output * step)
    return Estimate(rate, most, read, step, limit, most_per_s=max(rate, _most(setup, shape, model, context, per_token)))


def _most(setup: Setup, shape: Shape, model: StepModel, context: float, per_token_s: float) -> float:
    """The rate of the largest batch whose time per token could be kept, prompts read beside it at the least cost."""
    new, budget = max(shape.prompt - shape.cached, 1), setup.token_budget * setup.groups

    def gap(batch: float) -> float:
        prompts = batch / shape.output
        often = min(1.0, prompts * max(1.0, new / budget))  # share of the steps in which prompts are read
        plain, beside = (_step_s(model, batch, context, p, shape) for p in (0.0, prompts / often))
        return min(_step_s(model, batch, context, prompts, shape), plain + often * (beside - plain))

    seats = setup.max_sequences * setup.groups
    most = min(max_sequences(setup, shape.prompt + shape.output), seats, max(budget / (1 + new / shape.output), 1))
    if gap(most) > per_token_s:
        most = _largest(gap, per_token_s, int(most))
    return most / (shape.output * gap(most))


def _step_s(model: StepModel, batch: float, context: float, prompts: float, shape: Shape) -> float:
    """Time of a step in which `batch` sequences generate and `prompts` others, or a part of one, are read."""
    windows, new = model.spans[:, SPAN_WINDOW], prompts * (shape.prompt - shape.cached)
    looked = batch * np.minimum(context, windows)
    pairs = prompts * np.array([positions(float(shape.prompt), w) - positions(float(shape.cached), w) for w in windows])
    read = prompts * np.minimum(float(shape.prompt), windows + (shape.prompt - shape.cached))
    return step_seconds(
        model.scalars,
        model.spans,
        model.experts,
        float(new),
        float(batch),
        batch + prompts,
        float(batch),
        batch + prompts,
        looked,
        pairs,
        read,
        1.0,
        np.zeros(len(PARTS)),
    )


def _per_token(objectives: Objectives, shape: Shape, read: float) -> float:
    """Seconds that a token may take, by its own objective or by that of the whole answer."""
    limits = [objectives.tpot_s] if objectives.tpot_s is not None and shape.output > 1 else []
    if objectives.e2e_s is not None and shape.output > 1:
        limits.append((objectives.e2e_s - read) / (shape.output - 1))
    return min(limits, default=float("inf"))


def _largest(gap: Callable[[int], float], most_s: float, high: int) -> int:
    """The largest batch whose time per token is at most `most_s`; at least 1."""
    low = 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if gap(middle) <= most_s else (low, middle)
    return low
