"""What a collective's number and band rest on, in sentences."""

from collections.abc import Sequence

from catalog.slices import families
from simulators.collectives.cost import PASSES
from simulators.collectives.general import is_boardfly
from simulators.collectives.shape import Shape
from simulators.topology.network import Network

_RING = (
    "A ring or torus gathers at both directions of all its axes at once; the number leaves out (N-1)/N, as the "
    "scaling book does: the low end has it."
)
_LINE = "An axis that does not wrap is a line: the chip at its end receives over one link, half of what a ring gives."
_TWIST = (
    "A twisted axis comes back on another line, so that without the axes that it shifts along it is used as a line. "
    "With them the twist keeps every link busy; the high end uses such axes as lines."
)
_BOARDFLY = (
    "How collectives run on Boardfly is not published. Low end: all six links of a chip are busy, as on a torus. "
    "Number: a group gathers over its own links, 4.75 for a chip on average, while optics join the groups. High end: "
    "over the 4 such links of the chip that has two optical ports."
)
_LEFT = (
    "By the cut that is narrowest for what must cross it, mostly around the chip with the fewest links left. "
    "High end: rings that lost a link are lines, or, with an axis in pieces, a single tree."
)
_LEFT_OVER = "Of what the failure left"
_LACKS_A_CHIP = "XLA runs no program on a slice that lacks a chip: it is re-created first"
_LACKS_A_LINK = (
    "XLA runs no program on a slice that lacks a copper link: it is re-created first. Lost light paths alone it may "
    "outlast"
)
_LACKS_A_GPU = "a collective waits for every GPU, so the job that ran stops, and starts again on these or with spares"
_ON_A_SLICE = "no machine is named here, and on a TPU slice no program would run before it is created anew"
_DIRECT = (
    "By the links of one GPU, all busy. High end: as much slower as an H100 node was measured to be, about 1.5 "
    "ms for an all-gather of 512 MiB where its formula says 1.04."
)
_GENERAL = (
    "By the cut that is narrowest for what must cross it, which trees that share out all links reach; high "
    "end: everything runs over one tree."
)
_SWITCHED = (
    "The slowest level of switches counts, or a group that is narrower: with fewer GPUs, uplinks or NVLinks left. High "
    "end: as much slower as an H100 node was measured to be, about 1.5 ms for an all-gather of 512 MiB where the "
    "formula says 1.04, in one ring."
)
_SHARP = "Reduction in the switches halves an all-reduce in theory; in practice about 30 % is gained."
_DCN = (
    "Slices gather inside, then chips in the same place exchange their shares over the data-centre network. The "
    "phases follow one another; the low end overlaps them."
)
_SEVERAL_AXES = "Axes are named: each slice, and each group of chips along them, works by itself at the same time."
_ALL_TO_ALL = (
    "(V/N²) times the pairs on the busiest link, plus the hops of the farthest pair. Low end: what no "
    "routing can go below, by cuts and by hops added up, with hops hidden."
)
_ONE_AXIS = "Over one axis hops overlap with what is sent: on a ring a quarter of an all-gather."
_PERMUTE = {
    True: "Each chip sends to the next along the first axis named; on a line the last sends back over all of it.",
    False: "Each chip sends to a neighbour; the high end sends to the chip half the machine away.",
}
_SOFTWARE = "Launch and software overhead are not in it: some microseconds more where arrays are small."


def notes_on(
    network: Network, shape: Shape | None, kind: str, axes: Sequence[str], sharp: bool, switches: bool
) -> tuple[str, ...]:
    """`shape`: of one slice; `switches`: GPUs under packet switches."""
    found = [_SEVERAL_AXES] if axes else [_DCN] if network.slices > 1 else []
    if kind == "permute":
        found.append(_PERMUTE[bool(axes)])
    elif kind == "all_to_all" and not switches:
        found.append(_ONE_AXIS if len(axes) == 1 and not _by_links(shape, axes) else _ALL_TO_ALL)
    if kind in PASSES:
        found += _gathering(network, shape, axes, switches)
    if switches:
        found.append(_SWITCHED)
    if kind == "all_reduce" and switches:
        found.append(_SHARP if sharp else f"{_SHARP} The low end has it.")
    if not network.alive.all() or (shape is not None and not shape.whole):
        found.append(_failed(network))
    return (*found, *network.inferred, _SOFTWARE)


def _failed(network: Network) -> str:
    """What a failure means for who would run there: it differs by machine."""
    lacks = not network.alive[: network.chips].all()
    if network.chip in families():
        means = _LACKS_A_CHIP if lacks else _LACKS_A_LINK
    elif network.chip is None:
        means = _ON_A_SLICE
    else:
        means = _LACKS_A_GPU if lacks else ""
    return f"{_LEFT_OVER}; {means}." if means else f"{_LEFT_OVER}."


def _gathering(network: Network, shape: Shape | None, axes: Sequence[str], switches: bool) -> list[str]:
    if switches:
        return []
    if is_boardfly(network):
        return [_BOARDFLY]
    if shape is None:
        return [_DIRECT if network.kind == "direct" else _GENERAL]
    if _by_links(shape, axes):
        return [_LEFT]
    positions = shape.chosen(axes) if axes else range(len(shape.dims))
    found = [_TWIST] if any(shape.shifted[i] for i in positions) else []
    plain = [shape.wraps[i] for i in positions if shape.dims[i] > 1 and not shape.shifted[i]]
    return found + [_RING] * any(plain) + [_LINE] * (not all(plain))


def _by_links(shape: Shape | None, axes: Sequence[str]) -> bool:
    """Whether all chips of a broken lattice take part, so that its links count and not its axes."""
    return shape is not None and not shape.whole and (not axes or shape.all_of(shape.chosen(axes)))
