"""Fits the shares of peaks that training reaches to published runs, and writes them with their errors.

    python -m benchmarks.training_fit [--write]

Twenty-odd numbers, each kept near what is usual, to logarithms of predicted over published seconds of a step (least
squares of a soft absolute value, since a tuned run and one of an old release stand side by side). Rows of one source
are held back together: each source is predicted by a fit to all others, and the bands are of those errors. llm-foundry
ran attention of its own, with ALiBi: its shares of attention are fitted for themselves and used for nothing else.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from simulators import training
from simulators.training.backtest import Case, by_source, cases
from simulators.training.efficiency import FILE, NOMINAL, Efficiency, kind, rate
from simulators.training.step import AtPeaks

OWN_ATTENTION = "llm-foundry"
FLOPS_KEYS = tuple(
    (f"products.{g}.{p}", NOMINAL[p], 0.2, 0.95, 0.25)
    for g, precisions in (
        ("ampere", ("bf16",)),
        ("hopper", ("bf16", "fp8")),
        ("blackwell", ("bf16", "fp8", "fp4")),
        ("tpu128", ("bf16",)),
        ("tpu256", ("bf16", "fp8")),
    )
    for p in precisions
)
KEYS = (  # name, usual value, least, most, spread of the logarithm that is usual
    *FLOPS_KEYS,
    *(
        (f"attention.{g}", usual, 0.1, 0.85, 0.3)
        for g, usual in (
            ("ampere", 0.45),
            ("hopper", 0.45),
            ("blackwell", 0.45),
            ("tpu128", 0.45),
            ("tpu256", 0.45),
            ("own.ampere", 0.3),
            ("own.hopper", 0.18),
        )
    ),
    ("grouped.gpu", 0.6, 0.2, 1.0, 0.3),
    ("grouped.tpu", 0.6, 0.2, 1.0, 0.3),
    ("memory", 0.75, 0.4, 1.0, 0.2),
    ("network", 0.75, 0.4, 1.0, 0.2),
    ("hidden", 0.3, 0.02, 0.9, 0.5),
    ("hidden_experts", 0.3, 0.02, 0.95, 0.5),
    ("overlap", 0.7, 0.2, 1.0, 0.3),
    ("launch_s", 60e-6, 5e-6, 500e-6, 0.7),
    ("expert_launches", 2.0, 0.2, 20.0, 0.7),
    ("dealt", 3.0, 0.5, 8.0, 0.5),
    ("narrow", 1.0, 0.1, 5.0, 0.7),
    ("few", 1.0, 0.1, 5.0, 0.7),
)
NAMES = [k[0] for k in KEYS]
USUAL, LOW, HIGH = (np.log([k[n] for k in KEYS]) for n in (1, 2, 3))
SPREAD = np.array([k[4] for k in KEYS])
SOFT, PRIOR = 0.08, 0.15  # where an error counts as absolute; the weight of being usual
SHARED = [n for n in NAMES if "." not in n]
NINE_OF_TEN = 90


@dataclass(frozen=True)
class Fit:
    values: dict[str, float]

    def share(self, name: str, case: Case) -> float:
        """What a case is predicted by."""
        if name == "products":
            return self.values[_rate(case)]
        if name == "attention":
            return self.values[f"attention.{'own.' if OWN_ATTENTION in case.source else ''}{case.generation}"]
        return case.scores if name == "scores" else self.values[f"grouped.{kind(case.run.chip)}"]


class Rows:
    """Cases whose steps are timed together: every layout of each, one after another."""

    def __init__(self, of: list[Case]):
        self.of = of
        self.peaks = AtPeaks.joined([case.peaks for case in of])
        self.layouts = np.array([len(case.layouts) for case in of])
        self.begins = np.concatenate([[0], np.cumsum(self.layouts)[:-1]])
        self.published = np.array([case.step_s for case in of])

    def errors(self, fitted: Fit) -> np.ndarray:
        """Logarithm of predicted over published seconds, of the fastest layout of each case."""
        shares = {
            f.name: np.repeat([fitted.share(f.name, case) for case in self.of], self.layouts)
            for f in fields(Efficiency)
            if f.name not in SHARED
        }
        shared = {name: fitted.values[name] for name in SHARED}
        seconds = self.peaks.timed(Efficiency(**shared, **shares)).seconds
        return np.log(np.minimum.reduceat(seconds, self.begins) / self.published)


def _rate(case: Case) -> str:
    """The key of the share of products that a case ran at."""
    return f"products.{case.generation}.{rate(case.run.chip, case.run.precision or '')}"


def fit(of: list[Case]) -> Fit:
    rows = Rows(of)

    def residuals(at: np.ndarray) -> np.ndarray:
        errors = rows.errors(Fit(dict(zip(NAMES, np.exp(at), strict=True))))
        return np.concatenate([errors, PRIOR * (at - USUAL) / SPREAD])

    found = least_squares(
        residuals, USUAL, bounds=(LOW, HIGH), loss="soft_l1", f_scale=SOFT, diff_step=0.02, max_nfev=25
    )
    return Fit(dict(zip(NAMES, map(float, np.exp(found.x)), strict=True)))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the fit in the catalogue")
    asked = parser.parse_args(arguments)
    known = [case for case in cases() if _rate(case) in NAMES]
    everything = fit(known)
    held_back = np.concatenate([_held_back(source, of, known) for source, of in by_source(known)])
    ordered = [case for _, of in by_source(known) for case in of]
    told = _told(everything, ordered, Rows(ordered).errors(everything), held_back)
    for line in _lines(told):
        print(line)
    if asked.write:
        path = Path(training.__file__).parent / FILE
        path.write_text(json.dumps(told, indent=1) + "\n")
        print(f"written: {path.name}")


def _held_back(source: str, of: list[Case], known: list[Case]) -> np.ndarray:
    """Errors of a source by a fit to all others."""
    print(f"without {source} ...", flush=True)
    return Rows(of).errors(fit([case for case in known if case.source != source]))


def _told(fitted: Fit, of: list[Case], errors: np.ndarray, held_back: np.ndarray) -> dict[str, Any]:
    moe = np.array([case.work.experts > 0 for case in of])
    products: dict[str, dict[str, float]] = {}
    runs: dict[str, dict[str, int]] = {}
    for name in (n for n in NAMES if n.startswith("products.")):
        _, family, precision = name.split(".")
        count = sum(_rate(c) == name for c in of)
        if count:
            products.setdefault(family, {})[precision] = _short(fitted.values[name])
            runs.setdefault(family, {})[precision] = count
    relative = np.exp(np.mean([np.log(v / NOMINAL[p]) for by in products.values() for p, v in by.items()]))
    return {
        "fitted": datetime.now(UTC).date().isoformat(),
        "products": products,
        "relative": _short(relative),
        "attention": {g: _short(fitted.values[f"attention.{g}"]) for g in products},
        "grouped": {k: _short(fitted.values[f"grouped.{k}"]) for k in ("gpu", "tpu")},
        "shared": {name: _short(fitted.values[name]) for name in SHARED},
        "runs": runs,
        "bands": {
            "dense": _band(held_back[~moe]),
            "moe": _band(held_back[moe]),
            "unseen": _band(held_back * 1.5),
        },
        "errors": {
            "all": _errors(errors),
            "held_back": _errors(held_back),
            "held_back_layout_told": _errors(held_back[np.array([c.whole for c in of])]),
            "by_source": {s: _errors(held_back[np.array([c.source == s for c in of])]) for s, _ in by_source(of)},
            "by_kind": {"dense": _errors(held_back[~moe]), "moe": _errors(held_back[moe])},
            "by_generation": {g: _errors(held_back[np.array([c.generation == g for c in of])]) for g in products},
        },
        "worst": [
            {
                "run": of[i].run.id,
                "model": of[i].run.model,
                "chip": of[i].run.chip,
                "chips": of[i].run.chips,
                "error": _short(float(np.expm1(held_back[i]))),
            }
            for i in np.argsort(-np.abs(held_back))[:10]
        ],
    }


def _band(errors: np.ndarray) -> dict[str, float]:
    """Factors on a predicted time between which nine of ten published ones lie: the prediction was off by the error."""
    low, high = np.percentile(-errors, [(100 - NINE_OF_TEN) / 2, (100 + NINE_OF_TEN) / 2])
    return {"low": _short(float(np.exp(min(low, -0.02)))), "high": _short(float(np.exp(max(high, 0.02))))}


def _errors(errors: np.ndarray) -> dict[str, float]:
    absolute = np.abs(np.expm1(errors))
    return {
        "runs": len(errors),
        "median": _short(float(np.median(absolute))),
        "ninth_tenth": _short(float(np.percentile(absolute, NINE_OF_TEN))),
        "bias": _short(float(np.expm1(np.median(errors)))),
    }


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def _lines(told: dict[str, Any]) -> Iterator[str]:
    yield json.dumps({k: told[k] for k in ("products", "attention", "grouped", "shared", "bands")}, indent=1)
    errors = told["errors"]
    rows = {
        "all": errors["all"],
        "held back": errors["held_back"],
        "of these, layout told": errors["held_back_layout_told"],
    }
    for kind in ("by_source", "by_kind", "by_generation"):
        rows |= errors[kind]
    for name, e in rows.items():
        within = f"median {e['median']:.1%}, nine of ten within {e['ninth_tenth']:.1%}, bias {e['bias']:+.1%}"
        yield f"{name:60} {e['runs']:4} runs, {within}"
    for row in told["worst"]:
        yield json.dumps(row)


if __name__ == "__main__":
    main(sys.argv[1:])
