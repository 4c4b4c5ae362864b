"""How much power chips drew, what a step and a token took of it, and what held their clocks down."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts
from analyzers.device.power.chip import Chip
from analyzers.device.power.clocks import apart, longer, slowed_by
from analyzers.device.power.energy import within
from analyzers.device.power.result import COLUMNS, PowerResult
from analyzers.device.power.samples import Sampled, sampled, told_at_all
from analyzers.device.power.work import GENERATED, TRAINED, Work, work_of
from analyzers.held import held as chips_of
from analyzers.intervals import Spans, spans
from analyzers.subject import chip_of
from errors import QuestionError
from errors import format as fmt
from errors.numbers import USD
from errors.options import Option
from runs.tables import Tables

PER_KWH = Option(
    "usd_per_kwh",
    USD,
    None,
    "USD of a kilowatt-hour; without it energy has no price",
    unit="USD",
    label="Dollars per kWh",
)
OPTIONS = (PER_KWH,)
ENOUGH = 0.95  # of the time: of less it is said that the rest is taken to be alike


def analyze(tables: Tables, facts: Facts, options: Mapping[str, Any]) -> PowerResult:
    """Pure; O(n log n) in the samples. Raises QuestionError where nothing tells of power."""
    chips, notes = sampled(tables)
    if not chips and told_at_all(tables):
        raise QuestionError(
            "samples of power name no time: how much energy that is nothing tells",
            advice="Write the time above each scrape (date), or ask Prometheus for the samples as JSON.",
        )
    if not chips:
        raise QuestionError(
            "no input tells how much power a chip drew",
            advice="Add scrapes of NVIDIA's DCGM exporter, what nvidia-smi --query-gpu=timestamp,index,power.draw "
            "--format=csv -l 5 wrote, or the run of W&B or MLflow that sampled the machine.",
        )
    work = work_of(tables, facts)
    window, span, said = _window(chips, work)
    told = [Chip(chip, span) for chip in chips]
    limit, limit_from, sheet = _limit(chips, facts)
    rows = pd.DataFrame([one.row(limit) for one in told], columns=list(COLUMNS))
    job = chips_of(tables, facts)
    lower = apart(told, rows, len(work.steps) > 0 and len(rows) <= (job.chips or 0))
    rows["below_reference_share"] = [_below(one, rows) for one in rows["clock_mhz"]]
    seconds, energy = rows["known_s"].sum(), float(rows["energy_j"].sum())
    whole = (int(span.end[0]) - int(span.start[0])) / 1e9
    if len(work.steps):
        worth = _worth(told, work, job.chips)
    else:
        worth = _generated(energy, float(seconds), whole if window == "job" else 0.0, len(told), work, job.chips)
    step_j, token_j, tokens_of, about = worth
    per_kwh = options["usd_per_kwh"]
    return PowerResult(
        window=window,
        window_s=whole,
        devices=rows,
        held_chips=job.chips,
        mean_watts=energy / seconds if seconds else None,
        highest_watts=_most(rows["highest_watts"]),
        limit_watts=limit,
        limit_from=limit_from,
        sheet_watts=sheet,
        energy_j=energy,
        known_share=min(float(seconds / (whole * len(rows))), 1.0) if whole else 0.0,
        step_j=step_j,
        token_j=token_j,
        tokens_of=tokens_of,
        idle_energy_share=None if rows["idle_j"].isna().all() or not energy else float(rows["idle_j"].sum() / energy),
        energy_usd=None if per_kwh is None else energy / 3.6e6 * per_kwh,
        apart=lower,
        slowed=slowed_by(told, work),
        longer=longer(told, work),
        notes=(*notes, *said, *about, *_of_chips(len(rows), job.chips)),
    )


def _window(chips: Sequence[Sampled], work: Work) -> tuple[str, Spans, list[str]]:
    """Of when samples count: while the job ran, or, where its times are not known or no sample lies there, all."""
    ends = [(s.at[0], s.at[-1]) for chip in chips for s in chip.series.values() if len(s.at) > 1]
    if not ends:
        raise QuestionError(
            "each chip's power was sampled once: how much energy that is nothing tells",
            advice="Give several scrapes, or a log of samples.",
        )
    first, last = int(min(a for a, _ in ends)), int(max(b for _, b in ends))
    if work.span is None:
        return "samples", spans([first], [last]), []
    begin, end = max(first, work.span[0]), min(last, work.span[1])
    if begin >= end:
        why = "No sample of power lies while the job ran, by the times of its files: all samples count."
        return "samples", spans([first], [last]), [why]
    return "job", spans([work.span[0]], [work.span[1]]), []


def _limit(chips: Sequence[Sampled], facts: Facts) -> tuple[float | None, str | None, float | None]:
    """(the limit of a chip, where that is known from, what the chip's sheet says)."""
    chip = chip_of(facts)
    sheet = chip.value("power_w") if chip else None
    told = [w for w in (one.limit_watts for one in chips) if w is not None]
    if told:
        return float(np.median(told)), "samples", sheet
    return sheet, None if sheet is None else "catalogue", sheet


def _generated(
    energy: float, known_s: float, served_s: float, sampled_chips: int, work: Work, chips: int | None
) -> tuple[float | None, float | None, str | None, list[str]]:
    """As `_worth`, of tokens that a server generated: all of them count, and so what chips draw where nothing samples
    it. `served_s`: how long requests were served; 0 where nothing was sampled meanwhile."""
    if not work.generated or not known_s or not served_s:
        return None, None, None, []
    of = chips or sampled_chips
    known = known_s / (served_s * sampled_chips)
    notes = [] if of == sampled_chips else [_of_all("A token's energy", of, sampled_chips)]
    if known < ENOUGH:
        notes.append(
            "A token's energy is of all the time in which requests were served: samples are known of "
            f"{fmt.whole_share(known)} of it, and chips are taken to draw as much in the rest."
        )
    return None, energy / known_s * served_s * of / work.generated, GENERATED, notes


def _of_all(what: str, of: int, sampled_chips: int) -> str:
    return (
        f"{what} is that of {fmt.count(of, 'chip')}, each of which is taken to draw what the {sampled_chips:,} sampled "
        "do in the mean."
    )


def _worth(
    told: Sequence[Chip], work: Work, chips: int | None
) -> tuple[float | None, float | None, str | None, list[str]]:
    """(joules of a step of all chips, joules of a token, which tokens, notes)."""
    inside = [within(one.energy, work.in_steps) for one in told]
    seconds = sum(float(known.sum()) for _, known in inside)
    if not seconds:
        return None, None, None, ["No sample of power lies within a step."]
    watts = sum(float(amount.sum()) for amount, _ in inside) / seconds  # of a chip
    some = [one.energy for one in told if len(one.energy.start)]
    middle = work.steps["start_ns"] + work.steps["dur_ns"] // 2
    steps = work.steps[(middle >= min(int(e.start[0]) for e in some)) & (middle <= max(int(e.end[-1]) for e in some))]
    steps = steps if len(steps) else work.steps
    each = float(steps["dur_ns"].mean()) / 1e9
    known = steps.dropna(subset=["tokens"])
    tokens = float(known["tokens"].sum())
    token_j = watts * float(known["dur_ns"].sum()) / 1e9 / tokens if tokens > 0 else None
    of = chips or len(told)
    notes = [] if of == len(told) else [_of_all("A step's energy", of, len(told))]
    return watts * each * of, token_j, TRAINED if token_j is not None else None, notes


def _of_chips(sampled_chips: int, chips: int | None) -> list[str]:
    if chips is None or sampled_chips <= chips:
        return []
    more = f"{fmt.count(sampled_chips, 'chip')} were sampled, more than the {chips:,} of this run"
    return [f"{more}: those of others are among them, and their energy is counted."]


def _below(clock: float | None, rows: pd.DataFrame) -> float | None:
    clocks = rows["clock_mhz"].dropna()
    if clock is None or pd.isna(clock) or len(clocks) < 2:
        return None
    return float(1 - clock / clocks.median())


def _most(values: pd.Series) -> float | None:
    told = values.dropna()
    return float(told.max()) if len(told) else None
