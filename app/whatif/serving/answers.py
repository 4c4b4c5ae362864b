"""The answer of `whatif serving`: simulate, say how far off it may be, and write the run where that is asked for."""

import json
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from app.whatif.serving.asked import Asked
from app.whatif.serving.inputs import measured, run_setup, setup, traffic
from app.whatif.serving.load import load_of
from errors import InputError, QuestionError
from runs.schema import SCHEMAS
from simulators.serving.calibrate import Calibration, calibrate
from simulators.serving.efficiency import FAST, SLOW, SOURCE, TYPICAL, Efficiency
from simulators.serving.engine import NOT_SERVED, Outcome, simulate
from simulators.serving.result import BANDED, Simulated, from_errors, from_runs, spread, tables
from simulators.serving.setup import Setup
from simulators.serving.traffic import Traffic

if TYPE_CHECKING:
    from runs.run import Run

KEPT_GAPS = 2_000_000  # gaps between tokens that a written run keeps one by one
MOST_TOKENS = 100_000_000  # generated tokens that one question may simulate
BEHIND = 0.95  # of the rate asked for: an engine that answers less falls behind
RISING = 1.5  # the last tenth of the waits by the mean of all: of a queue that grows from the start it is 1.9
WAITED_S = 0.1
KEPT_FITS = 32
_TOLD_BY = [f.name for f in fields(Setup) if f.name not in ("model", "chip")]
_fits: dict[tuple[str | None, ...], Calibration] = {}


@dataclass(frozen=True)
class Split:
    """Prefill and decode on machines of their own, beside the same chips in one pool. `rows` as disaggregated.serve
    has them; `band` as in Simulated; `pools`, for example `3P1D`; `balance`: prefill replicas that each decode replica
    would want; `transfer_s`: to send the cache of a mean prompt."""

    rows: pd.DataFrame
    together: Simulated
    band: dict[str, dict[str, tuple[float, float]]]
    pools: str
    balance: float
    transfer_s: float
    notes: tuple[str, ...]

    @property
    def output_tokens_per_s(self) -> float:
        done = self.rows["last_token_s"].notna()
        tokens = self.together.outcome.traffic.output[done.to_numpy()].sum()
        return float(tokens / (self.rows["last_token_s"].max() - self.rows["arrival_s"].min()))

    def to_dict(self) -> dict[str, Any]:
        together = self.together.to_dict()
        rate = self.output_tokens_per_s
        return {
            **{name: spread(self.rows[name].to_numpy()) for name in BANDED},
            "itl_s": None,
            "output_tokens_per_s": rate,
            "per_chip": rate / together["chips"],
            "chips": together["chips"],
            "requests": len(self.rows),
            "kv_usage_peak": None,
            "bound": None,
            "error_band": {k: {n: list(v) for n, v in b.items()} for k, b in self.band.items()},
            "basis": together["basis"],
            "pools": self.pools,
            "balance": self.balance,
            "transfer_s": self.transfer_s,
            "together": together,
            "setup": together["setup"],
            "traffic": together["traffic"],
            "notes": list(self.notes),
        }


def find(asked: Asked, run: "Run | None") -> Simulated | Split:
    """Raises QuestionError where something is missing, does not fit, or is too much to simulate."""
    if run is None and (asked.stage is not None or asked.ran is not None):
        what = "--stage names a load of no run" if asked.stage is not None else "--ran corrects no run"
        raise QuestionError(what, advice="Name the run with --calibrate, or leave it out.")
    served, requests = setup(asked, run), traffic(asked, run)
    if (tokens := int(requests.output.sum())) > MOST_TOKENS:
        raise QuestionError(
            f"{tokens:,} tokens to generate are more than one question may simulate",
            expected=f"at most {MOST_TOKENS:,}",
            advice="Take fewer requests with --requests.",
        )
    fitted = None if run is None else fit(run, run_setup(asked, run), asked.stage)
    if fitted and served.model == fitted.setup.model:
        served = replace(served, silent_tokens=fitted.setup.silent_tokens)
    together = _together(asked, served, requests, fitted)
    if asked.disaggregate == "yes":
        if asked.out:
            raise QuestionError("two pools cannot be written as one run", advice="Leave out --out or --disaggregate.")
        return _split(asked, served, requests, fitted, together)
    if asked.out:
        write(together, Path(asked.out))
    return together


def fit(run: "Run", ran: Setup, stage: str | None = None) -> Calibration:
    """The model fitted to a run on its setup: to the load `stage` of it, else to its busiest. Seconds of work, so the
    last few are kept: a run never changes."""
    key = (run.writing, stage, ran.model.name, ran.chip.name, *(str(getattr(ran, f)) for f in _TOLD_BY))
    if key not in _fits:
        load = load_of(run, stage)
        made = calibrate(ran, measured(load))
        while len(_fits) >= KEPT_FITS:
            _fits.pop(next(iter(_fits)), None)
        _fits[key] = replace(made, notes=(*load.notes, *made.notes))
    return _fits[key]


def _together(asked: Asked, served: Setup, requests: Traffic, fitted: Calibration | None) -> Simulated:
    efficiency, notes = fitted.for_setup(served) if fitted else (TYPICAL, [SOURCE])
    keep = bool(asked.out) and requests.output.sum() < KEPT_GAPS
    middle = simulate(served, requests, efficiency, routing=asked.routing, seed=asked.seed, gaps=keep)
    if fitted:
        off, why = fitted.band(middle)
        band, basis = from_errors(middle, off), f"modelled, {efficiency.basis}"
        notes += [_told(fitted), *fitted.notes, *why]
    else:
        ends = tuple(
            simulate(served, requests, e, routing=asked.routing, seed=asked.seed, record=False) for e in (SLOW, FAST)
        )
        band, basis = from_runs(middle, ends), "modelled, with assumed shares of the peaks"
    notes = list(dict.fromkeys([*notes, *_seen(middle), *served.machine.notes, *requests.notes]))
    return Simulated(middle, band, basis, fitted.to_dict() if fitted else None, tuple(notes))


def _told(fitted: Calibration) -> str:
    return (
        f"Fitted to half of {fitted.requests:,} requests of {fitted.name}. Simulated by measured on what was held "
        f"back: {'; '.join(f'{_errors(e)} where {name} fitted' for name, e in fitted.splits.items())}. The worst "
        f"split counts: {fitted.worst}."
    )


def _errors(found: dict[str, float]) -> str:
    told = ", ".join(f"{m.replace('_', ' ')} {e:+.1%}" for m, e in found.items())
    return told.replace("ttft", "TTFT").replace("tpot", "TPOT")


def _seen(outcome: Outcome) -> list[str]:
    """What a reader has to know of this simulation."""
    notes, rows = [], outcome.served
    if refused := len(outcome.requests) - len(rows):
        notes.append(
            f"{refused:,} of {len(outcome.requests):,} requests are refused: {NOT_SERVED}, or is longer "
            "than a step may be."
        )
    if not outcome.traffic.concurrency and len(rows) > 1:
        span = rows["arrival_s"].max() - rows["arrival_s"].min()
        if span > 0 and (len(rows) / outcome.duration_s) < BEHIND * len(rows) / span:
            queue = rows["scheduled_s"] - rows["arrival_s"]
            usual = queue.mean()
            if usual > WAITED_S and queue.iloc[-max(len(rows) // 10, 1) :].mean() > RISING * usual:
                notes.append(
                    "It falls behind: the queue grows for as long as requests come, so times to first token "
                    "tell how long that was, and not what the setup can do."
                )
    s = outcome.setup
    if uneven := sorted({a.heads for a in s.model.attention if a.heads % s.tensor}):
        notes.append(
            f"{s.model.name} has {uneven[0]} query heads, which {s.tensor} chips cannot share evenly: engines "
            "such as vLLM refuse it. Take a number of chips that divides them, or replicas."
        )
    if outcome.traffic.cached.any() and not outcome.traffic.block_tokens:
        notes.append("Prompt tokens found in the cache are taken as told; all requests share them.")
    notes.append("Latencies are the engine's: network, tokenizer and client come on top.")
    return notes


def _split(asked: Asked, served: Setup, requests: Traffic, fitted: Calibration | None, together: Simulated) -> Split:
    from simulators.serving.disaggregated import balance, pools, serve
    from simulators.serving.memory import max_sequences
    from simulators.serving.objectives import Shape

    if served.replicas < 2:
        raise QuestionError(
            "prefill and decode on machines of their own need two replicas or more",
            expected="--replicas 2 or more",
            advice="Say into how many copies the chips are split, for example --chips 8 --replicas 2.",
        )
    mean = Shape(*(int(round(float(v.mean()))) for v in (requests.prompt, requests.output, requests.cached)))
    batch = max(1, min(served.max_sequences * served.groups, max_sequences(served, mean.prompt + mean.output)))
    efficiency = together.outcome.efficiency
    even = balance(served, mean, batch, efficiency)
    prefill = min(max(round(served.replicas * even / (1 + even)), 1), served.replicas - 1)
    split = pools(served, prefill, served.replicas - prefill)
    if requests.concurrency:
        raise QuestionError("two pools are simulated at a rate or from a trace", expected="--rate or --trace")
    scale: Callable[[Efficiency], pd.DataFrame] = lambda e: serve(  # noqa: E731
        split, requests, e, routing=asked.routing, seed=asked.seed
    )
    rows = scale(efficiency)
    band = _split_band(rows, together) if fitted else _between(rows, [scale(e) for e in (SLOW, FAST)])
    notes = (
        f"{split.name}: {prefill} of {served.replicas} replicas read prompts, by balance ({even:.2g} for each that "
        f"generates); caches go over {split.link}.",
        "The peak of the cache and what bounds a step are told for one pool only.",
        *together.notes,
    )
    return Split(rows, together, band, split.name, even, split.transfer_s(mean.prompt), notes)


def _between(rows: pd.DataFrame, ends: list[pd.DataFrame]) -> dict[str, dict[str, tuple[float, float]]]:
    band = {}
    for name in BANDED:
        found = [spread(r[name].to_numpy()) for r in (rows, *ends)]
        if all(found):
            band[name] = {s: (min(f[s] for f in found), max(f[s] for f in found)) for s in ("mean", "p99")}
    return band


def _split_band(rows: pd.DataFrame, together: Simulated) -> dict[str, dict[str, tuple[float, float]]]:
    """As far off as the same chips in one pool, in shares."""
    band = {}
    for name in ("ttft_s", "tpot_s"):
        mine, whole = spread(rows[name].to_numpy()), spread(together.outcome.served[name].to_numpy())
        if mine and whole:
            band[name] = {
                s: tuple(mine[s] * edge / whole[s] for edge in together.band[name][s]) for s in ("mean", "p99")
            }
    return band


def write(result: Simulated, folder: Path) -> None:
    """The simulated run as files that `chipledger ingest` reads. Raises InputError where they cannot be written."""
    outcome = result.outcome
    s = outcome.setup
    name = f"simulated: {s.model.name} on {s.chips} × {s.chip.name}"
    told = {
        "name": name,
        "kind": "simulated",
        "simulated": True,
        "chip": s.chip.name,
        "chips": s.chips,
        "model": s.model.name,
        "precision": s.weights_precision,
        "parallelism": {"data": s.replicas, "tensor": s.tensor} | ({"expert": s.expert} if s.expert > 1 else {}),
        "note": f"Simulated: {outcome.traffic.name}. {result.basis[0].upper()}{result.basis[1:]}.",
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for table, columns in tables(outcome).items():
            batch = SCHEMAS[table].batch(columns).select(list(columns))
            pq.write_table(pa.Table.from_batches([batch]), folder / f"{table}.parquet", compression="zstd")
        (folder / "chipledger.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    except OSError as e:
        raise InputError(f"cannot write there ({e.strerror or e})", where=str(folder)) from e
