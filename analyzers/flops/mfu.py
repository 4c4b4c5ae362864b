"""MFU: which share of what the chips could compute became useful maths; HFU and EMFU beside it, step by step."""

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts, FactValue, fact, with_options
from analyzers.device.counters import counters, together
from analyzers.flops.fingerprint import fingerprint
from analyzers.flops.formats import format_of
from analyzers.flops.mfu_result import COLUMNS, MfuResult
from analyzers.flops.precision import PEAK, PRECISION, Peaks, bounded, peaks
from analyzers.flops.ran import Ran, ran_in_steps
from analyzers.flops.recomputed import HELD, HOLDS_IT, REMAT, Again, computed_again, useful_part
from analyzers.subject import CHIP, MODEL, SEQ, devices_per_chip, model_of, sequence_of
from analyzers.time.history import History
from analyzers.time.job_past import steps_taken
from analyzers.time.steps_alone import alone_ns
from analyzers.time.useful import Printed, generates, printed, tokens_of_steps
from catalog.flops import NAMES as CONVENTION_NAMES
from catalog.flops import FlopsPerToken, flops_per_token
from catalog.models import Model
from errors import QuestionError
from errors.numbers import Number
from errors.options import NUMBER, Option
from runs.tables import Tables

JOB, SHAPES = "job", "shapes"
PRINTED = "FLOPs are as the job printed them, by its own convention."
STATED = "FLOPs of a step are those stated with the model, by whoever stated them."
OWN = (JOB, SHAPES)  # counts that are no convention of ours: by the job, and by the operations that ran
CONVENTION = Option(
    "convention",
    (*OWN, *CONVENTION_NAMES),
    None,
    "how FLOPs are counted; job: as printed or stated; shapes: by what a profile saw",
)
OPTIONS: tuple[Option, ...] = (
    MODEL,
    CHIP,
    SEQ,
    CONVENTION,
    PRECISION,
    PEAK,
    REMAT,
    Option(
        "tflops_per_s", NUMBER, None, "TFLOP/s per chip, as printed somewhere: asks about that number", unit="TFLOP/s"
    ),
    Option(
        "tokens_per_s", NUMBER, None, "tokens/s per chip, as printed somewhere: asks about that number", unit="tokens/s"
    ),
    Option("printed_mfu", Number(1e-6, 1e6), None, "MFU as printed somewhere: a share up to 1, else per cent"),
)


@dataclass(frozen=True)
class _Subject:
    """What is asked about, from facts and options."""

    model: Model | None
    seq: int | None
    peaks: Peaks
    notes: tuple[str, ...]

    def counted(self, convention: str) -> FlopsPerToken | None:
        """A token's FLOPs; None where the model or its sequence is not known."""
        if self.model is None or self.seq is None:
            return None
        return flops_per_token(self.model, self.seq, "causal" if convention in OWN else convention)

    def need(self, convention: str) -> FlopsPerToken:
        """The same where both are known."""
        found = self.counted(convention)
        assert found is not None  # asked before
        return found


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> MfuResult:
    """MFU of a run from its steps, or of rates that the options state (of a run or of a model alone).

    Raises QuestionError where no input tells of useful work, and for options that contradict each other.
    """
    facts = with_options(facts, options, ("model", "chip", "seq"))
    for name in ("tflops_per_s", "tokens_per_s", "printed_mfu", "peak_flops_per_s"):
        if options[name] is not None and options[name] <= 0:
            raise QuestionError(f"option {name}={options[name]:g}", expected="a number above 0")
    subject = _subject(tables, facts, options)
    if options["tflops_per_s"] or options["tokens_per_s"]:
        return _stated(subject, tables, facts, options)
    return _from_steps(subject, tables, facts, options)


def _subject(tables: Tables, facts: Facts, options: dict[str, Any]) -> _Subject:
    notes: tuple[str, ...] = ()
    try:
        model = model_of(facts)
    except QuestionError as e:
        if options["model"]:
            raise
        model, notes = None, (f"The run's model is not known here: {e}.",)
    said = fact(facts, "model")
    inner = {"seq": FactValue(said.get("seq_len"), "declared", "model")} if isinstance(said, dict) else {}
    seq = sequence_of(facts) or sequence_of(inner)
    return _Subject(model, seq, peaks(tables, facts, options), notes + (model.notes if model else ()))


def _stated(subject: _Subject, tables: Tables, facts: Facts, options: dict[str, Any]) -> MfuResult:
    """The utilisation of rates that somebody printed."""
    told = Printed(options["tflops_per_s"], options["tokens_per_s"])
    convention = options["convention"] or (JOB if told.tflops_per_s else "causal")
    counted = subject.counted(convention)
    if convention in OWN and not told.tflops_per_s:
        raise QuestionError("without tflops_per_s there is no count of the job's own", advice="Leave convention out.")
    if convention not in OWN and (counted is None or not told.tokens_per_s):
        raise QuestionError(
            f"FLOPs by the convention {convention} need a model, a sequence length and tokens per second",
            advice="Ask with --option model=NAME --option seq=N --option tokens_per_s=RATE.",
        )
    rate = told.tflops_per_s if convention in OWN else told.tokens_per_s * counted.total / 1e12
    again = _again(subject, tables, facts, options, convention)
    return _result(
        subject,
        options,
        convention,
        told,
        again,
        rate=rate / (again.factor or 1) if rate and convention == SHAPES else rate,
        tokens=told.tokens_per_s,
        said=PRINTED if convention == JOB else "",
    )


def _from_steps(subject: _Subject, tables: Tables, facts: Facts, options: dict[str, Any]) -> MfuResult:
    judged = bounded(facts, subject.peaks)
    past = steps_taken(tables, judged)
    if not len(past.rows):
        raise QuestionError(
            "there are no steps to take a rate from",
            advice="Add a training log with step lines, or ask with --option tflops_per_s=RATE --option chip=NAME.",
        )
    tokens = tokens_of_steps(tables, facts, past.rows["step"])
    job = _by_the_job(past, facts)
    counted = tokens is not None and subject.counted("causal") is not None
    own = CONVENTION_NAMES if counted and not generates(facts) else ()
    ran = ran_in_steps(tables, facts) if options["convention"] == SHAPES or (job is None and not own) else None
    convention = options["convention"] or ("causal" if own else JOB if job is not None or ran is None else SHAPES)
    if (convention == JOB and job is None) or (convention == SHAPES and ran is None):
        raise _unknown_work(tokens is not None, facts)
    if convention not in OWN and not own:
        if generates(facts):
            raise _unknown_work(tokens is not None, facts)
        raise QuestionError(
            f"FLOPs by the convention {convention} need a model, a sequence length and printed tokens per second",
            advice="Ask with convention=job for the count that the job printed.",
        )
    again = _again(subject, tables, facts, options, convention)
    if tokens is not None and convention not in OWN:
        useful = tokens * subject.need(convention).total
    elif convention == SHAPES and ran is not None:
        executed = ran.flops.reindex(past.rows["step"].astype(float)).to_numpy(dtype=float)
        useful = executed / (again.factor or 1)
    else:
        useful = job if job is not None else np.full(len(past.rows), np.nan)
    took = alone_ns(tables, judged, past).to_numpy(dtype=float, na_value=np.nan) / 1e9
    rows = _rows(past, took, useful, tokens, subject.peaks)
    usual = rows[rows["kept"] & (rows["implausible"] == "") & rows["tflops_per_s_per_chip"].notna()]
    usual = usual[usual["hung_ns"] == 0]
    usual = usual[~usual["first"]] if (~usual["first"]).any() else usual
    seconds = float(usual["dur_s"].sum())
    wall_s, notes = _wall(rows, past)
    found = _result(
        subject,
        options,
        convention,
        printed(tables, facts),
        again,
        tokens=_over(usual, "tokens_per_s_per_chip"),
        rate=float((usual["tflops_per_s_per_chip"] * usual["dur_s"]).sum()) / seconds if seconds else None,
        said=_said(convention, past, ran),
    )
    counts = rows["kept"] & _inside(rows) if past.timed else rows["kept"] & (rows["implausible"] == "")
    done = _filled(useful, counts.to_numpy(dtype=bool))
    native = subject.peaks.native
    return replace(
        found,
        rows=rows[COLUMNS],
        wall_s=wall_s,
        profiled=past.origin == "profile",
        conventions=((JOB,) if job is not None else ()) + ((SHAPES,) if ran else ()) + own,
        best=float(usual["mfu"].max()) if native and len(usual) else None,
        average=done / wall_s / native if native and wall_s else None,
        notes=(*found.notes, *past.notes, *notes, *_false_steps(rows), *together(counters(tables), _devices(facts))),
    )


def _devices(facts: Facts) -> float | None:
    """How many devices the run held, else how many its log counts; None where nothing tells."""
    chips = fact(facts, "chips")
    devices = chips * devices_per_chip(facts) if isinstance(chips, int | float) else fact(facts, "devices")
    return devices if isinstance(devices, int | float) else None


def _by_the_job(past: History, facts: Facts) -> np.ndarray | None:
    """FLOPs of one chip in each step by the job's own count: as its lines print them, else as a person stated them of
    the model; None where neither does."""
    printed_ = past.rows["model_flops_per_chip"].to_numpy(dtype=float, na_value=np.nan)
    if not np.isnan(printed_).all():
        return printed_
    said, chips = fact(facts, "model"), fact(facts, "chips")
    stated = said.get("model_flops_per_step") if isinstance(said, dict) else None
    if not chips or not isinstance(stated, int | float) or stated <= 0:
        return None
    return np.full(len(past.rows), float(stated) / float(chips))


def _said(convention: str, past: History, ran: Ran | None) -> str:
    if convention == JOB:
        return PRINTED if past.rows["model_flops_per_chip"].notna().any() else STATED
    if convention != SHAPES or ran is None:
        return ""
    return (
        "FLOPs are those of the operations that a profile saw, by their shapes. "
        f"Operations whose FLOPs are told take {ran.counted * 100:.3g} % of the time computing."
    )


def _again(subject: _Subject, tables: Tables, facts: Facts, options: dict[str, Any], convention: str) -> Again:
    """What is computed again beside the FLOPs of a convention; with those that ran, what of them."""
    found = computed_again(tables, facts, options, subject.counted(convention), convention)
    return useful_part(found) if convention == SHAPES else found


def _unknown_work(has_tokens: bool, facts: Facts) -> QuestionError:
    if generates(facts):
        return QuestionError(
            "the steps generate and score what they train on, and no input says how many FLOPs that is",
            advice="Add a profile, or ask about the update alone with --option tokens_per_s=RATE.",
        )
    if has_tokens:
        return QuestionError(
            "the steps have tokens, but the model or its sequence length is not known",
            advice="Ask with --option model=NAME --option seq=N.",
        )
    return QuestionError(
        "no input says how many FLOPs or tokens a step is",
        advice="Add a training log with step lines, or ask with --option tokens_per_s=RATE.",
    )


def _rows(past: History, took_s: np.ndarray, useful: np.ndarray, tokens: np.ndarray | None, of: Peaks) -> pd.DataFrame:
    """Rates and MFU of each step, by the convention's FLOPs; impossible ones with the reason spelled out."""
    rows = past.rows.assign(dur_s=took_s)
    rows["kept"], rows["first"] = rows["kept"].astype(bool), rows["first"].fillna(False).astype(bool)
    with np.errstate(divide="ignore", invalid="ignore"):
        rows["tflops_per_s_per_chip"] = np.where(rows["dur_s"] > 0, useful / rows["dur_s"] / 1e12, np.nan)
        if tokens is not None:
            rows["tokens_per_s_per_chip"] = np.where(rows["dur_s"] > 0, tokens / rows["dur_s"], np.nan)
    rows["mfu"] = rows["tflops_per_s_per_chip"] * 1e12 / of.native if of.native else np.nan
    over = (rows["tflops_per_s_per_chip"] * 1e12 > of.most) if of.most else pd.Series(False, index=rows.index)
    rows.loc[over & (rows["implausible"] == ""), "implausible"] = "its FLOP/s exceed the chip's peak"
    rows["tokens_per_s_per_chip"] = rows["tokens_per_s_per_chip"].astype(float)
    false = rows["implausible"] != ""
    rows.loc[false, "implausible"] = [
        f"{r.dur_s:.4g} s at {_tflops(r.tflops_per_s_per_chip)} TFLOP/s: {r.implausible}"
        for r in rows[false].itertuples()
    ]
    return rows


def _tflops(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _filled(useful: np.ndarray, kept: np.ndarray) -> float:
    """FLOPs of all kept steps; a step whose FLOPs no line tells counts as the median step."""
    known = useful[~np.isnan(useful)]
    return float(np.where(np.isnan(useful), np.median(known) if len(known) else 0.0, useful)[kept].sum())


def _over(rows: pd.DataFrame, column: str) -> float | None:
    """The average of a rate over time; None where no step has it."""
    rows = rows[rows[column].notna()]
    seconds = float(rows["dur_s"].sum())
    return float((rows[column] * rows["dur_s"]).sum()) / seconds if seconds else None


def _wall(rows: pd.DataFrame, past: History) -> tuple[float | None, list[str]]:
    """Seconds from the start of the first step to the end of the last; without times of day the sum of the steps that
    can be true. None where profiles saw only some of the steps: those between ran, and nothing tells how."""
    if past.origin == "profile" and (rows["step"].diff().dropna() != 1).any():
        return None, ["Profiles saw only some of the steps: what MFU is on average over the time between is not known."]
    if past.timed:
        start = rows["start_ns"].astype("Int64")
        return float((start + rows["dur_ns"].fillna(0)).max() - start.min()) / 1e9, []
    total = float(rows["dur_s"][rows["implausible"] == ""].sum())
    return total or None, ["The input carries no times of day: the average leaves out the time between attempts."]


def _inside(rows: pd.DataFrame) -> pd.Series:
    """Whether a step began before the last that is known of the time: a last step whose end nothing tells began there,
    so that its FLOPs lie beyond it."""
    start = rows["start_ns"].astype("Int64")
    return (start < (start + rows["dur_ns"].fillna(0)).max()).fillna(False).astype(bool)


def _false_steps(rows: pd.DataFrame) -> list[str]:
    false = rows[rows["implausible"] != ""]
    named = [f"Step {r.step} cannot be true: {r.implausible}." for r in false.head(3).itertuples()]
    more = [f"{len(false) - 3} more steps cannot be true either; none is in the figures."] if len(false) > 3 else []
    return named + more


def _result(
    subject: _Subject,
    options: dict[str, Any],
    convention: str,
    told: Printed,
    again: Again,
    *,
    rate: float | None,
    tokens: float | None,
    said: str = "",
) -> MfuResult:
    """Everything that follows from one rate of useful FLOPs, TFLOP/s per chip, and the subject. `said`: how FLOPs were
    counted, where that is no convention of ours."""
    counted, of = subject.counted(convention), subject.peaks
    mfu = rate * 1e12 / of.native if rate and of.native else None
    mark, unit = _as_printed(options["printed_mfu"])
    own = fingerprint(
        model=subject.model,
        seq=subject.seq,
        chip=of.chip,
        precision=format_of(of.precision),
        printed_mfu=mark,
        mfu_unit=unit,
        peak_flops_per_s=of.native,
        tflops_per_s=told.tflops_per_s,
        tokens_per_s=told.tokens_per_s,
    )
    per_token = counted.total if counted else None
    if convention == JOB and own.printed_flops_per_token:
        per_token = own.printed_flops_per_token
        again = HELD if own.matching and own.matching[0].name == HOLDS_IT else again
    return MfuResult(
        convention=convention,
        mfu=mfu,
        hfu=mfu * again.factor if mfu and again.factor else None,
        best=None,
        average=None,
        emfu=rate * 1e12 / of.bf16 if rate and of.bf16 else None,
        tflops_per_s_per_chip=rate,
        tokens_per_s_per_chip=tokens,
        flops_per_token=per_token,
        wall_s=None,
        peaks=of,
        hfu_basis=again.basis,
        model=subject.model and subject.model.name,
        seq=subject.seq,
        flops=counted,
        printed=told,
        fingerprint=own,
        conventions=(),
        notes=(*subject.notes, *_basis(said, subject, again.said)),
    )


def _as_printed(mfu: float | None) -> tuple[float | None, float]:
    """(a printed MFU as a share, one in its last place as a share): 43 and 0.43 are whole per cents, 43.27 is not."""
    if mfu is None:
        return None, 0.0
    decimals = -Decimal(f"{mfu:.12g}").normalize().as_tuple().exponent
    scale = 1 if mfu <= 1 else 100
    return mfu / scale, 10.0 ** -max(decimals, 2 if scale == 1 else 0) / scale


def _basis(counted: str, subject: _Subject, how: str) -> list[str]:
    of, notes = subject.peaks, [counted] if counted else []
    if of.native is None:
        notes.append(
            "No peak is known for this chip: achieved TFLOP/s are given, utilisation is not. "
            "Ask with chip=NAME or peak_flops_per_s=P."
        )
    else:
        notes.append(f"MFU divides by the {of.source}.")
        if of.bf16 is None:
            notes.append("EMFU is not known: the catalogue has no BF16 peak for this chip.")
    return [*notes, how]
