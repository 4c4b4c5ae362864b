"""Fits the shares of peaks that training reaches to published runs, and writes them with their errors.

    python -m benchmarks.training_fit [--write]

Thirty numbers, each kept near what is usual, to logarithms of predicted over published seconds of a step (least squares
of a soft absolute value, since a tuned run and one of an old release stand side by side; the rows of a source, which
share a program, count together as the square root of their number). llm-foundry ran attention of its own, with ALiBi:
its shares of attention are fitted for themselves and used for nothing else.

Rows of one source are held back together: each source is predicted by a fit to all others. How near the numbers are
kept to what is usual (PRIORS) is chosen for each of these fits by holding back each of its own sources in turn, and its
bands are of the errors that these then have: nothing of a source is known to its prediction, nor to its band.
`--write` keeps the fit in `shares.json` and the errors in `docs/training-planner.md` too.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares
from scipy.stats import norm, t

from benchmarks.training_anchor import anchors
from benchmarks.training_answers import answers
from benchmarks.training_compiled import compared
from benchmarks.training_page import PAGE, page
from benchmarks.training_usual import HIGH, LOW, NAMES, OWN_ATTENTION, SPREAD, USUAL
from simulators import training
from simulators.training.backtest import Case, by_source, cases
from simulators.training.efficiency import FILE, NOMINAL, Efficiency, generation, kind, rate
from simulators.training.step import AtPeaks

SOFT = 0.08  # where an error counts as absolute
PRIORS = (0.15, 0.3, 0.6)  # the weight of being usual, beside an error of 1
SHARED = [n for n in NAMES if "." not in n]
NINE_OF_TEN = 90
FEW = 2  # sources, of which a band of their own is made
UNSEEN = 1.5  # how much wider errors are taken where a share was fitted to nothing


@dataclass(frozen=True)
class Fit:
    values: dict[str, float]

    def share(self, name: str, case: Case) -> float:
        """What a case is predicted by."""
        if name in ("products", "attention"):
            return self.values[key(case) if name == "products" else attention_key(case)]
        return case.scores if name == "scores" else self.values[f"grouped.{kind(case.run.chip)}"]

    def efficiency(self, case: Case) -> Efficiency:
        """All shares that a case is predicted by."""
        shares = {f.name: self.share(f.name, case) for f in fields(Efficiency) if f.name not in SHARED}
        return Efficiency(**shares, **{name: self.values[name] for name in SHARED})


class Rows:
    """Cases whose steps are timed together: every layout of each, one after another."""

    def __init__(self, of: Sequence[Case]):
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


def key(case: Case) -> str:
    """The share of products that a case ran at."""
    return f"products.{case.generation}.{rate(case.run.chip, case.run.precision or '')}"


def attention_key(case: Case) -> str:
    """The share of attention that a case ran at."""
    return f"attention.{'own.' if OWN_ATTENTION in case.source else ''}{case.generation}"


def fit(of: Sequence[Case], prior: float) -> Fit:
    rows, count = Rows(of), Counter(case.source for case in of)
    weight = np.array([count[case.source] ** -0.25 for case in of])
    weight /= np.sqrt(np.mean(weight**2))

    def residuals(at: np.ndarray) -> np.ndarray:
        errors = rows.errors(Fit(dict(zip(NAMES, np.exp(at), strict=True))))
        return np.concatenate([weight * _softened(errors), prior * (at - USUAL) / SPREAD])

    found = least_squares(residuals, USUAL, bounds=(LOW, HIGH), diff_step=0.02, max_nfev=25)
    return Fit(dict(zip(NAMES, map(float, np.exp(found.x)), strict=True)))


def _softened(errors: np.ndarray) -> np.ndarray:
    """Errors whose squares grow as their absolute values do beyond SOFT."""
    return np.sign(errors) * SOFT * np.sqrt(2 * (np.sqrt(1 + (errors / SOFT) ** 2) - 1))


class Held:
    """What is predicted of sources by fits to others; each fit is made once."""

    def __init__(self, known: list[Case]):
        self.of = dict(by_source(known))
        self.rows = {source: Rows(of) for source, of in self.of.items()}
        self.fitted = cache(self._fitted)
        self.inner = cache(self._inner)

    def _fitted(self, without: frozenset[str], prior: float) -> Fit:
        return fit([case for source, of in self.of.items() if source not in without for case in of], prior)

    def _inner(self, without: frozenset[str], prior: float) -> dict[str, np.ndarray]:
        """Errors of every source but those left out, each by a fit to the rest."""
        return {
            source: self.rows[source].errors(self.fitted(without | {source}, prior))
            for source in self.of
            if source not in without
        }

    def prior(self, without: frozenset[str]) -> float:
        """The weight of being usual that predicts the sources left best, each of them from the others."""

        def middle(prior: float) -> float:
            inner = self.inner(without, prior)
            errors = np.abs(np.concatenate(list(inner.values())))
            return _quantile(errors, _weights(inner), 0.5)

        return min(PRIORS, key=middle)

    def keys(self, without: frozenset[str]) -> set[str]:
        """Shares of products and of attention that a fit without these sources knows."""
        rest = [case for source, of in self.of.items() if source not in without for case in of]
        return {key(case) for case in rest} | {attention_key(case) for case in rest}

    def errors(self, source: str) -> np.ndarray:
        """Of a source that is held back."""
        apart = frozenset({source})
        return self.rows[source].errors(self.fitted(apart, self.prior(apart)))

    def bands(self, without: frozenset[str]) -> dict[str, dict[str, float]]:
        """Bands by kind, of the errors that the sources left have when each is held back in turn."""
        inner = self.inner(without, self.prior(without))
        errors, weights = np.concatenate(list(inner.values())), _weights(inner)
        of = [(case, self.keys(without | {source})) for source in inner for case in self.of[source]]
        known = np.array([_seen(case, keys) for case, keys in of])
        moe = np.array([case.work.experts > 0 for case, _ in of])
        wide = _band(UNSEEN * errors, weights, _sources(inner))
        told = {"dense": known & ~moe, "moe": known & moe}
        enough = {
            name: len({c.source for (c, _), w in zip(of, which, strict=True) if w}) for name, which in told.items()
        }
        return {"unseen": wide} | {
            name: _band(errors[which], weights[which], _sources(inner)) if enough[name] >= FEW else wide
            for name, which in told.items()
        }

    def inside(self, source: str, errors: np.ndarray) -> list[bool]:
        """Whether each published step of a source lies in its band, of which nothing was known."""
        apart = frozenset({source})
        bands, known = self.bands(apart), self.keys(apart)
        found = []
        for case, error in zip(self.of[source], errors, strict=True):
            band = bands[("moe" if case.work.experts else "dense") if _seen(case, known) else "unseen"]
            found.append(band["low"] <= np.exp(-error) <= band["high"])
        return found


def _seen(case: Case, keys: set[str]) -> bool:
    """Whether the shares that a case runs at are known."""
    return {key(case), attention_key(case)} <= keys


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the fit and its errors")
    asked = parser.parse_args(arguments)
    held = Held(fittable())
    told = _told(held) | {"held_back_shares": _shares(held)}
    for line in _lines(told):
        print(line)
    if asked.write:
        path = Path(training.__file__).parent / FILE
        path.write_text(json.dumps(told, indent=1) + "\n")
        PAGE.write_text(page(told))
        print(f"written: {path.name}, {PAGE.name}; errors of changes: `python -m benchmarks.training_changes --write`")


def fittable() -> list[Case]:
    """The published runs whose chips and precisions have a share to be fitted."""
    return [case for case in cases() if key(case) in NAMES]


def _shares(held: Held) -> dict[str, dict[str, float]]:
    """The shares fitted without each source: what its runs are carried over by (`benchmarks.training_changes`)."""
    fits = {s: held.fitted(frozenset({s}), held.prior(frozenset({s}))) for s in held.of}
    return {source: {name: _short(v) for name, v in one.values.items()} for source, one in fits.items()}


def _told(held: Held) -> dict[str, Any]:
    of = [case for source in held.of for case in held.of[source]]
    prior = held.prior(frozenset())
    fitted = held.fitted(frozenset(), prior)
    back = {source: held.errors(source) for source in held.of}
    inside = {source: held.inside(source, back[source]) for source in held.of}
    errors, within = np.concatenate(list(back.values())), np.concatenate(list(inside.values()))
    moe, whole = (np.array([pick(c) for c in of]) for pick in (lambda c: c.work.experts > 0, lambda c: c.whole))

    def grouped(names: Iterable[str]) -> dict[str, Any]:
        labels = np.array(list(names))
        return {str(n): _errors(errors[labels == n], within[labels == n]) for n in sorted(set(labels))}

    products, runs = _products(fitted, of)
    relative = np.exp(np.mean([np.log(v / NOMINAL[p]) for by in products.values() for p, v in by.items()]))
    return {
        "fitted": datetime.now(UTC).date().isoformat(),
        "prior": prior,
        "products": products,
        "relative": _short(relative),
        "attention": {g: _short(fitted.values[f"attention.{g}"]) for g in products},
        "grouped": {k: _short(fitted.values[f"grouped.{k}"]) for k in ("gpu", "tpu")},
        "shared": {name: _short(fitted.values[name]) for name in SHARED},
        "runs": runs,
        "bands": held.bands(frozenset()),
        "errors": {
            "all": _errors(Rows(of).errors(fitted)),
            "held_back": _errors(errors, within),
            "held_back_layout_told": _errors(errors[whole], within[whole]),
            "by_source": grouped(c.source for c in of),
            "by_kind": grouped("moe" if m else "dense" for m in moe),
            "by_generation": grouped(c.generation for c in of),
            "priors": {source: held.prior(frozenset({source})) for source in held.of},
        },
        "worst": [_worst(of[i], float(np.expm1(errors[i]))) for i in np.argsort(-np.abs(errors))[:10]],
        "compiled": [*compared(), *anchors(lambda chip: _of_chip(fitted, chip))],
        "answers": answers(
            lambda source: held.fitted(frozenset({source}), held.prior(frozenset({source}))).efficiency,
            fitted.efficiency,
        ),
    }


def _products(fitted: Fit, of: list[Case]) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    """Shares of products by generation and precision, and how many runs each rests on."""
    products: dict[str, dict[str, float]] = {}
    runs: dict[str, dict[str, int]] = {}
    for name in (n for n in NAMES if n.startswith("products.")):
        _, family, precision = name.split(".")
        if count := sum(key(c) == name for c in of):
            products.setdefault(family, {})[precision] = _short(fitted.values[name])
            runs.setdefault(family, {})[precision] = count
    return products, runs


def _of_chip(fitted: Fit, chip: str) -> Efficiency:
    """What a chip's products in BF16 are planned by; the rest is of no matter."""
    family = generation(chip)
    shared = {name: fitted.values[name] for name in SHARED}
    return Efficiency(
        products=fitted.values[f"products.{family}.bf16"],
        attention=fitted.values[f"attention.{family}"],
        grouped=fitted.values[f"grouped.{kind(chip)}"],
        **shared,
    )


def _worst(case: Case, error: float) -> dict[str, Any]:
    run = case.run
    return {
        "run": run.id,
        "source": case.source,
        "model": run.model,
        "chip": run.chip,
        "chips": run.chips,
        "precision": run.precision,
        "seq": case.work.seq,
        "error": _short(error),
    }


def _weights(inner: dict[str, np.ndarray]) -> np.ndarray:
    """Rows of a source count together as the square root of their number, as in a fit."""
    return np.concatenate([np.full(len(of), len(of) ** -0.5) for of in inner.values()])


def _sources(inner: dict[str, np.ndarray]) -> float:
    """So many sources of equal weight would tell as much: Kish's number, of weights that are square roots of rows."""
    rows = np.array([len(of) for of in inner.values()], float)
    return float(np.sqrt(rows).sum() ** 2 / rows.sum())


def _quantile(of: np.ndarray, weights: np.ndarray, part: float) -> float:
    order = np.argsort(of)
    below = np.cumsum(weights[order]) - weights[order] / 2
    return float(np.interp(part, below / weights.sum(), of[order]))


def _band(errors: np.ndarray, weights: np.ndarray, sources: float) -> dict[str, float]:
    """Factors on a predicted time between which nine of ten published ones lie: the prediction was off by the error.

    Rows of a source are off together, so that so few sources are what tells of the next: the band is wider as Student's
    t of one degree fewer is wider than a normal distribution, and by sqrt(1 + 1 / sources).
    """
    beyond = (1 - NINE_OF_TEN / 100) / 2
    wider = float(t.ppf(1 - beyond, sources - 1) / norm.ppf(1 - beyond) * np.sqrt(1 + 1 / sources))
    low, high = (wider * _quantile(-errors, weights, part) for part in (beyond, 1 - beyond))
    return {"low": _short(float(np.exp(min(low, -0.02)))), "high": _short(float(np.exp(max(high, 0.02))))}


def _errors(errors: np.ndarray, within: np.ndarray | None = None) -> dict[str, float]:
    absolute = np.abs(np.expm1(errors))
    told = {
        "runs": len(errors),
        "median": _short(float(np.median(absolute))),
        "ninth_tenth": _short(float(np.percentile(absolute, NINE_OF_TEN))),
        "bias": _short(float(np.expm1(np.median(errors)))),
        "median_rate": _short(float(np.median(np.abs(np.expm1(-errors))))),
    }
    return told if within is None else told | {"in_band": _short(float(np.mean(within)))}


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def _lines(told: dict[str, Any]) -> Iterator[str]:
    yield json.dumps({k: told[k] for k in ("prior", "products", "attention", "grouped", "shared", "bands")}, indent=1)
    errors = told["errors"]
    rows = {
        "all": errors["all"],
        "held back": errors["held_back"],
        "of these, layout told": errors["held_back_layout_told"],
    }
    for name in ("by_source", "by_kind", "by_generation"):
        rows |= errors[name]
    for name, e in rows.items():
        within = f"median {e['median']:.1%}, nine of ten within {e['ninth_tenth']:.1%}, bias {e['bias']:+.1%}"
        yield f"{name:60} {e['runs']:4} runs, {within}, in band {e.get('in_band', float('nan')):.0%}"
    for row in (*told["worst"], *told["compiled"], *told["answers"]):
        yield json.dumps(row)


if __name__ == "__main__":
    main(sys.argv[1:])
