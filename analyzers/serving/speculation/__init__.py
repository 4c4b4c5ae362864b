"""Speculation: how much of what is drafted is accepted, what that is worth, and up to how many sequences it pays."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts, fact, with_options
from analyzers.serving.kv_cache.setting import (
    KV_FACTS,
    cache_precision_of,
    ended,
    first_fact,
    weights_of,
    whole_fact,
)
from analyzers.serving.recorded import recorded
from analyzers.serving.sampling import gaps_of
from analyzers.serving.servers import samples_of_servers
from analyzers.serving.speculation.data import SOURCES, Observed, observed
from analyzers.serving.speculation.model import (
    Draft,
    Machine,
    at_any,
    best,
    by_draft,
    by_positions,
    greatest_cost,
    least_acceptance,
    machine,
    needed_chance,
    ranges_told,
    still_rising,
    wilson,
)
from analyzers.subject import CHIP, MODEL, chip_of, known_model
from catalog.formats import NAMES as WEIGHT_FORMATS
from catalog.inference import BYTES, always_read_bytes, speculation_speedup
from catalog.models import Model
from catalog.models import model as model_named
from errors import QuestionError
from errors.numbers import COST, FROM_ZERO, SHARE
from errors.options import WHOLE, Option
from runs.tables import Tables

OPTIONS: tuple[Option, ...] = (
    MODEL,
    CHIP,
    Option(
        "acceptance",
        SHARE,
        None,
        "chance that a draft token is accepted where all before it were, in place of what the run tells",
        label="Chance of acceptance",
    ),
    Option("draft", WHOLE, None, "draft tokens of a draft; default: the run's", "tokens", "Draft tokens"),
    Option(
        "cost",
        COST,
        None,
        "time of a draft step by that of a step; default: by the weights of the run's draft model, else 0.05",
        label="Cost of a draft step",
    ),
    Option(
        "context",
        FROM_ZERO,
        None,
        "tokens that a sequence holds at a step; default: the run's mean, else 0",
        "tokens",
        "Context",
    ),
    Option("weights_precision", WEIGHT_FORMATS, None, "format of the weights; default: the run's, else as published"),
    Option("kv_precision", tuple(BYTES), None, "format of the cache; default: the run's, else bf16"),
    Option("stage", str, None, "one load of a load test, by name"),
)
DRAFT_FACTS = ("num_speculative_tokens", "speculative_tokens", "draft_tokens", "speculative_num_draft_tokens")
DRAFT_MODEL_FACTS = ("draft_model", "speculative_model", "speculative_draft_model_path")
DEFAULT_COST, DEFAULT_DRAFT = 0.05, 5
FEW_PASSES = 5  # of a kind and batch; fewer say little


@dataclass(frozen=True, kw_only=True)
class SpeculationResult:
    """`acceptance`: chance that a token is accepted where all before it were, as independent tokens would need to give
    the mean length (Leviathan's a); `observed.rate` is accepted by proposed, which is lower for k > 1.

    `positions`: position (from 1), acceptance, low, high (95 %), conditional (on those before), theory (a^i).
    `drafts`: what each draft length is worth by Leviathan's rule; `expected`: the same from the measured positions,
    empty where they are not told; `speedup`: of the length in use, with the measured mean length where there is one.
    `machine`: steps of the model on the chip, None where either is not known;
    `free_batch`, `break_even_batch`: sequences (infinite: at any number), None without a machine; `pays`: all ranges of
    sequences at which it pays.
    `passes`: batch, with_s, without_s (time per output token), passes: measured at equal batch.
    """

    observed: Observed
    acceptance: float
    draft: float
    cost: float
    cost_source: str
    positions: pd.DataFrame
    drafts: tuple[Draft, ...]
    expected: tuple[Draft, ...]
    speedup: float
    machine: Machine | None
    free_batch: float | None
    break_even_batch: float | None
    pays: tuple[tuple[float, float], ...]
    batch: float | None
    batch_speedup: float | None
    context: int
    passes: pd.DataFrame
    notes: tuple[str, ...] = field(default=())

    @property
    def length(self) -> float:
        """Tokens of a step, the model's own included: measured, else by the chance."""
        return self.observed.length or 1.0

    @property
    def best(self) -> Draft:
        """The length that is worth most: by the measured positions where there are some, else by Leviathan's rule."""
        return best(self.expected or self.drafts)

    @property
    def still_rising(self) -> bool:
        """Whether `best` is only the longest that was tried."""
        return still_rising(self.expected or self.drafts)

    @property
    def measured_speedup(self) -> float | None:
        """Time per output token without drafts by that with them, at equal batch, over all passes compared."""
        if not len(self.passes):
            return None
        weight = self.passes["passes"].astype(float)
        return float((self.passes["without_s"] * weight).sum() / (self.passes["with_s"] * weight).sum())

    def to_dict(self) -> dict[str, Any]:
        best_ = self.best
        return {
            "acceptance_rate": self.observed.rate,
            "mean_accepted_length": self.observed.length,
            "by_position": [float(p) for p in self.positions["acceptance"].dropna()],
            "by_position_interval": []
            if self.positions["low"].isna().all()
            else self.positions[["low", "high"]].to_numpy(dtype=float).tolist(),
            "theory": [float(p) for p in self.positions["theory"]],
            "acceptance_chance": self.acceptance,
            "source": self.observed.source,
            "drafts": self.observed.drafts,
            "drafted": self.observed.drafted,
            "accepted": self.observed.accepted,
            "draft": self.draft,
            "cost": self.cost,
            "cost_source": self.cost_source,
            "speedup": self.speedup,
            "speedup_by_draft": [{"draft": d.tokens, "length": d.length, "speedup": d.speedup} for d in self.drafts],
            "expected_by_draft": [{"draft": d.tokens, "length": d.length, "speedup": d.speedup} for d in self.expected],
            "best_draft": best_.tokens,
            "best_speedup": best_.speedup,
            "least_acceptance": least_acceptance(max(round(self.draft), 1), self.cost),
            "greatest_cost": greatest_cost(self.length, self.draft),
            "free_batch": _finite(self.free_batch),
            "break_even_batch": _finite(self.break_even_batch),
            "pays_at_any_batch": None if self.break_even_batch is None else at_any(self.pays),
            "pays_between_batches": None if self.break_even_batch is None else ranges_told(self.pays),
            "mean_running": self.batch,
            "batch_speedup": self.batch_speedup,
            "context_tokens": self.context,
            "measured_speedup": self.measured_speedup,
            "passes": self.passes.astype(float).to_dict("records"),
            "notes": list(self.notes),
        }


def _finite(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> SpeculationResult:
    """What the run tells, or what options ask. Raises QuestionError where there is neither."""
    facts = with_options(facts, options, ("model", "chip"))
    asked = options["draft"]
    if asked is not None and not 1 <= asked <= 1000:
        raise QuestionError(f"{asked} draft tokens", expected="a whole number from 1 to 1,000")
    seen = observed(tables, whole_fact(facts, DRAFT_FACTS) or asked, options["stage"])
    if options["acceptance"] is not None:
        seen = None
    elif seen is None:
        raise QuestionError(
            "this run tells nothing of draft tokens",
            advice="Speculation may be off. Its counters come with /metrics (spec_decode_num_drafts ...), the engine's "
            "log or a load test; or ask with --option acceptance=A and draft=K.",
        )
    draft = float(asked or (seen and seen.draft) or DEFAULT_DRAFT)
    if seen is None:
        chance = options["acceptance"]
        length = by_draft(chance, 0.0, round(draft))[-1].length
        seen = Observed(source="asked", length=length, draft=draft, rate=(length - 1) / draft)
    elif seen.length is None:
        raise QuestionError(
            "the run tells what share of draft tokens was accepted, but not how many a draft has",
            advice="Add --option draft=K.",
        )
    else:
        chance = needed_chance(seen.length, seen.draft or draft)
    return _result(tables, facts, options, seen, chance, draft)


def _result(
    tables: Tables, facts: Facts, options: dict[str, Any], seen: Observed, chance: float, draft: float
) -> SpeculationResult:
    notes: list[str] = []
    model, chip = known_model(facts, notes), chip_of(facts)
    cost, cost_source = _cost(facts, options, model)
    context = _context(tables, options)
    steps = None
    if model and chip and chip.value("bf16_flops_per_s") and chip.value("hbm_bytes_per_s"):
        weights = options["weights_precision"] or weights_of(facts) or model.published.format
        kv = options["kv_precision"] or cache_precision_of(first_fact(facts, KV_FACTS)) or "bf16"
        steps = machine(model, chip, context, weights, kv)
    drafts = by_draft(chance, cost)
    expected = by_positions(np.array(seen.positions), cost) if seen.positions else ()
    same = seen.draft is None or round(draft) == round(seen.draft)
    length = seen.length if same and seen.length else _length(chance, seen.positions, round(draft))
    seen = seen if same else Observed(**{**vars(seen), "length": length})
    batch = _batch(tables)
    return SpeculationResult(
        observed=seen,
        acceptance=chance,
        draft=draft,
        cost=cost,
        cost_source=cost_source,
        positions=_positions(seen, chance, draft),
        drafts=drafts,
        expected=expected,
        speedup=length / (draft * cost + 1),
        machine=steps,
        free_batch=steps and steps.free_batch(draft),
        break_even_batch=steps and steps.break_even(length, draft, cost),
        pays=steps.pays(length, draft, cost) if steps else (),
        batch=batch,
        batch_speedup=steps.speedup(batch, length, draft, cost) if steps and batch else None,
        context=context,
        passes=_passes(tables),
        notes=(*notes, *_notes(seen, cost_source, steps, same)),
    )


def _length(chance: float, positions: Sequence[float], draft: int) -> float:
    """Tokens of a step with a draft of another length than the run's."""
    drafts = by_positions(np.array(positions), 0.0, draft) if positions else by_draft(chance, 0.0, draft)
    return drafts[draft].length


def _cost(facts: Facts, options: dict[str, Any], large: Model | None) -> tuple[float, str]:
    """(time of a draft step by that of a step, who says so)."""
    if options["cost"] is not None:
        speculation_speedup(0.5, 1, options["cost"])  # refuses what cannot be
        return options["cost"], "asked for"
    for said in (fact(facts, name) for name in ("draft_cost", "draft_step_cost")):
        if isinstance(said, int | float) and said >= 0:
            return float(said), "said by the run"
    small = first_fact(facts, DRAFT_MODEL_FACTS)
    if small and large and (drafts := _known(str(small))):
        ratio = always_read_bytes(drafts) / always_read_bytes(large)
        return ratio, f"the weights of {small} by those of {large.name}: steps bound by memory"
    if str(fact(facts, "speculative_method") or "").lower() in ("ngram", "prompt_lookup"):
        return 0.0, "drafts are looked up in the text, with no model"
    return DEFAULT_COST, "assumed: nothing says what a draft step takes"


def _known(name: str) -> Model | None:
    """The model of the catalogue; None for a draft head or a model of the user's own, whose size is not known."""
    try:
        return model_named(name)
    except QuestionError:
        return None


def _context(tables: Tables, options: dict[str, Any]) -> int:
    if options["context"] is not None:
        return options["context"]
    rows = ended(tables)
    rows = rows[(rows["prompt_tokens"] > 0) & (rows["output_tokens"] > 0)]
    return int((rows["prompt_tokens"] + rows["output_tokens"] / 2).mean()) if len(rows) else 0


def _batch(tables: Tables) -> float | None:
    """Sequences that generate at a time on average, over passes that generate; else requests running, over time."""
    rows = recorded(tables, ["decode_requests"])[0]["decode_requests"].dropna()
    if rows.gt(0).any():
        return float(rows[rows > 0].mean())
    samples, _ = samples_of_servers(tables)
    if samples["ts_ns"].isna().any():
        samples["ts_ns"] = samples.groupby("replica").cumcount()  # without times each counts alike
    each = [mine for _, mine in samples.groupby("replica", sort=False)]
    lasts = [gaps_of(mine, mine["ts_ns"].to_numpy(dtype=np.int64) / 1e9).lasts for mine in each]
    running = np.concatenate([mine["running"].to_numpy(dtype=float, na_value=0.0) for mine in each] or [np.zeros(0)])
    weights = np.where(running > 0, np.concatenate(lasts or [np.zeros(0)]), 0.0)
    return float(np.average(running, weights=weights)) if weights.sum() > 0 else None


def _positions(seen: Observed, chance: float, draft: float) -> pd.DataFrame:
    """One row a position of the draft, measured where the run tells, beside what independence would give."""
    shares = np.array(seen.positions, dtype=float)
    count = max(len(shares), round(draft))
    measured = np.full(count, np.nan)
    measured[: len(shares)] = shares
    before = np.concatenate([[1.0], measured[:-1]])
    with np.errstate(divide="ignore", invalid="ignore"):
        conditional = np.where(before > 0, measured / before, np.nan)
    known = seen.drafts is not None and len(shares)
    low, high = wilson(measured, seen.drafts) if known else (np.full(count, np.nan),) * 2
    at = np.arange(1, count + 1)
    return pd.DataFrame(
        {
            "position": at,
            "acceptance": measured,
            "low": low,
            "high": high,
            "conditional": conditional,
            "theory": chance**at,
        }
    )


def _passes(tables: Tables) -> pd.DataFrame:
    """Median time per output token of passes that only generate, with drafts and without, at equal batch."""
    columns = ["batch", "with_s", "without_s", "passes"]
    tokens = ["prefill_tokens", "decode_requests", "decode_tokens", "drafted_tokens"]
    rows, _ = recorded(tables, ["dur_ns", *tokens])
    rows = rows[
        rows["prefill_tokens"].fillna(0).eq(0)
        & rows["decode_tokens"].gt(0).fillna(False)
        & rows["decode_requests"].gt(0).fillna(False)
        & rows["dur_ns"].gt(0).fillna(False)
    ]
    if not len(rows):
        return pd.DataFrame(columns=columns)
    rows = rows.astype({"dur_ns": float, "decode_tokens": float, "decode_requests": float})
    drafted = rows["drafted_tokens"].fillna(0).gt(0).astype(bool)
    groups = rows.groupby(["decode_requests", drafted.rename("drafted")], sort=True)
    sums = groups[["dur_ns", "decode_tokens"]].sum()
    each = (sums["dur_ns"] / sums["decode_tokens"] / 1e9).unstack("drafted")
    counts = groups.size().unstack("drafted")
    if not {True, False} <= set(each.columns):
        return pd.DataFrame(columns=columns)
    enough = counts.ge(FEW_PASSES).all(axis=1)
    each, counts = each[enough], counts[enough]
    batch = each.index.to_numpy(dtype=float)
    return pd.DataFrame(
        {
            "batch": batch,
            "with_s": each[True].to_numpy() * batch,
            "without_s": each[False].to_numpy() * batch,
            "passes": counts[True].to_numpy(),
        }
    )


def _notes(seen: Observed, cost_source: str, steps: Machine | None, same: bool) -> tuple[str, ...]:
    notes = [f"Draft tokens: {SOURCES[seen.source]}."]
    if seen.source != "asked":
        notes.append(
            "Accepted by proposed tokens is not the chance of one token: a token counts only where all before it were "
            "accepted. The chance is the one that gives the measured mean length if tokens were alike."
        )
    if seen.source != "asked" and seen.draft is None:
        notes.append(f"How many tokens a draft has is not told: {DEFAULT_DRAFT} assumed, or as asked.")
    if not same:
        notes.append(
            "The run drafted another number of tokens: tokens of a step are by its positions where it tells "
            "them, else by the chance."
        )
    notes.append(f"Cost of a draft step: {cost_source}.")
    if steps is None:
        notes.append("Up to how many sequences drafting pays needs the model and the chip: ask with model and chip.")
    else:
        notes.append(
            "Break-even is by a roofline: BF16 peak and bandwidth of the chip, caches read once for all tokens of a "
            "sequence, weights once for the pass. Real engines reach less of the peak than of the bandwidth and turn "
            "compute-bound sooner, so read it as an upper bound."
        )
    if not seen.positions and seen.source != "asked":
        notes.append("No input tells acceptance by position: counters accepted_tokens_per_pos would.")
    return tuple(notes)
