"""Several slices over the data-centre network (DCN): inside each over its links, between them in shares of chips.

S slices of N chips, an array of V bytes, w_dcn bytes/s of the DCN one way for a chip:

    all-reduce       reduce-scatter inside, between peers 2 (V/N) (S-1)/(S w_dcn), all-gather inside
    all-gather       between peers (V/N) (S-1)/(S w_dcn), then inside; reduce-scatter the same backwards
    all-to-all       what leaves a slice over the DCN (V/(S N)) (S-1)/(S w_dcn), then an all-to-all of V/S inside
    permute          V/(S N) over the DCN, at the border between two slices

The phases run one after another; what overlaps them would bring it down to the longest: the low end. The DCN is taken
to be crossed ceil(log2 S) times for each pass.
"""

from math import ceil, log2

from simulators.collectives.cost import PASSES, Cost, Phase, Setting
from simulators.collectives.rings import Time


def between_slices(
    array_bytes: float, chips: float, slices: int, dcn_bytes_per_s: float, dcn_hop_s: float = 0.0, passes: int = 1
) -> Time:
    """The part of an all-gather or reduce-scatter (1 pass) or an all-reduce (2) that crosses the DCN: V/N a chip."""
    steps = ceil(log2(slices)) if slices > 1 else 0
    moving = array_bytes / chips * (slices - 1) / slices / dcn_bytes_per_s
    return Time(steps * dcn_hop_s, moving).times(passes)


def cost(kind: str, gather: Cost, inside: Cost, chips: float, slices: int, setting: Setting, end: str) -> Cost:
    """`gather`: an all-gather inside one slice; `inside`: the collective itself inside one; `chips`: of one."""
    found = _phases(kind, gather, inside, chips, slices, setting.across_bytes_per_s, setting.dcn_hop_s)
    names = {
        "permute": "to the next chip, at borders over the DCN",
        "all_to_all": f"over the DCN, then {inside.algorithm}",
    }
    return Cost(found, names.get(kind, f"{gather.algorithm} inside slices, shares of chips over the DCN"), end == "low")


def _phases(
    kind: str, gather: Cost, inside: Cost, chips: float, slices: int, dcn_bytes_per_s: float, dcn_hop_s: float
) -> tuple[Phase, ...]:
    if kind in PASSES:
        middle = Phase("between slices", between_slices(1.0, chips, slices, dcn_bytes_per_s, dcn_hop_s, PASSES[kind]))
        scatter = tuple(Phase(f"reduce-scatter inside: {p.name}", p.one_byte) for p in gather.phases)
        after = tuple(Phase(f"all-gather inside: {p.name}", p.one_byte) for p in gather.phases)
        return {"all_gather": (middle, *after), "reduce_scatter": (*scatter, middle)}.get(
            kind, (*scatter, middle, *after)
        )
    share = 1 / (slices * chips)
    leaving = share * ((slices - 1) / slices if kind == "all_to_all" else 1.0) / dcn_bytes_per_s
    middle = Phase("between slices", Time(dcn_hop_s * (slices > 1), leaving * (slices > 1)))
    if kind == "permute":
        return (middle,)
    within = tuple(
        Phase(f"inside: {p.name}", Time(p.one_byte.latency_s, p.one_byte.bandwidth_s / slices, p.one_byte.overlapped))
        for p in inside.phases
    )
    return (middle, *within)
