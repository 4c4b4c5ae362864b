"""How far off steps of published runs are when carried over from one another, by kind of change, and writes that down.

    python -m benchmarks.training_changes [--write]

Seconds' work where `shares.json` holds the shares fitted without each source, as `python -m benchmarks.training_fit
--write` puts them there; else they are fitted here, which takes minutes. To be run again whenever the model of the step
or its shares changed: a test tells.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.training_fit import NINE_OF_TEN, Fit, Held, fittable
from errors import QuestionError
from simulators import training
from simulators.training.backtest import Case, by_source
from simulators.training.changes import FILE, KINDS, LEAST_PAIRS, SCALED, SEVERAL, error, kind_of, pairs, past
from simulators.training.efficiency import fitted_file

HELD_BACK = "held_back_shares"
WIDER = (1.0, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 2.0)
"""How many times as wide as the errors of a kind its band may have to be: the least at which nine of ten pairs lie in
bands that are of other sources alone, and of each source's own pairs more than LEAST."""
LEAST = 0.7


@dataclass(frozen=True)
class Tried:
    """A run carried over to another: what differs, the logarithm of predicted over published seconds."""

    start: Case
    end: Case
    differ: tuple[str, ...]
    error: float

    @property
    def experts(self) -> bool:
        return self.end.work.experts > 0

    @property
    def within(self) -> frozenset[str]:
        return frozenset((self.start.run.id, self.end.run.id))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the errors beside the shares")
    asked = parser.parse_args(arguments)
    made = told(tried(held_back(fittable())))
    print(json.dumps(made, indent=1))
    if asked.write:
        write(made)


def write(made: Mapping[str, Any]) -> None:
    path = Path(training.__file__).parent / FILE
    path.write_text(json.dumps(made, indent=1) + "\n")
    print(f"written: {path.name}")


def held_back(known: Sequence[Case]) -> dict[str, Fit]:
    """The shares fitted without each source, as they are kept, else fitted now."""
    kept = fitted_file().get(HELD_BACK)
    if kept is not None and set(kept) == {source for source, _ in by_source(known)}:
        return {source: Fit(values) for source, values in kept.items()}
    held = Held(list(known))
    return {s: held.fitted(frozenset({s}), held.prior(frozenset({s}))) for s in held.of}


def tried(fits: Mapping[str, Fit]) -> list[Tried]:
    """Every pair, the run that is predicted by shares fitted without its source."""
    found = list[Tried]()
    for start, end, differ in pairs([case for case in fittable() if case.source in fits]):
        by = fits[end.source]
        try:
            off = error(start, end, (by.efficiency(start), by.efficiency(end)))
        except QuestionError:  # too far off to be carried over
            continue
        found.append(Tried(start, end, differ, off))
    return found


def told(of: Sequence[Tried]) -> dict[str, Any]:
    """What is kept: by kind and class of model the errors and the band; and which part of all pairs, and of each
    source's, lies in bands that are of other sources alone."""
    wider = next(w for w in WIDER if _held_out(of, w) >= NINE_OF_TEN / 100 and min(_by_source(of, w).values()) > LEAST)
    made = {
        "written": datetime.now(UTC).date().isoformat(),
        "fitted": fitted_file()["fitted"],
        "kinds": _kinds(of, wider),
    }
    return made | {
        "pairs": len({one.within for one in of}),
        "wider": wider,
        "inside": _share(of, made),
        "inside_bands_of_other_sources": _short(_held_out(of, wider)),
        "by_source": _by_source(of, wider),
    }


def _by_source(of: Sequence[Tried], wider: float) -> dict[str, float]:
    """Of each source's pairs the part that lies within bands of other sources alone."""
    return {source: _share(mine, others) for source, mine in _by_end(of) if (others := _without(source, of, wider))}


def _held_out(of: Sequence[Tried], wider: float) -> float:
    """Of all pairs the part that lies within bands of other sources alone."""
    found = [
        _inside(one, others) for source, mine in _by_end(of) if (others := _without(source, of, wider)) for one in mine
    ]
    return float(np.mean(found))


def _share(of: Sequence[Tried], by: Mapping[str, Any]) -> float:
    """Of those tried the part that lies within the bands."""
    return _short(float(np.mean([_inside(one, by) for one in of])))


def _kinds(of: Sequence[Tried], wider: float) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind in (*KINDS, SCALED, SEVERAL):
        for name, experts in (("dense", False), ("moe", True)):
            mine = [one for one in of if kind_of(one.differ) == kind and one.experts == experts]
            if mine:
                found.setdefault(kind, {})[name] = _errors(mine, wider)
    return found


def _errors(of: Sequence[Tried], wider: float) -> dict[str, Any]:
    """Median and ninth tenth of errors as parts of the step; the band is even in logarithms, since both ways count, and
    so many times as wide as the ninth tenth."""
    logs = np.array([one.error for one in of])
    absolute = np.abs(np.expm1(logs))
    ninth = wider * float(np.percentile(np.abs(logs), NINE_OF_TEN, method="higher"))
    return {
        "pairs": len({one.within for one in of}),
        "runs": len({case.run.id for one in of for case in (one.start, one.end)}),
        "sources": len({case.source for one in of for case in (one.start, one.end)}),
        "median": _short(float(np.median(absolute))),
        "ninth_tenth": _short(float(np.percentile(absolute, NINE_OF_TEN))),
        "low": _short(float(np.exp(-ninth))),
        "high": _short(float(np.exp(ninth))),
    }


def _inside(one: Tried, by: Mapping[str, Any]) -> bool:
    band = past(one.differ, one.experts, by)
    return band.low * 0.999 <= np.exp(-one.error) <= band.high * 1.001  # the bands are kept with four digits


def _by_end(of: Sequence[Tried]) -> list[tuple[str, list[Tried]]]:
    return [(s, [one for one in of if one.end.source == s]) for s in sorted({one.end.source for one in of})]


def _without(source: str, of: Sequence[Tried], wider: float) -> dict[str, Any] | None:
    """The bands by pairs of other sources alone; None where these tell of too little."""
    kinds = _kinds([one for one in of if source not in (one.start.source, one.end.source)], wider)
    enough = any(e["pairs"] >= LEAST_PAIRS for both in kinds.values() for e in both.values())
    return {"kinds": kinds} if enough else None


def _short(value: float) -> float:
    return float(f"{value:.4g}")


if __name__ == "__main__":
    main(sys.argv[1:])
