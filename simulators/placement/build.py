"""From a topology to the machine that a mesh is laid over: its axes, rates and peak, and what had to be assumed."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from catalog.chips import Chip
from catalog.chips import chip as find_chip
from errors import QuestionError
from errors.numbers import HOP, PER_SECOND
from simulators.placement.fit import nearest
from simulators.placement.machine import Machine, PhysicalAxis
from simulators.placement.mesh import LogicalAxis, shown
from simulators.topology.lattice import AXES, twist_of
from simulators.topology.network import KIND_OF, Network
from simulators.topology.spec import Spec
from simulators.topology.systems.fat_tree import DOWN, NODE, UNIT

HOP_S = 1e-6  # across one link, as the scaling book reckons
DCN_HOP_S = 1e-5  # host, switches, host: assumed, an order more
ASSUMED_CHIP = "TPU v5p"  # where a topology is of no machine in particular
PEAKS = {"bf16": ("bf16_flops_per_s", "fp16_flops_per_s"), "fp8": ("fp8_flops_per_s",), "fp32": ()}
LEVELS = {"boardfly", "nvlink", "direct", "fat tree", "rail"}


@dataclass(frozen=True, kw_only=True)
class Given:
    """What the person says instead of the catalogue; None: as the catalogue has it."""

    chip: str | None = None
    link_bytes_per_s: float | None = None
    hop_s: float | None = None
    dcn_bytes_per_s: float | None = None
    peak_flops_per_s: float | None = None

    def __post_init__(self) -> None:
        for name in ("link_bytes_per_s", "hop_s", "dcn_bytes_per_s", "peak_flops_per_s"):
            if (value := getattr(self, name)) is not None:
                (HOP if name == "hop_s" else PER_SECOND).read(value, name.replace("_", "-"))


def machine(
    spec: Spec, network: Network, axes: Sequence[LogicalAxis], dtype: str = "bf16", given: Given | None = None
) -> Machine:
    """The machine that a mesh of these axes takes whole. Raises QuestionError where it has not as many devices."""
    given = given or Given()
    named = given.chip or spec.chip
    chip = find_chip(named or ASSUMED_CHIP)
    own = find_chip(spec.chip) if spec.chip else None
    notes = [] if named else [f"{spec.text} is of no chip in particular: reckoned with {chip.name}'s links and peak."]
    per_chip = _devices_per_chip(spec, chip, axes)
    hop_s = HOP_S if given.hop_s is None else given.hop_s
    if per_chip > 1:
        notes.append(f"The mesh counts JAX devices, {per_chip} a chip: they share its links and its peak equally.")
    elif (chip.value("jax_devices_per_chip") or 1) > 1 and spec.chip:
        notes.append(
            f"The mesh counts chips; JAX shows {chip.name} as {chip.value('jax_devices_per_chip')} devices a "
            f"chip, so that in a program one axis is twice as long."
        )
    if spec.kind in LEVELS:
        physical = _levels(network, hop_s, given, notes)
    elif spec.dims:
        physical = _lattice(spec, _link_rate(chip, given), hop_s)
    else:
        raise QuestionError(
            f"{spec.text} ({spec.kind}) has no axes or levels to lay a mesh on",
            where="topology",
            expected="a mesh, torus, Boardfly, GPUs joined alike or a fat tree",
        )
    if spec.kind == "boardfly":
        notes.append(
            "How JAX numbers the devices of a Boardfly is not known: the Python given takes their ids to "
            "follow group, board and chip."
        )
    physical = [_shared(a, per_chip) for a in physical]
    if per_chip > 1:
        physical.append(_core(chip, per_chip, notes))
    if spec.slices > 1:
        physical.insert(0, _dcn(spec, chip, given, per_chip))
    peak = _peak(chip, dtype, given, notes)
    return Machine(
        spec=spec.text,
        chip=chip.name,
        chips=spec.chips,
        axes=tuple(physical),
        levels=spec.kind in LEVELS,
        peak_flops_per_s=None if peak is None else peak / per_chip,
        notes=tuple(notes),
        device_kind=own.jax.device_kind if own and own.jax else None,
        cores=int(own.value("jax_devices_per_chip") or 1) if own else 1,
    )


def _devices_per_chip(spec: Spec, chip: Chip, axes: Sequence[LogicalAxis]) -> int:
    """1 where the mesh counts chips, else the JAX devices of a chip. Raises QuestionError where it counts neither."""
    each = int(chip.value("jax_devices_per_chip") or 1) if spec.chip else 1
    devices = prod(a.size for a in axes)
    if devices == spec.chips:
        return 1
    if devices == spec.chips * each:
        return each
    counts = f"{spec.chips:,} chips" + (f" ({spec.chips * each:,} JAX devices)" if each > 1 else "")
    total = min((spec.chips, spec.chips * each), key=lambda n: abs(n - devices))
    raise QuestionError(
        f"mesh {shown(axes)} has {devices:,} devices, {spec.text} has {counts}",
        where="mesh",
        expected=f"such as {nearest(total, axes, spec.slices)}",
    )


def _lattice(spec: Spec, rate: float, hop_s: float) -> list[PhysicalAxis]:
    twist = (twist_of(spec.dims) or ()) if spec.twisted else ()
    return [
        PhysicalAxis(
            name=AXES[i],
            length=k,
            kind="link",
            oneway_bytes_per_s=rate,
            hop_s=hop_s,
            wrapped=spec.wraps[i],
            twisted_with=tuple(j for j, s in enumerate(twist[i]) if s) if twist else (),
        )
        for i, k in enumerate(spec.dims)
    ]


def _levels(network: Network, hop_s: float, given: Given, notes: list[str]) -> list[PhysicalAxis]:
    """Parts within parts, each with the rate that one chip's share of the links between its parts gives."""
    at = network.coordinates
    lengths = [len(np.unique(at[:, i])) for i in range(at.shape[1])]
    names = list(network.axes)
    if network.kind in ("nvlink", "direct"):
        lengths, names = [network.chips], ["gpu"]
    elif prod(lengths) != network.chips:  # the last unit is not full: nodes as one level
        lengths, names = [network.chips // lengths[-1], lengths[-1]], ["node", "gpu"]
    rate = {
        kind: _share(network, kind, given)
        for kind in ("board", "copper", "ocs", "nvlink", "direct", "rail", "spine", "core")
    }
    leaf, spine = _leaf(network, "unit" in names)
    notes.append(
        "Logical axes are nested in one another over the levels, and the links between parts of a level count "
        "as shared equally by its chips; ways through other chips take no time of their own."
    )
    found = []
    for name, length in zip(names, lengths, strict=True):
        if length == 1:
            continue
        kind, oneway, hops = _level(network.kind, name, rate)
        slower = name == "node" and spine is not None and oneway is not None and spine < oneway
        found.append(
            PhysicalAxis(
                name=name,
                length=length,
                kind=kind,
                oneway_bytes_per_s=oneway,
                hop_s=hops * hop_s,
                wrapped=kind == "link" and length > 2,
                leaf=leaf if slower else 1,
                spine_bytes_per_s=spine if slower else None,
            )
        )
        if slower and spine is not None:
            notes.append(
                f"Leaves have fewer links up than down: beyond {leaf} neighbouring nodes a chip has "
                f"{spine / 1e9:.4g} GB/s one way."
            )
    return found


def _leaf(network: Network, units: bool) -> tuple[int, float | None]:
    """(neighbouring nodes below the same leaves, bytes/s one way of one chip beyond full ones). None where nodes meet
    no others beyond theirs: on rails where units are a level of their own."""
    spines = network.links[network.link_kind == KIND_OF["spine"]]
    known = network.oneway_bytes_per_s.get("spine")
    if not len(spines) or known is None or (network.kind == "rail" and units):
        return 1, None
    each = len(spines) / len(np.unique(spines[:, 0]))  # uplinks of a leaf
    return (UNIT if network.kind == "rail" else DOWN // NODE), known * each / DOWN


def _level(system: str, name: str, rate: dict[str, float | None]) -> tuple[str, float | None, int]:
    """(kind, bytes/s one way of a chip, hops) of a level."""
    if system == "boardfly":
        # a ring has as many links as chips, two at each: a chip's share both ways is two links, one link is half
        return {
            "chip": ("link", _of(rate["board"], 0.5), 1),
            "board": ("direct", rate["copper"], 3),
            "group": ("direct", rate["ocs"], 7),
        }[name]
    if name == "gpu":
        return ("switch", rate["nvlink"], 2) if rate["nvlink"] else ("direct", rate["direct"], 1)
    outer = [r for r in ((rate["rail"], rate["spine"]) if name == "unit" else (rate["rail"],)) if r is not None]
    return "switch", min(outer, default=None), 4 if name == "unit" else 2


def _share(network: Network, kind: str, given: Given) -> float | None:
    """Bytes/s one way of one chip over all links of a kind: each link carries its rate out of both of its ends, of
    which only chips count, or all of one end for links between switches."""
    of_kind = network.links[network.link_kind == KIND_OF[kind]]
    known = network.oneway_bytes_per_s.get(kind)
    if not len(of_kind) or known is None:
        return None
    one = given.link_bytes_per_s if given.link_bytes_per_s and kind not in ("rail", "spine", "core") else known
    chip_ends = int((of_kind < network.chips).sum())
    return one * (chip_ends or len(of_kind)) / network.chips


def _of(rate: float | None, part: float) -> float | None:
    return None if rate is None else rate * part


def _shared(axis: PhysicalAxis, per_chip: int) -> PhysicalAxis:
    return PhysicalAxis(**{**vars(axis), "oneway_bytes_per_s": _of(axis.oneway_bytes_per_s, 1 / per_chip)})


def _core(chip: Chip, per_chip: int, notes: list[str]) -> PhysicalAxis:
    links = chip.value("die_to_die_links")
    rate = None if links is None else links * chip.need("link_oneway_bytes_per_s")
    how = "how fast is not known; taken as free" if rate is None else f"{links:g} times a link (recalled, unchecked)"
    notes.append(f"Between the devices of a {chip.name}: {how}.")
    return PhysicalAxis(name="core", length=per_chip, kind="core", oneway_bytes_per_s=rate, hop_s=0.0)


def _dcn(spec: Spec, chip: Chip, given: Given, per_chip: int) -> PhysicalAxis:
    rate = given.dcn_bytes_per_s or chip.value("dcn_oneway_bytes_per_s")
    if rate is None:
        raise QuestionError(
            f"how fast {chip.name} is over the data-centre network is not known",
            where="topology",
            advice="Give --dcn-bytes-per-s, bytes a second one way of one chip",
        )
    return PhysicalAxis(name="dcn", length=spec.slices, kind="dcn", oneway_bytes_per_s=rate / per_chip, hop_s=DCN_HOP_S)


def _link_rate(chip: Chip, given: Given) -> float:
    return given.link_bytes_per_s or chip.need("link_oneway_bytes_per_s")


def _peak(chip: Chip, dtype: str, given: Given, notes: list[str]) -> float | None:
    """FLOP/s of a chip in this type; None where it is not known."""
    if given.peak_flops_per_s:
        return given.peak_flops_per_s
    for key in PEAKS[dtype]:
        if (value := chip.value(key)) is not None:
            return value
    bf16 = chip.value("bf16_flops_per_s")
    if bf16 is not None:
        notes.append(f"{chip.name} has no published {dtype} peak: maths is reckoned at its BF16 peak.")
        return bf16
    notes.append(
        f"{chip.name}'s {dtype} peak is not known: a step is its communication alone. Give --peak-flops-per-s."
    )
    return None
