"""`fattree:1024`, `rail:1024:chip=b200`, `fattree:2048:oversubscription=2`: nodes of 8 GPUs under leaves and spines.

Counts follow the usual reference design of the H100's time, with switches of 64 ports: a unit is 32 nodes (256 GPUs)
under 8 leaves, half of a leaf's ports look down and half up. Up to 8 units the leaves meet in spines (two tiers); more
form pods of 4 units with 32 spines each, whose uplinks meet in cores (three tiers). Spines and cores come in powers of
two, so that every leaf has equally many links to each spine. That gives the published counts: 4 units 32 leaves and 16
spines; 8: 64 and 32; 16: 128, 128 and 64 cores; 64: 512, 512 and 256.

    fattree   the 8 GPUs of a node are joined to one leaf, 4 nodes to a leaf
    rail      GPU i of each node is joined to leaf i of its unit (rail-optimised)
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from catalog.chips import chip as find_chip
from errors import QuestionError
from simulators.topology.network import KIND_OF, Network, make
from simulators.topology.spec import MOST_CHIPS, Spec, refuse_options, whole
from simulators.topology.systems import nvlink

FORMS = (
    ("rail:1024", "nodes of 8 H100, rail-optimised: GPU i of each node under leaf i of its unit"),
    ("fattree:1024", "nodes of 8 H100 under a fat tree: a node's GPUs under one leaf"),
    ("fattree:2048:chip=b200:oversubscription=2", "of another GPU, with half the uplinks"),
)
NODE, PORTS = 8, 64
DOWN = UP = PORTS // 2  # ports of a leaf towards GPUs, and towards spines without oversubscription
UNIT = 32  # nodes
UNIT_LEAVES = UNIT * NODE // DOWN
TWO_TIERS = 64  # leaves at most: beyond, spines would need more than 64 ports
POD_LEAVES = 32
OVERSUBSCRIPTIONS = (1, 2, 4, 8)
LEAST = 2 * NODE
INFERRED = (
    "Counts of leaves, spines and cores follow the published reference designs with 64-port switches in units of 32 "
    "nodes; which cable goes where is inferred: spread evenly.",
    "NVLink within a node is drawn as one link from each GPU to one switch, as fast as all its NVLinks together.",
)
DIRECT_INFERRED = (INFERRED[0],)
NOTES = {
    "fattree": "Hops do not tell NVLink from network: two GPUs of a node are two hops apart both ways, and shortest "
    "paths use both.",
    "rail": "Ways between rails may pass through a GPU of the same node over NVLink, as NCCL's PXN does.",
}


@dataclass(frozen=True)
class Plan:
    """How many switches there are. `up`: uplinks of a leaf; spines and cores are of the whole machine."""

    nodes: int
    leaves: int
    up: int
    spines: int
    cores: int

    @property
    def pods(self) -> int:
        """Groups of leaves with spines of their own; 1 where there are two tiers."""
        return -(-self.leaves // POD_LEAVES) if self.cores else 1


def plan(name: str, gpus: int, oversubscription: int = 1) -> Plan:
    """Switches for so many GPUs, a multiple of 8."""
    nodes = gpus // NODE
    leaves = -(-nodes // UNIT) * UNIT_LEAVES if name == "rail" else -(-gpus // DOWN)
    up = UP // oversubscription
    if leaves == 1:
        return Plan(nodes, 1, 0, 0, 0)
    if leaves <= TWO_TIERS:
        return Plan(nodes, leaves, up, _power_of_two(leaves * up / PORTS), 0)
    pods = -(-leaves // POD_LEAVES)
    return Plan(nodes, leaves, up, pods * up, up * _power_of_two(pods * UP / PORTS))


def reads(name: str) -> bool:
    return name.lower() in ("fattree", "fat-tree", "rail")


def parse(text: str, name: str, shape: str, options: Mapping[str, str]) -> Spec:
    name = "rail" if name.lower() == "rail" else "fattree"
    refuse_options(text, options, ("chip", "oversubscription"))
    gpus = whole(text, "GPUs", shape.replace(",", ""), 0, 10**9 - 1)
    if gpus % NODE or not LEAST <= gpus <= MOST_CHIPS:
        below = min(max(gpus // NODE * NODE, LEAST), MOST_CHIPS)
        within = LEAST < gpus < MOST_CHIPS
        near = sorted({below, below + NODE} if within else {below})
        rule = f"a node has {NODE} GPUs" if within else f"it takes from {LEAST} to {MOST_CHIPS:,} GPUs"
        raise QuestionError(f"{text} cannot be built: {rule}", expected=" or ".join(f"{name}:{n}" for n in near))
    over = whole(text, "oversubscription", options.get("oversubscription", "1"), 1, max(OVERSUBSCRIPTIONS))
    if over not in OVERSUBSCRIPTIONS:
        raise QuestionError(
            f"{text}: oversubscription {over} leaves no whole number of uplinks to each spine",
            expected="one of " + ", ".join(map(str, OVERSUBSCRIPTIONS)),
        )
    chip = _chip(text, options.get("chip", "h100"))
    wiring = nvlink.wiring_of(find_chip(chip))
    short = wiring.name
    found = plan(name, gpus, over)
    written = f"{name}:{gpus}" + (f":chip={short}" if short != "h100" else "")
    return Spec(
        text=written + (f":oversubscription={over}" if over > 1 else ""),
        kind="rail" if name == "rail" else "fat tree",
        chip=chip,
        chips=gpus,
        notes=(NOTES[name],) if name == "rail" or wiring.to_switches else (),
        more={
            "oversubscription": over,
            "leaves": found.leaves,
            "spines": found.spines,
            "cores": found.cores,
            "units": -(-found.nodes // UNIT),
        },
    )


def build(spec: Spec) -> Network:
    rails = spec.kind == "rail"
    found = plan("rail" if rails else "fattree", spec.chips, int(spec.more["oversubscription"]))
    chip = find_chip(spec.chip)
    gpu = np.arange(spec.chips)
    node = gpu // NODE
    unit = node // UNIT
    inside, kind, inner = _node_links(chip.name, found.nodes)
    leaf0 = spec.chips + inner
    leaf = unit * UNIT_LEAVES + gpu % NODE if rails else gpu // DOWN
    rail = np.stack([gpu, leaf0 + leaf], axis=1)
    spine, core = _upper(found, leaf0)
    sizes = {kind: len(inside), "rail": len(rail), "spine": len(spine), "core": len(core)}
    parts = {"host": node, "unit": unit}
    if found.cores:
        parts["pod"] = leaf // POD_LEAVES
    link, card = chip.need("link_oneway_bytes_per_s"), chip.value("dcn_oneway_bytes_per_s")
    rates = {kind: link * chip.need("links_per_chip") if kind == "nvlink" else link}
    if card is not None:
        rates |= dict.fromkeys(("rail", "spine", "core"), card)  # a switch's port is as fast as the network card
    return make(
        spec=spec.text,
        kind=spec.kind,
        chip=spec.chip,
        chips=spec.chips,
        switches=inner + found.leaves + found.spines + found.cores,
        links=np.concatenate([inside, rail, spine, core]),
        link_kind=np.repeat([KIND_OF[k] for k in sizes], list(sizes.values())),
        coordinates=np.stack([unit, node % UNIT, gpu % NODE], axis=1),
        axes=("unit", "node", "gpu"),
        parts={k: v.astype(np.int32) for k, v in parts.items()},
        oneway_bytes_per_s=rates,
        inferred=INFERRED if kind == "nvlink" else DIRECT_INFERRED,
        uniform=kind in ("nvlink", "direct") and _full(found, rails),
    )


def _full(found: Plan, rails: bool) -> bool:
    """Whether every leaf, and every pod, has all that it can hold."""
    nodes = UNIT if rails else DOWN // NODE
    return found.nodes % nodes == 0 and not (found.cores and found.leaves % POD_LEAVES)


def _node_links(chip: str, nodes: int) -> tuple[np.ndarray, str, int]:
    """(links (n, 2), their kind, switches) inside all nodes."""
    gpus = nodes * NODE
    if nvlink.wiring_of(find_chip(chip)).to_switches:
        return np.stack([np.arange(gpus), gpus + np.arange(gpus) // NODE], axis=1), "nvlink", nodes
    one, kind, _ = nvlink.wiring(chip, NODE)
    return (one[None] + NODE * np.arange(nodes)[:, None, None]).reshape(-1, 2), kind, 0


def _upper(found: Plan, leaf0: int) -> tuple[np.ndarray, np.ndarray]:
    """(leaf-spine links, spine-core links)."""
    none = np.zeros((0, 2), np.int64)
    if not found.spines:
        return none, none
    spine0, core0 = leaf0 + found.leaves, leaf0 + found.leaves + found.spines
    leaf, port = (a.ravel() for a in np.indices((found.leaves, found.up)))
    if not found.cores:
        return np.stack([leaf0 + leaf, spine0 + port % found.spines], axis=1), none
    to_spine = np.stack([leaf0 + leaf, spine0 + leaf // POD_LEAVES * found.up + port], axis=1)
    group = found.cores // found.up  # cores that the spines of one place in all pods meet in
    spine, port = (a.ravel() for a in np.indices((found.spines, UP)))
    return to_spine, np.stack([spine0 + spine, core0 + spine % found.up * group + port % group], axis=1)


def _chip(text: str, name: str) -> str:
    spec = nvlink.parse(f"{name}:8", name, "8", {}) if nvlink.reads(name) else None
    if spec is None or spec.chip is None or find_chip(spec.chip).value("chips_per_host") != NODE:
        raise QuestionError(
            f"{text}: chip {name!r} does not come in nodes of {NODE} GPUs",
            expected="one of " + ", ".join(nvlink.nodes()),
        )
    return spec.chip


def _power_of_two(least: float) -> int:
    return 1 << max(0, int(np.ceil(np.log2(least)))) if least > 1 else 1
