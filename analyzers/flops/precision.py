"""In which number formats the maths ran, and the peaks that utilisation is measured against.

MFU divides by the native peak: that of the formats really used, 1/P = sum of f_i / P_i over the shares f_i of FLOPs in
each. EMFU divides by the BF16 peak whatever ran, and may exceed 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analyzers.base import Facts, FactValue, fact
from analyzers.flops.formats import PRECISIONS, format_of
from analyzers.flops.formats_ran import formats_ran, mixed, native_peak
from analyzers.flops.peak import doubts, peak
from analyzers.subject import chip_of
from catalog.chips import Chip, chip
from catalog.lookup import shown
from errors import QuestionError
from errors.numbers import PER_SECOND
from errors.options import Option
from runs.tables import Tables

PRECISION = Option(
    "precision",
    str,
    None,
    "bf16, fp16, fp8, int8, fp4, or shares of FLOPs such as fp8=0.7,bf16=0.3",
    label="Number format of the maths",
)
PEAK = Option(
    "peak_flops_per_s",
    PER_SECOND,
    None,
    "peak of one chip, FLOP/s; default: declared, traced or the catalogue's",
    unit="FLOP/s",
)
SHARES_SUM = 1e-3


@dataclass(frozen=True)
class Peaks:
    """`native`: FLOP/s of one chip in the formats used; `bf16`: in BF16 (FP16 where the chip has no BF16); None where
    unknown. `most`: what no step of this chip can exceed. `source`: where `native` comes from, in words."""

    chip: Chip | None
    precision: str | None
    native: float | None
    bf16: float | None
    most: float | None
    source: str


def parse_mix(text: str) -> dict[str, float]:
    """Shares of FLOPs by format, from `fp8` or `fp8=0.7,bf16=0.3`.

    Raises QuestionError for a format that no peak is known for and for shares that do not sum to 1.
    """
    mix: dict[str, float] = {}
    for part in text.split(","):
        name, _, share = part.partition("=")
        word = format_of(name)
        try:
            value = float(share) if share else 1.0
        except ValueError:
            value = -1.0
        if word is None or not 0 <= value <= 1 or word in mix:
            raise QuestionError(f"precision {shown(text)}", expected=PRECISION.help)
        mix[word] = value
    if abs(sum(mix.values()) - 1) > SHARES_SUM:
        raise QuestionError(f"the shares of precision {shown(text)} sum to {sum(mix.values()):.4g}", expected="1")
    return mix


def peaks(tables: Tables, facts: Facts, options: Mapping[str, Any]) -> Peaks:
    """What is asked wins over what was declared, that over the trace, that over the catalogue. In which formats the
    maths ran, products that profiled programs executed tell where nobody said it.

    Raises QuestionError for a chip that the catalogue does not have and for a precision that its chip does not do.
    """
    asked = options.get("precision")
    known = chip(options["chip"]) if options.get("chip") else chip_of(facts)
    written = fact(facts, "quantization") or fact(facts, "precision")
    word = format_of(written) if written else None
    stated = word if word and (known is None or known.value(PRECISIONS[word])) else None  # else: emulated in BF16
    ran = {} if asked or written else formats_ran(tables, known)
    mix = parse_mix(asked) if asked else {stated: 1.0} if stated else ran
    label = ",".join(f"{w}={s:.3g}" for w, s in mix.items()) if len(mix) > 1 else next(iter(mix), None)
    bf16 = known and (known.value("bf16_flops_per_s") or known.value("fp16_flops_per_s"))
    fastest = max((float(known.value(key) or 0) for key in PRECISIONS.values()), default=0.0) if known else 0.0
    if options.get("peak_flops_per_s"):
        native, source = options["peak_flops_per_s"], f"peak given, {options['peak_flops_per_s'] / 1e12:.4g} TFLOP/s"
    elif asked and known is None:
        raise QuestionError("no chip is known whose peak this precision has", advice="Ask with --option chip=NAME too.")
    elif known and (asked or options.get("chip") or (not _declared(facts) and (ran or stated not in (None, "bf16")))):
        native, source = _catalogued(known, mix, bf16)
    else:
        known_format = {} if ran else {"precision": FactValue(stated or "bf16", "derived", "")}
        native, source = peak(tables, {**facts, **known_format})
    if known is None and word == "bf16":
        bf16 = native
    most = max(native or 0.0, fastest if ran or not mix or native is None else 0.0) or None
    return Peaks(known, label or (str(written) if written else None), native, bf16 and float(bf16), most, source)


def bounded(facts: Facts, of: Peaks) -> Facts:
    """The facts with the highest rate that a step can have, in whatever format it ran: by it steps are judged."""
    return {**facts, "peak_flops_per_s": FactValue(of.most, "derived", "")} if of.most else facts


def _declared(facts: Facts) -> bool:
    return bool(fact(facts, "peak_flops_per_s"))


def _catalogued(known: Chip, mix: Mapping[str, float], bf16: float | None) -> tuple[float | None, str]:
    if not mix and bf16 is None:
        return None, ""
    if not mix:
        kind = "BF16" if known.value("bf16_flops_per_s") else "FP16"
        doubt = doubts(known, ("bf16",))
        return bf16, f"catalogue peak of {known.name}, {kind} dense, {bf16 / 1e12:.4g} TFLOP/s{doubt}"
    native = native_peak(known, mix)
    said = f"catalogue peak of {known.name}, {mixed(mix)} dense, {native / 1e12:.4g} TFLOP/s"
    return native, said + doubts(known, mix)
