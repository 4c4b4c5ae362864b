"""The chip as the step model uses it: one peak, one memory, one network, each with where it comes from.

A group of chips that share every matrix talks over the scale-up network (ICI, NVLink) where that joins so many chips;
over the host's bus where the chip has no such network; else over the data-centre network.
"""

from dataclasses import dataclass

from catalog.chips import Chip
from errors import QuestionError

PEAKS = {
    "bf16": "bf16_flops_per_s", "fp16": "fp16_flops_per_s", "fp8": "fp8_flops_per_s", "int8": "int8_ops_per_s",
    "fp4": "fp4_flops_per_s", "int4": "int4_ops_per_s",
}  # fmt: skip
COMPUTED_IN = {"fp8": "fp8", "int8": "int8"}  # weights of other formats are widened to bf16 before they are multiplied
SAME_SILICON = {"RTX PRO 6000 Server": "RTX PRO 6000 Workstation"}  # both with 188 streaming multiprocessors
HOP_S = {"NVLink": 0.7e-6, "ICI": 1e-6, "Infinity Fabric": 1.5e-6, "PCIe": 5e-6, "network": 15e-6}
"""Latency of one hop of a collective by kind of link: assumed, of the order that microbenchmarks show."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """One chip and its way to the others. `flops_per_s`: the dense peak of `computes_in`. `link_bytes_per_s`: what one
    chip can send to the rest of its group, one way. `hop_s`: latency of one hop of a collective (assumed).
    """

    chip: str
    computes_in: str
    flops_per_s: float
    bytes_per_s: float
    memory_bytes: float
    link: str
    link_bytes_per_s: float
    hop_s: float
    notes: tuple[str, ...] = ()


def machine(chip: Chip, precision: str, group: int, peak_flops_per_s: float | None = None) -> Machine:
    """`chip` for weights of `precision` where `group` chips share the work of a step. `peak_flops_per_s`: a peak of
    your own. Raises QuestionError where a number is needed that the catalogue does not know.
    """
    notes: list[str] = []
    memory = chip.value("hbm_usable_bytes") or chip.need("hbm_bytes")
    computes_in, flops = COMPUTED_IN.get(precision, "bf16"), peak_flops_per_s
    if flops is None:
        computes_in, flops = _peak(chip, computes_in, notes)
    link, rate = _link(chip, group, notes) if group > 1 else ("none", float("inf"))
    return Machine(
        chip=chip.name, computes_in=computes_in, flops_per_s=flops, bytes_per_s=chip.need("hbm_bytes_per_s"),
        memory_bytes=memory, link=link, link_bytes_per_s=rate, hop_s=HOP_S.get(link, 0.0), notes=tuple(notes),
    )  # fmt: skip


def _peak(chip: Chip, precision: str, notes: list[str]) -> tuple[str, float]:
    """(format, its peak): the format itself, else bf16; a chip of the same silicon where the catalogue is silent."""
    from catalog import chip as named

    found = None if chip.value(PEAKS[precision]) is not None or precision == "bf16" else "bf16"
    if found:
        notes.append(f"The catalogue knows no {precision} peak of {chip.name}: its {found} peak is used.")
        precision = found
    value = chip.value(PEAKS[precision])
    if value is None and chip.name in SAME_SILICON:
        twin = named(SAME_SILICON[chip.name])
        value = twin.value(PEAKS[precision])
        notes.append(f"No source gives the {precision} peak of {chip.name}; that of {twin.name}, with as many "
                     "multiprocessors, stands in for it (assumed).")  # fmt: skip
    if value is None:
        raise QuestionError(
            f"the catalogue does not know the {precision} peak of {chip.name}",
            expected="a dense peak in FLOP/s", advice="Give it with --peak-flops-per-s.",
        )  # fmt: skip
    return precision, float(value)


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
        return kind, both / 2
    rate = chip.value("dcn_oneway_bytes_per_s")
    if rate is None:
        raise QuestionError(
            f"{group} chips of {chip.name} would talk over a network that the catalogue does not know",
            expected=f"at most {domain or 1} chips that share a step",
            advice="Split the model over fewer chips and use replicas.",
        )  # fmt: skip
    notes.append(f"{group} chips are more than the {domain} that the links of {chip.name} join: they talk over the "
                 "data-centre network.")  # fmt: skip
    return "network", float(rate)
