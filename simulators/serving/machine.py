"""The chip as the step model uses it: its peaks, one memory, one network, each with where it comes from.

Weights are multiplied in their format where the chip has a peak for it; else they are only stored so, and widened to
16 bits on their way to the matrix units. Attention looks at its context in 16 bits.

A group of chips that share every matrix talks over the scale-up network (ICI, NVLink) where that joins so many chips;
over the host's bus where the chip has no such network; else over the data-centre network. Of ICI a slice of so many
chips has two links of each axis that wraps and one of each that does not, at whose end a chip has no other. Where each
chip sends to all others, what goes far takes several links, and the busiest of them counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from catalog.chips import Chip, chips
from catalog.formats import WIDE, Kept
from catalog.slices import families
from errors import QuestionError
from simulators.collectives.rings import all_to_all
from simulators.topology.systems.shapes import shapes_of, wraps

PEAKS = {
    "bf16": "bf16_flops_per_s",
    "fp16": "fp16_flops_per_s",
    "fp8": "fp8_flops_per_s",
    "int8": "int8_ops_per_s",
    "fp4": "fp4_flops_per_s",
    "int4": "int4_ops_per_s",
}
SAME_SILICON = {"RTX PRO 6000 Server": "RTX PRO 6000 Workstation"}  # both with 188 streaming multiprocessors
NARROWER = (("fp8", 2), ("fp4", 4))  # formats, and how many times as fast as bf16 they usually are
HOP_S = {"NVLink": 0.7e-6, "ICI": 1e-6, "Infinity Fabric": 1.5e-6, "PCIe": 5e-6, "network": 15e-6}
"""Latency of one hop of a collective by kind of link: assumed, of the order that microbenchmarks show."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """One chip and its way to the others. `flops_per_s`: the dense peak of `computes_in`, in which most weights are
    multiplied; `peaks`: the peak for each format that weights are multiplied in, bf16 always. `link_bytes_per_s`: what
    one chip can send to the rest of its group, one way; `spread_bytes_per_s`: where each sends as much to every other.
    `hop_s`: latency of one hop of a collective (assumed).
    `stand_ins`: for each number that is another chip's, which and why.
    """

    chip: str
    computes_in: str
    flops_per_s: float
    peaks: Mapping[str, float]
    bytes_per_s: float
    memory_bytes: float
    link: str
    link_bytes_per_s: float
    spread_bytes_per_s: float
    hop_s: float
    notes: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()


def machine(chip: Chip, held: Kept, group: int, peak_flops_per_s: float | None = None) -> Machine:
    """`chip` for weights kept as `held` where `group` chips share the work of a step. `peak_flops_per_s`: a peak of
    your own, for every format. Raises QuestionError where a number is needed that the catalogue does not know.
    """
    notes: list[str] = []
    stand_ins: list[str] = []
    memory = chip.value("hbm_usable_bytes") or chip.need("hbm_bytes")
    needed, computes_in = {WIDE, *held.multiplies.values()}, held.bulk
    if peak_flops_per_s is not None:
        peaks = dict.fromkeys(needed, peak_flops_per_s)
    else:
        found = {f: _peak(chip, f, notes) for f in sorted(needed)}
        stand_ins = _stand_ins(chip, dict(found.values()))
        peaks, computes_in = {f: rate for f, (_, rate) in found.items()}, found[held.bulk][0]
    link, rate = _link(chip, group, notes) if group > 1 else ("none", float("inf"))
    return Machine(
        chip=chip.name,
        computes_in=computes_in,
        flops_per_s=peaks[held.bulk],
        peaks=peaks,
        bytes_per_s=float(chip.need("hbm_bytes_per_s")),
        memory_bytes=memory,
        link=link,
        link_bytes_per_s=rate,
        spread_bytes_per_s=min(rate, _spread_bytes_per_s(chip, group)) if link == "ICI" else rate,
        hop_s=HOP_S.get(link, 0.0),
        notes=(*notes, *stand_ins),
        stand_ins=tuple(stand_ins),
    )


def known_peak(chip: Chip, precision: str) -> float | None:
    """The dense peak of a format, that of a chip of the same silicon where the catalogue is silent; None: neither."""
    value = chip.value(PEAKS[precision])
    if value is None and chip.name in SAME_SILICON:
        value = chips()[SAME_SILICON[chip.name]].value(PEAKS[precision])
    return None if value is None else float(value)


def _peak(chip: Chip, precision: str, notes: list[str]) -> tuple[str, float]:
    """(format that is computed in, its peak): the format itself, else bf16, else fp16, else by NARROWER."""
    value, asked = known_peak(chip, precision), precision
    if value is None and precision != WIDE:
        notes.append(
            f"{chip.name} has no {precision} peak that the catalogue knows: weights are stored in {precision} "
            "and multiplied in 16 bits."
        )
        precision, value = WIDE, known_peak(chip, WIDE)
    if value is None and (half := known_peak(chip, "fp16")) is not None:
        notes.append(f"{chip.name} has no {WIDE}: its fp16 peak is used.")
        precision, value = "fp16", half
    if value is None:
        value = next((rate / times for f, times in NARROWER if (rate := known_peak(chip, f)) is not None), None)
    if value is None:
        raise QuestionError(
            f"the catalogue does not know the {asked} peak of {chip.name}",
            expected="a dense peak in FLOP/s",
            advice="Give it with --peak-flops-per-s.",
        )
    return precision, value


def _stand_ins(chip: Chip, used: Mapping[str, float]) -> list[str]:
    """A sentence on the peaks (by format) that are another chip's."""
    lent = [f for f in used if chip.value(PEAKS[f]) is None]
    if not lent:
        return []
    rates = ", ".join(f"{f} {used[f] / 1e12:,.1f} TFLOP/s" for f in lent)
    if chip.name not in SAME_SILICON:
        return [
            f"No source gives a peak of {chip.name} in 16 bits: half of fp8 or a quarter of fp4 "
            f"stands in for it ({rates}; assumed)."
        ]
    return [
        f"No source gives the peaks of {chip.name}: {SAME_SILICON[chip.name]}, with as many multiprocessors, "
        f"stands in for it ({rates}; assumed)."
    ]


def _link(chip: Chip, group: int, notes: list[str]) -> tuple[str, float]:
    """(kind of link, bytes/s one way of one chip) by which `group` chips talk."""
    domain = chip.value("scaleup_domain_chips")
    both = chip.value("scaleup_bidi_bytes_per_s")
    if "PCIe" in chip.scaleup and domain == 1:
        notes.append(f"{chip.name} has no link between cards but PCIe, and every exchange passes through the host.")
        return "PCIe", float(chip.need("link_oneway_bytes_per_s"))
    if domain is not None and group <= domain:
        kind = next((k for k in HOP_S if k in chip.scaleup), "network")
        if not both:
            raise QuestionError(f"the catalogue does not know how fast the links of {chip.name} are")
        return kind, scaleup_bytes_per_s(chip, group)
    rate = chip.value("dcn_oneway_bytes_per_s")
    if rate is None:
        raise QuestionError(
            f"{group} chips of {chip.name} would talk over a network that the catalogue does not know",
            expected=f"at most {domain or 1} chips that share a step",
            advice="Split the model over fewer chips and use replicas.",
        )
    notes.append(
        f"{group} chips are more than the {domain} that the links of {chip.name} join: they talk over the "
        "data-centre network."
    )
    return "network", float(rate)


def scaleup_bytes_per_s(chip: Chip, group: int) -> float:
    """Bytes/s one way of one chip over the scale-up links to `group` chips: all of them, of a torus those that its
    slice has, the best of the shapes of so many chips; chips that are no slice of their own are a line."""
    family = families().get(chip.name)
    if family is None or not family.axes:
        return chip.need("scaleup_bidi_bytes_per_s") / 2
    return float(_links(family.name, group) * chip.need("link_oneway_bytes_per_s"))


@cache
def _links(name: str, group: int) -> int:
    """Links over which a chip sends at once in the best slice of so many."""
    family = families()[name]
    shapes = [zip(dims, wraps(family, dims), strict=True) for dims in shapes_of(family, group)]
    return max((sum(1 + wrapped for length, wrapped in axes if length > 1) for axes in shapes), default=1)


def _spread_bytes_per_s(chip: Chip, group: int) -> float:
    """Bytes/s one way that each chip of a slice of so many sends to all others alike, in the best of its shapes; chips
    that are no slice of their own are a line. No bound for chips of no torus."""
    family = families().get(chip.name)
    if family is None or not family.axes:
        return float("inf")
    return _spread(family.name, group) * float(chip.need("link_oneway_bytes_per_s"))


@cache
def _spread(name: str, group: int) -> float:
    """The same over links of 1 byte/s: what a chip sends of an array of 1 byte, by the time that takes."""
    family = families()[name]
    shapes = [(dims, wraps(family, dims)) for dims in shapes_of(family, group)] or [((group,), (False,))]
    least = min(all_to_all(1.0, dims, closed, 1.0, 0.0).bandwidth_s for dims, closed in shapes)
    return (group - 1) / group**2 / least
