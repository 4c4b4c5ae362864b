"""Numbers of a run for its row: what the questions about it answer, worked out once and kept in the registry.

A glimpse is kept under what it was made of (when the run was written, the facts that were said of it, its price, and
the text of what answers), so that one that no longer holds is not taken for one that does.
"""

import hashlib
import json
import math
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from analyzers.fleet.spent import spent
from analyzers.time.booked import measured
from analyzers.time.ledger import LedgerResult
from app import theme
from app.questions.asking import ask
from app.questions.latency import LATENCY
from app.questions.ledger import LEDGER
from app.questions.ledger.words import losses
from app.questions.mfu import MFU
from app.questions.steps import STEPS
from errors import ChipledgerError
from errors import format as fmt
from runs.registry import Registry
from runs.run import Run

ANSWERING = ("analyzers", "app/questions", "catalog")  # a chip's peak or price makes another answer as code does


@dataclass(frozen=True, kw_only=True)
class Glimpse:
    """What the row of a run shows of its answers; see `Row` for what each is."""

    numbers: dict[str, float] = field(default_factory=dict[str, float])
    largest_loss: str | None = None
    bar: tuple[tuple[str, str, float], ...] = ()
    under: str = ""
    spent: str = ""

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> "Glimpse | None":
        """None where it is not what `to_json` wrote."""
        try:
            told = json.loads(text)
            numbers = {str(k): float(v) for k, v in told["numbers"].items()}
            bar = tuple((str(name), str(title), float(share)) for name, title, share in told["bar"])
            largest, under, spent = told["largest_loss"], str(told["under"]), str(told["spent"])
            return Glimpse(numbers=numbers, largest_loss=largest, bar=bar, under=under, spent=spent)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


@cache
def answering() -> str:
    """What answers: a hash of the text of every analyzer and question, of the catalogue that they read, and of this."""
    digest, root = hashlib.sha256(), Path(__file__).parents[2]
    for file in [*(f for folder in ANSWERING for f in sorted((root / folder).rglob("*"))), Path(__file__)]:
        if file.suffix in (".py", ".json", ".csv", ".toml"):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def glimpse_of(run: Run, registry: Registry) -> Glimpse:
    """Ask what its row shows. Questions that have no answer leave their numbers out."""
    numbers: dict[str, float | None] = {}
    ledger = _asked(LEDGER, run, registry)
    numbers.update(_of_ledger(run, ledger) if isinstance(ledger, LedgerResult) else {})
    numbers.update(_of_steps(run, registry))
    if isinstance(ledger, LedgerResult) and ledger.serving:
        numbers["throughput"] = _served(_asked(LATENCY, run, registry))
    known = {name: value for name, value in numbers.items() if value is not None and math.isfinite(value)}
    if not isinstance(ledger, LedgerResult):
        return Glimpse(numbers=known, under="no ledger: opens with why")
    bar, under = picture(ledger)
    return Glimpse(numbers=known, largest_loss=_largest(ledger), bar=bar, under=under, spent=_spent(run, ledger))


def _asked(asked: Any, run: Run, registry: Registry) -> Any:
    try:
        return ask(asked, run, {}, registry)
    except ChipledgerError:
        return None


def _spent(run: Run, result: LedgerResult) -> str:
    """What fleets add up. The calendar is the one that the ledger was made of, which is kept."""
    if run.manifest.kind == "compiled":  # it never ran
        return ""
    found = None if result.serving else measured(run.tables, run.manifest.facts)
    return spent(result, found[1] if found else None, run.written.sources).to_json()


def _of_ledger(run: Run, result: LedgerResult) -> dict[str, float | None]:
    """What it says of the whole. Chips that no input tells were counted as one: nothing is said of all of them."""
    ledger, known = result.ledger, run.manifest.fact("chips") is not None
    return {
        "hours": ledger.chip_seconds / 3600 / ledger.chips if ledger.chips and ledger.chip_seconds else None,
        "chip_hours": ledger.chip_seconds / 3600 if known and ledger.chip_seconds else None,
        "cost": ledger.usd if known else None,
        "goodput": goodput_of(result),
    }


def _of_steps(run: Run, registry: Registry) -> dict[str, float | None]:
    steps, mfu, chips = _asked(STEPS, run, registry), _asked(MFU, run, registry), run.manifest.fact("chips")
    told: dict[str, float | None] = {"mfu": mfu.mfu if mfu else None}
    if steps is None:
        return told
    told["step_time"] = steps.median_step_s
    told["loss"] = _last_loss(run, steps.rows) if len(steps.rows) else None
    rate = steps.tokens_per_s_per_chip
    told["throughput"] = None if rate is None or not chips else rate * chips
    return told


def _last_loss(run: Run, rows: pd.DataFrame) -> float | None:
    """Of the last kept step that tells one; NaN where it is that, as of a job that diverged: an earlier one is none
    that it came to. Rows of steps do not tell NaN from what was not printed, the table does."""
    import pyarrow.compute as pc

    printed = run.tables.arrow("steps", ["step", "loss"])
    odd = printed["step"].filter(pc.is_nan(printed["loss"])).to_pylist()
    told = rows.loc[rows["kept"] & (rows["loss"].notna() | rows["step"].isin(odd)), "loss"]
    return float(told.to_numpy(dtype=float, na_value=math.nan)[-1]) if len(told) else None


def _served(result: Any) -> float | None:
    return None if result is None else result.load.to_dict().get("output_tokens_per_s")


def _largest(result: LedgerResult) -> str | None:
    """The account that cost most of what is known, and its share."""
    found, whole = losses(result.ledger), result.ledger.chip_seconds
    return f"{theme.title(found[0][0])}, {fmt.share(found[0][1] / whole)}" if found and whole > 0 else None


def goodput_of(result: LedgerResult) -> float | None:
    """The share of the chip time in kept steps, or in answers; None where that cannot be told."""
    ledger, whole = result.ledger, result.ledger.chip_seconds
    if whole <= 0 or (result.serving and ledger.unknown > whole / 2):  # a bound would be read as a measurement
        return None
    if not (result.serving or result.steps_read):
        return None
    return ledger.amount("served" if result.serving else "productive") / whole


def picture(result: LedgerResult) -> tuple[tuple[tuple[str, str, float], ...], str]:
    """The ledger in four parts (account whose colour it has, title, share), and its amount in words."""
    ledger, whole = result.ledger, result.ledger.chip_seconds
    if whole <= 0:
        return (), "no chip time"
    useful, missing, badput = ledger.amount("useful_maths"), ledger.unknown, ledger.amount("badput")
    if result.serving:
        names = ("lost_work", "scheduling", "program_startup", "no_requests")
        badput = math.fsum(ledger.amount(n) for n in names)
    in_what = "answers" if result.serving else "the profile" if ledger.find("profiled") is not None else "kept steps"
    parts = (
        ("useful_maths", "Useful maths", useful),
        ("below_roofline", f"Other known time in {in_what}", max(whole - useful - missing - badput, 0.0)),
        ("unattributed", "Unattributed", missing),
        ("badput", "Lost, waiting or idle" if result.serving else "Badput", badput),
    )
    goodput = goodput_of(result)
    kept = "served" if result.serving else "kept"
    how = f"{fmt.share(goodput)} {kept}" if goodput is not None else "serving" if result.serving else "no step read"
    held = fmt.held_time(whole, ledger.chips_known)
    return tuple((n, t, a / whole) for n, t, a in parts if a > 0), f"{held}, {how}"
