"""How many tokens and useful FLOPs each step was: by the job's own count, or by a convention of ours."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.base import Facts, fact
from analyzers.subject import devices_per_chip, sequence_of
from analyzers.time.history import step_rows
from runs.ledger import Ledger
from runs.tables import Tables

UNCOUNTED = 0.1  # of the time in computing whose FLOPs nobody counted: from here on, a count of the rest is a bound
TOO_LITTLE = 0.01  # of the time: so little useful maths beside that is no figure
GENERATES = "steps_generate"  # a fact: the steps are of reinforcement learning, and generate what they train on
ALIKE = 0.02  # step lines print seconds to the millisecond: tokens per step within this of each other are one number


def uncounted(ledger: Ledger) -> bool:
    """Whether the FLOPs of a good part of the computing are not known: useful maths is then what it is at least."""
    return ledger.amount("compute_unsplit") >= UNCOUNTED * ledger.chip_seconds


def useful_share(ledger: Ledger) -> float | None:
    """Useful maths as a part of the chip time; None where nothing tells, or next to nothing was counted."""
    if ledger.find("useful_maths") is None or not ledger.chip_seconds:
        return None
    share = ledger.amount("useful_maths") / ledger.chip_seconds
    return None if share < TOO_LITTLE and uncounted(ledger) else share


def generates(facts: Facts) -> bool:
    """Whether steps generate and score what they train on: what training takes of a token is not what they take."""
    return fact(facts, GENERATES) is True


@dataclass(frozen=True)
class Printed:
    """What step lines printed, per chip: medians of TFLOP/s and tokens/s, None where the job does not print them."""

    tflops_per_s: float | None
    tokens_per_s: float | None


def _lines(tables: Tables, facts: Facts) -> pd.DataFrame:
    columns = ["step", "dur_ns", "tokens_per_s_per_chip", "model_flops_per_chip"]
    rows = step_rows(tables, facts, [*columns, "capture"])
    rows = rows[rows["capture"].isna() & (rows["dur_ns"] > 0)]
    return rows[columns].astype(float)


def printed(tables: Tables, facts: Facts) -> Printed:
    """The job's own rates of training: of the steps that print both, the one with the median TFLOP/s, so that the two
    belong together."""
    lines = _lines(tables, facts)
    rate = lines["model_flops_per_chip"] / lines["dur_ns"] / 1e3
    tokens = lines["tokens_per_s_per_chip"]
    both = rate[rate.notna() & (tokens > 0)]
    if len(both):
        middle = both.sort_values().index[len(both) // 2]
        per_token = float((rate[both.index] / tokens[both.index]).median())
        return Printed(per_token * float(tokens[middle]), float(tokens[middle]))
    return Printed(_median(rate), None if generates(facts) else _median(tokens))


def tokens_of_steps(tables: Tables, facts: Facts, steps: pd.Series) -> np.ndarray | None:
    """Tokens per chip in each of `steps`, by step number; NaN where not known, None where nothing tells.

    A step's tokens = printed tokens/s x printed seconds. Where all are alike but for rounding, they are taken as one
    number: the stated batch where it agrees, else the sum of the seconds over the sum of seconds per token. Where no
    line prints a rate, a step's tokens are those of the global batch over the chips, as the log states them.
    """
    lines = _lines(tables, facts)
    lines = lines[lines["tokens_per_s_per_chip"] > 0].drop_duplicates("step", keep="last")
    if not len(lines):
        one = _of_global_batch(facts)
        return None if one is None else np.full(len(steps), one)
    each = lines["tokens_per_s_per_chip"] * lines["dur_ns"] / 1e9
    usual = float(each.median())
    alike = (each / usual - 1).abs() <= ALIKE
    of = lines[alike] if alike.any() else lines
    one = float(of["dur_ns"].sum() / 1e9 / (1 / of["tokens_per_s_per_chip"]).sum())
    one = next((b for b in _stated(facts) if abs(b / one - 1) <= ALIKE), one)
    of_step = each.where(~alike, one).set_axis(lines["step"])
    found = of_step.reindex(steps.astype(float)).to_numpy(dtype=float)
    return np.where(np.isnan(found) & bool(alike.all()), one, found)


def _of_global_batch(facts: Facts) -> float | None:
    """Tokens per chip and step: sequences of the global batch x their length / chips; None where one is not known."""
    batch, length, chips = fact(facts, "global_batch"), sequence_of(facts), fact(facts, "chips")
    return float(batch) * length / float(chips) if batch and length and chips else None


def _stated(facts: Facts) -> list[float]:
    """Tokens per chip and step by the configuration that the log printed, without and with gradient accumulation."""
    batch, length = fact(facts, "per_device_batch_size"), fact(facts, "max_target_length")
    if not batch or not length:
        return []
    one = batch * length * devices_per_chip(facts)
    return [one, one * (fact(facts, "gradient_accumulation_steps") or 1)]


def _median(values: pd.Series) -> float | None:
    values = values.dropna()
    return float(values.median()) if len(values) else None
