"""The fingerprint of a printed number: which FLOP convention and which peak it used, and whether it contradicts itself.

TFLOP/s divided by tokens/s are the FLOPs that someone counted for a token; TFLOP/s divided by MFU are the peak that
someone divided by. Both are compared with all that the catalogue can compute.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from analyzers.flops.formats import PRECISIONS
from catalog.chips import Chip, chips
from catalog.flops import CONVENTIONS, flops_per_token
from catalog.models import Model

TOLERANCE = 0.005  # relative; printed rates have three digits
SAME = 1e-9
ONE_NUMBER = 5e-4  # data sheets print peaks with four digits: twice one of them may differ from another in the last
USUAL = ("causal", "noncausal", "palm")  # conventions by which an MFU is quoted


@dataclass(frozen=True)
class ConventionMatch:
    """`distance`: what was printed, relative to this convention, less 1. `same`: others that count as much here."""

    name: str
    title: str
    flops_per_token: float
    distance: float
    same: tuple[str, ...] = ()


@dataclass(frozen=True)
class PeakMatch:
    """A peak of a chip. `distance`: the peak that the print implies, relative to this one, less 1."""

    chip: str
    precision: str
    sparse: bool
    peak_flops_per_s: float
    distance: float

    @property
    def words(self) -> str:
        kind = f"{self.precision.upper()} {'2:4 sparse' if self.sparse else 'dense'}"
        return f"{self.peak_flops_per_s / 1e12:,.4g} TFLOP/s ({self.chip}, {kind})"


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    """What a print says of itself.

    `tolerance`: of the conventions. `printed_flops_per_token`: None unless both rates are known. `conventions`: every
    different count for this model, nearest first (empty without a model). `implied_peak_flops_per_s`, `peaks`: the
    peak behind a printed MFU and those of the catalogue within the tolerance and the print's own rounding of it,
    nearest first, and of equal ones that of the precision that ran. `contradictions`: sentences; empty where all
    agrees.
    """

    tolerance: float
    printed_flops_per_token: float | None = None
    conventions: tuple[ConventionMatch, ...] = ()
    implied_peak_flops_per_s: float | None = None
    peaks: tuple[PeakMatch, ...] = ()
    contradictions: tuple[str, ...] = ()

    @property
    def matching(self) -> tuple[ConventionMatch, ...]:
        """Conventions within the tolerance, nearest first."""
        return tuple(c for c in self.conventions if abs(c.distance) <= self.tolerance)

    @property
    def verdict(self) -> str:
        """One sentence: which convention and which peak these numbers used. Empty where nothing can be told."""
        used = []
        if match := self.matching[:1]:
            used.append(f"the {match[0].title} convention{_alike(match[0].same)}")
        if self.peaks:
            used.append(f"a peak of {self.peaks[0].words}")
        return f"These numbers used {' and '.join(used)}." if used else ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "tolerance": self.tolerance,
            "printed_flops_per_token": self.printed_flops_per_token,
            "conventions": [
                {
                    "name": c.name,
                    "flops_per_token": c.flops_per_token,
                    "distance": c.distance,
                    "same": list(c.same),
                    "matches": abs(c.distance) <= self.tolerance,
                }
                for c in self.conventions
            ],
            "implied_peak_flops_per_s": self.implied_peak_flops_per_s,
            "peaks": [
                {
                    "chip": p.chip,
                    "precision": p.precision,
                    "sparse": p.sparse,
                    "distance": p.distance,
                    "peak_flops_per_s": p.peak_flops_per_s,
                }
                for p in self.peaks
            ],
            "contradictions": list(self.contradictions),
            "verdict": self.verdict,
        }


def fingerprint(
    *,
    model: Model | None = None,
    seq: int | None = None,
    chip: Chip | None = None,
    precision: str | None = None,
    peak_flops_per_s: float | None = None,
    tflops_per_s: float | None = None,
    tokens_per_s: float | None = None,
    printed_mfu: float | None = None,
    mfu_unit: float = 0.0,
    tolerance: float = TOLERANCE,
) -> Fingerprint:
    """What can be told from rates per chip and a printed MFU (a share). `peak_flops_per_s`: the chip's native peak.
    `mfu_unit`: one in the last printed place of the MFU, as a share: a print of 43 % stands for 42.5 to 43.5.

    Pure. Whatever is None is not compared.
    """
    loose = tolerance + (0.5 * mfu_unit / printed_mfu if printed_mfu else 0.0)
    per_token = tflops_per_s * 1e12 / tokens_per_s if tflops_per_s and tokens_per_s else None
    meant = per_token
    if not tflops_per_s and printed_mfu and tokens_per_s and peak_flops_per_s:
        meant = printed_mfu * peak_flops_per_s / tokens_per_s
    counts = _counts(model, seq, meant) if model and seq and meant else ()
    implied = tflops_per_s * 1e12 / printed_mfu if tflops_per_s and printed_mfu else None
    found = Fingerprint(
        tolerance=tolerance if per_token else loose,
        printed_flops_per_token=per_token,
        conventions=counts,
        implied_peak_flops_per_s=implied,
        peaks=_peaks(implied, chip, precision, loose) if implied else (),
    )
    wrong = []
    if counts and not found.matching:
        wrong.append(_no_convention(found) if per_token else _wrong_share(found, printed_mfu))
    if implied and peak_flops_per_s:
        wrong.append(_wrong_peak(found, chip, precision, peak_flops_per_s, printed_mfu, tflops_per_s, loose))
    return Fingerprint(**{**vars(found), "contradictions": tuple(w for w in wrong if w)})


def _counts(model: Model, seq: int, printed: float) -> tuple[ConventionMatch, ...]:
    """Every different count, nearest to `printed` first; of equal ones the first convention stands for all."""
    found: list[ConventionMatch] = []
    for c in CONVENTIONS:
        count = flops_per_token(model, seq, c.name).total
        twin = next((i for i, f in enumerate(found) if abs(f.flops_per_token / count - 1) < SAME), None)
        if twin is None:
            found.append(ConventionMatch(c.name, c.title, count, printed / count - 1))
        else:
            f = found[twin]
            found[twin] = ConventionMatch(f.name, f.title, f.flops_per_token, f.distance, (*f.same, c.name))
    return tuple(sorted(found, key=lambda f: abs(f.distance)))


SPARSE = ("NVIDIA", "AMD")  # who advertise rates of 2:4 sparse matrices: Google and Intel do not


def known_peaks(some: Iterable[Chip]) -> list[tuple[str, str, bool, float]]:
    """(chip, precision, sparse, FLOP/s) of every peak that a print may have divided by.

    GPUs of the Ampere generation and later advertise twice the dense rate for 2:4 sparse matrices (FP4 differs from
    chip to chip and is left out).
    """
    found = []
    known = {}
    for one in some:
        known[one.name] = one
        for precision, key in PRECISIONS.items():
            if value := one.value(key):
                found.append((one.name, precision, False, float(value)))
                if one.vendor in SPARSE and one.value("bf16_flops_per_s") and precision != "fp4":
                    found.append((one.name, precision, True, 2.0 * float(value)))
    return found + [(c.name, p, False, float(n.value)) for c in known.values() for p, n in c.printed_peaks.items()]


def _peaks(implied: float, own: Chip | None, ran: str | None, tolerance: float) -> tuple[PeakMatch, ...]:
    """Peaks within the tolerance: those of the run's own chip, else those of any chip."""

    def near(some: Iterable[Chip]) -> tuple[PeakMatch, ...]:
        all_of = [PeakMatch(*peak, implied / peak[3] - 1) for peak in known_peaks(some)]
        return _ranked([p for p in all_of if abs(p.distance) <= tolerance], ran)

    return (own and near([own])) or near(chips().values())


def _ranked(found: list[PeakMatch], ran: str | None) -> tuple[PeakMatch, ...]:
    """Nearest first; of peaks that are one number, which no print tells apart, those of the precision that ran, and
    dense ones before sparse ones."""

    def place(p: PeakMatch) -> tuple[float, bool, bool, float]:
        nearest = min(abs(q.distance) for q in found if abs(q.peak_flops_per_s / p.peak_flops_per_s - 1) <= ONE_NUMBER)
        return nearest, p.precision != ran, p.sparse, abs(p.distance)

    return tuple(sorted(found, key=place))


def _alike(same: tuple[str, ...]) -> str:
    titles = {c.name: c.title for c in CONVENTIONS}
    return f" (for this model the same as {', '.join(titles[s] for s in same)})" if same else ""


def _no_convention(found: Fingerprint) -> str:
    """What to say where no convention gives the printed FLOPs per token."""
    near = found.conventions[0]
    return (
        f"The printed rates make {found.printed_flops_per_token / 1e9:,.4g} GFLOPs per token, which no convention "
        f"gives for this model and sequence; the nearest, {near.title}, gives "
        f"{near.flops_per_token / 1e9:,.4g}."
    )


def _wrong_share(found: Fingerprint, printed: float) -> str:
    """What to say where a printed MFU fits the printed tokens per second by no convention."""
    said = [f"{_percent(printed / (1 + c.distance))} ({c.title})" for c in found.conventions if c.name in USUAL]
    return f"{_percent(printed)} contradicts the printed tokens per second, which are {' or '.join(said)} of the peak."


def _wrong_peak(
    found: Fingerprint,
    chip: Chip | None,
    precision: str | None,
    peak: float,
    printed: float,
    tflops_per_s: float,
    tolerance: float,
) -> str:
    """What to say where a printed MFU is not the printed TFLOP/s over the native peak; "" where it is."""
    right = tflops_per_s * 1e12 / peak
    if abs(right / printed - 1) <= tolerance:
        return ""
    used = next((p for p in found.peaks if chip and p.chip == chip.name), None)
    if used is None:
        whose = f"that of {found.peaks[0].words}" if found.peaks else "which no chip of the catalogue has"
        return (
            f"{_percent(printed)} contradicts the printed {tflops_per_s:,.4g} TFLOP/s, which are {_percent(right)} "
            f"of the peak of {peak / 1e12:,.4g} TFLOP/s; the print needs a peak of "
            f"{found.implied_peak_flops_per_s / 1e12:,.4g}, {whose}."
        )
    sheet = {p: n.value for p, n in chip.printed_peaks.items()}
    if used.peak_flops_per_s in sheet.values():  # of this data sheet the native peak is another number as well
        right = tflops_per_s * 1e12 / sheet.get(precision or used.precision, peak)
    if used.precision == precision and not used.sparse:
        return ""
    return (
        f"{_percent(printed)} divides by {used.words}; by the peak of the precision that ran"
        f"{f', {precision.upper()},' if precision else ''} it is {_percent(right)}."
    )


def _percent(share: float) -> str:
    return f"{share * 100:.4g} %"
