"""Published runs in words: what is best among those shown, how a run compares, what one row says."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from analyzers.flops.published import HARDWARE, Reviewed, reviewed
from app.pages.published.figure import Own
from app.words import Verdict, headline
from catalog.flops import CONVENTIONS
from errors import format as fmt

CONVENTION_TITLES = {c.name: c.title for c in CONVENTIONS}
UNSTATED = "not stated"


def verdict(rows: Sequence[Reviewed], own: Own | None) -> Verdict:
    """Where the middle lies and what is best; with a run, how many of its likes it beats. What contradicts itself is
    in neither."""
    sound = [r for r in rows if not r.contradictions and r.utilisation is not None and r.run.convention != HARDWARE]
    wrong = sum(bool(r.contradictions) for r in rows)
    if not sound:
        return headline("None of these runs tells an MFU that holds." if rows else "No published run fits this choice.")
    shares = pd.Series([r.utilisation for r in sound], dtype=float)
    best, median = sound[int(shares.to_numpy().argmax())], fmt.share(float(shares.median()))
    if own is not None and own.utilisation is not None:
        better = int((shares < own.utilisation).sum())
        text = (
            f"MFU {fmt.share(own.utilisation)}: above {better:,} of {len(sound):,} published runs counted the same "
            f"way; their median is {median}."
        )
    else:
        where = f"{best.run.model} on {best.run.chips:,} × {best.run.chip}"
        text = (
            f"Half of {len(sound):,} published runs reach {median} MFU or more, each by its own count of "
            f"FLOPs; the best, {where}, {fmt.share(best.utilisation)}."
        )
    if wrong:
        hollow = "is drawn hollow." if wrong == 1 else "are drawn hollow."
        many = fmt.count(wrong, "run contradicts itself", "runs contradict themselves")
        return headline(text, f"{many} and {hollow}")
    return headline(text)


def frame(rows: Sequence[Reviewed]) -> pd.DataFrame:
    """One row per published run: what the page lists and what is exported."""
    return pd.DataFrame([_row(r) for r in rows])


def published_rows() -> list[dict[str, Any]]:
    """Every published run for JSON."""
    return [_row(r) for r in reviewed()]


def _row(row: Reviewed) -> dict[str, Any]:
    run = row.run
    return {
        "id": run.id,
        "model": run.model,
        "class": run.model_class,
        "task": run.task,
        "parameters": row.parameters,
        "chip": run.chip,
        "chips": run.chips,
        "precision": run.precision,
        "seq": run.seq,
        "global_batch_tokens": run.global_batch_tokens,
        "parallelism": " ".join(f"{k}={v}" for k, v in run.parallelism.items()),
        "convention": run.convention or UNSTATED,
        "tokens_per_s_per_chip": run.tokens_per_s_per_chip,
        "tflops_per_s_per_chip": None if run.flops_per_s_per_chip is None else run.flops_per_s_per_chip / 1e12,
        "mfu_printed": run.mfu,
        "utilisation": row.utilisation,
        "bf16_utilisation": row.bf16_utilisation,
        "derived": " ".join(run.derived),
        "contradiction": " ".join(row.contradictions),
        "mark": run.mark,
        "source": run.source,
        "note": run.note,
    }


def details(row: Reviewed) -> list[tuple[str, str]]:
    """(what, value) of one published run."""
    run = row.run
    figures = {
        "tokens_per_s": "tokens/s per chip",
        "tflops_per_s": "TFLOP/s per chip",
        "mfu_percent": "MFU (%)",
        "hfu_percent": "HFU (%)",
        "peak_tflops_per_s": "divided by a peak of (TFLOP/s)",
    }
    said = [
        (f"{'derived' if n in run.derived else 'printed'} {title}", run.printed[n])
        for n, title in figures.items()
        if n in run.printed
    ]
    name = "HFU" if run.convention == HARDWARE else "MFU"
    shape = [("sequence", fmt.count(run.seq, "token"))] if run.seq else []
    shape += [("global batch", fmt.count(run.global_batch_tokens, "token"))] if run.global_batch_tokens else []
    shape += [(f"{k.replace('_', ' ')} parallelism", f"{v:,}") for k, v in run.parallelism.items()]
    return [
        ("model", f"{run.model} ({run.model_class}, {run.task})"),
        ("chips", f"{run.chips:,} × {run.chip}"),
        ("precision", " / ".join(filter(None, (run.precision, run.precision_printed))) or UNSTATED),
        ("convention", CONVENTION_TITLES.get(run.convention or "", UNSTATED)),
        *said,
        (f"{name} of the {run.precision or ''} peak".replace("  ", " "), fmt.share(row.utilisation)),
        ("of the BF16 peak", fmt.share(row.bf16_utilisation)),
        *shape,
        ("source", run.source),
        ("mark", run.mark),
    ]
