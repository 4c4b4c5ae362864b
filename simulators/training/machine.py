"""What a chip and its networks can do for a training step: peaks, memory, and rates of collectives over nested groups.

Neighbours in a group are chips that stand next to each other: tensor parallelism lies innermost, then context, then
the experts, then copies of the model, then the pipeline's stages. A group of `size` chips, `stride` apart, has
`inside` of them in one scale-up domain. On a switched domain (NVLink) a chip's rate is that of its links, one way; on
a torus a ring along k of its dimensions has 2 k links a way, and a line, where there is no link that wraps, half of
that (`simulators.collectives.rings`). What leaves the domain goes at the chip's share of the data-centre network, and
by hierarchy: of V bytes each chip carries V / inside there.

Which groups are rings: on a torus of three dimensions those of a multiple of 4 chips, in slices of whole cubes of 64;
on one of two those that fill an axis of 16, in slices that have one. A group that takes all of a slice's dimensions
uses the links of all; one beside an inner axis those that this leaves.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from catalog.chips import Chip
from errors import QuestionError

Floats = NDArray[np.float64]
PEAKS = {"bf16": "bf16_flops_per_s", "fp16": "bf16_flops_per_s", "fp8": "fp8_flops_per_s", "fp4": "fp4_flops_per_s"}
SWITCHED_LATENCY_S, TORUS_LATENCY_S, NETWORK_LATENCY_S = 3e-6, 1e-6, 1e-5  # a collective's start, within and outside
NETWORK_PER_S = 50e9  # of a chip, where none is published: a link of 400 Gbit/s
TORUS = {3: 2, 2: 1}  # dimensions of the torus -> those left to copies of the model where an inner axis takes one
USUAL_UNIT = 128  # side of a TPU's matrix unit, where none is published
AXIS = {3: 4, 2: 16}  # dimensions -> chips of an axis that wraps, or of which it is a multiple
CUBE = {3: 64, 2: 256}  # dimensions -> chips of the smallest slice of which all axes wrap


@dataclass(frozen=True)
class Machine:
    """`links_per_s`: bytes a second that a chip sends into its domain, one way, all links together. `unit`: side of
    a TPU's matrix unit.

    `peak_assumed`, `network_assumed`, `unit_assumed`: what is not published and was put in its place, in a sentence.
    """

    chip: str
    peak_flops_per_s: float
    bf16_flops_per_s: float
    hbm_bytes: float
    hbm_bytes_per_s: float
    domain: int
    links_per_s: float
    network_per_s: float
    torus: int = 0
    unit: int = 0
    peak_assumed: str = ""
    network_assumed: str = ""
    unit_assumed: str = ""

    def assumed(self, chips: int) -> tuple[str, ...]:
        """What was put in the place of numbers that nobody published, of those that so many chips need."""
        said = (self.peak_assumed, self.network_assumed if chips > self.domain else "", self.unit_assumed)
        return tuple(text for text in said if text)

    @property
    def intensity(self) -> float:
        """FLOPs in BF16 for each byte of memory: narrower formats do as much more as they have less to read."""
        return self.bf16_flops_per_s / self.hbm_bytes_per_s

    @property
    def latency_s(self) -> float:
        return TORUS_LATENCY_S if self.torus else SWITCHED_LATENCY_S

    def gather_s(
        self, array_bytes: Floats, size: Floats, stride: Floats, inner: bool = False, chips: Floats | None = None
    ) -> Floats:
        """Seconds of an all-gather or reduce-scatter of an array over the group; twice it for an all-reduce.

        V (i - 1) / i at the domain's rate, then V / i (o - 1) / o at the network's, i chips inside, o such groups.
        `inner`: an axis of activations, which lies along one dimension of a torus. `chips` of the job; None: so many
        that axes wrap.
        """
        inside = np.clip(self.domain // stride, 1, size)
        outside = np.ceil(size / inside)
        within = array_bytes * (inside - 1) / inside / self._rate(inside, stride, inner, chips)
        beyond = array_bytes / inside * (outside - 1) / outside / self.network_per_s
        return within + self.latency_s * (inside > 1) + beyond + NETWORK_LATENCY_S * (outside > 1)

    def exchange_s(
        self, chip_bytes: Floats, size: Floats, stride: Floats, copies: int = 1, chips: Floats | None = None
    ) -> Floats:
        """Seconds of an all-to-all in which each chip sends so many bytes, an equal part to each of the group.

        On a torus a byte goes a quarter of the ring's length on average, so n / 4 of the links' time of one. On a
        switched domain `copies` of each token go out, of which those for one other domain cross the network once and
        are dealt out there (DeepEP, HybridEP): of o domains (o - 1) (1 - (1 - 1 / o) ** copies) are met.
        """
        inside = np.clip(self.domain // stride, 1, size)
        others = np.ceil(size / inside) - 1
        late = self.latency_s * (size > 1) + NETWORK_LATENCY_S * (size > inside)
        if self.torus:
            hops = np.maximum(inside / 4, 1)
            within = chip_bytes * (inside - 1) / size * hops / self._rate(inside, stride, True, chips)
            beyond = chip_bytes * (size - inside) / size / self.network_per_s
        else:
            within = chip_bytes * (inside - 1) / inside / self.links_per_s
            met = others * (1 - (others / (others + 1)) ** copies)
            beyond = chip_bytes / copies * met / self.network_per_s
        return np.maximum(within, beyond) + late

    def send_s(self, chip_bytes: Floats, stride: Floats) -> Floats:
        """Seconds in which a chip sends to another, `stride` apart."""
        near = stride < self.domain
        rate = np.where(near, self.links_per_s / (2 * self.torus if self.torus else 1), self.network_per_s)
        return chip_bytes / rate + np.where(near, self.latency_s, NETWORK_LATENCY_S)

    def _rate(self, size: Floats, stride: Floats, inner: bool, chips: Floats | None) -> Floats | float:
        """Bytes a second that a chip sends along a group; of a torus over the dimensions that the group may use."""
        if not self.torus:
            return self.links_per_s
        dimensions = 1 if inner else np.where(stride > 1, TORUS[self.torus], self.torus)
        return self.links_per_s / self.torus * dimensions * self._ring(size, inner, chips)

    def _ring(self, size: Floats, inner: bool, chips: Floats | None) -> Floats | float:
        """1 where a group is a ring, half where it is a line, between where some of its axes wrap."""
        whole, axis = CUBE[self.torus], AXIS[self.torus]
        wraps = (
            np.full_like(size, 1.0) if chips is None else np.where(np.minimum(chips, self.domain) >= whole, 1.0, 0.5)
        )
        if self.torus == 2 and chips is not None:  # 8 x 16 wraps along its axis of 16
            wraps = np.where(np.minimum(chips, self.domain) == whole // 2, 1.0 if inner else 0.75, wraps)
        if not inner:
            return wraps
        return np.where(size % axis == 0, wraps, 0.5)


def machine(chip: Chip, precision: str = "bf16") -> Machine:
    """The machine of a catalogue chip. Raises QuestionError for a number that the catalogue lacks."""
    if precision not in PEAKS:
        raise QuestionError(f"precision {precision!r}", expected=f"one of {', '.join(PEAKS)}")
    dims = next((n for n in TORUS if f"{n}D torus" in chip.scaleup), 0)
    bf16, assumed = _bf16(chip, precision)
    network, side = chip.value("dcn_oneway_bytes_per_s"), chip.value("mxu_side")
    no_side = f"{chip.name}: the side of its matrix unit is not published: {USUAL_UNIT} is taken."
    if assumed and precision in ("bf16", "fp16"):
        chip.need("bf16_flops_per_s")
    return Machine(
        chip=chip.name,
        peak_flops_per_s=float(chip.need(PEAKS[precision]) if precision in ("fp8", "fp4") else bf16),
        bf16_flops_per_s=float(bf16),
        hbm_bytes=float(chip.value("hbm_usable_bytes") or chip.need("hbm_bytes")),
        hbm_bytes_per_s=float(chip.need("hbm_bytes_per_s")),
        domain=int(chip.need("scaleup_domain_chips")),
        links_per_s=float(chip.need("scaleup_bidi_bytes_per_s")) / 2,
        network_per_s=float(network or NETWORK_PER_S),
        torus=dims,
        unit=int(side or USUAL_UNIT) if dims else 0,
        peak_assumed=assumed,
        unit_assumed="" if side or not dims else no_side,
        network_assumed="" if network else f"{chip.name}: its share of a data-centre network is taken as 50 GB/s.",
    )


def _bf16(chip: Chip, precision: str) -> tuple[float, str]:
    """FLOP/s in BF16, at which attention runs whatever the products' precision, and what was assumed for it; of a chip
    that has FP16 alone those, where that is asked for."""
    if known := chip.value("bf16_flops_per_s") or (precision == "fp16" and chip.value("fp16_flops_per_s")):
        return float(known), ""
    for of, times in (("fp8", 2), ("fp4", 4)):
        if peak := chip.value(PEAKS[of]):
            part = {2: "half", 4: "a quarter of"}[times]
            said = f"no BF16 peak is published: attention is taken at {part} the {of.upper()} peak"
            return float(peak) / times, f"{chip.name}: {said}."
    return float(chip.need("bf16_flops_per_s")), ""
