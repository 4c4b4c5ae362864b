"""What a failure means for the job that runs there, and what takes the failed part's place.

Rerouting is not the answer on a TPU slice: XLA compiles for all chips of a shape, so a slice that lacks one is down,
however well connected the rest is. What follows differs by machine: optical switches exchange a cube or a group,
a 2D slice moves, a virtual machine is made anew, a GPU server is cordoned.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from catalog.slices import SliceFamily, families
from simulators.topology.network import KIND_OF, Network
from simulators.topology.switches import SWITCHES, switch_kinds
from simulators.topology.systems import boardfly

FACES, PATHS = 96, 2  # optical faces of a cube, and light paths of it on each of the 48 switches
OPTICAL = tuple(KIND_OF[k] for k in ("optical", "wrap", "twist"))
Told = tuple[tuple[str, ...], str | None]


@dataclass(frozen=True)
class Lost:
    """What failed of a network. `nodes`: bool (nodes,); `links`: bool (links,), all that are gone, of dead nodes too;
    `cut`: those of them whose two ends live."""

    nodes: np.ndarray
    links: np.ndarray
    cut: np.ndarray


def outcome(network: Network, lost: Lost) -> Told:
    """(sentences, the weightiest first; what takes the part's place, None where nothing is known to)."""
    family = families().get(network.chip or "")
    if network.kind == "boardfly":
        return _boardfly(network, lost)
    if family is not None:
        return _slice(network, lost, family)
    if network.chip is not None:
        return _gpus(network, lost)
    return (
        f"{_what(network, lost)} failed. No machine is named here, so what takes its place is not known; on a TPU "
        "slice the job would stop, whatever ways remain.",
    ), None


def _slice(network: Network, lost: Lost, family: SliceFamily) -> Told:
    """A slice of a torus or mesh, or several."""
    optical = lost.cut & (network.link_parts.get("ocs", np.full(len(lost.cut), -1)) >= 0)
    hit = _chips_hit(network, lost, lost.cut & ~optical)
    if not hit.any():
        return _optical(network, optical, family), None
    more, spare = _replacement(network, hit, family)
    return (*_down(network, lost, hit), *more), spare


def _down(network: Network, lost: Lost, hit: np.ndarray) -> tuple[str, ...]:
    """What runs on slices of which these chips are hit, and what does not."""
    why = "XLA cannot run on a slice that lacks a chip, whatever ways around it the network has"
    if not lost.nodes[: network.chips].any():
        why = "all copper links inside a slice must work, as its chips must"
    if network.slices == 1:
        return (f"The slice is down: {why}. It must be created anew, and the job goes back to its last checkpoint.",)
    slices = len(np.unique(network.parts["slice"][hit]))
    left = network.slices - slices
    elastic = (
        "no slice is left to go on with."
        if not left
        else (
            f"with elastic training the job goes on with {_some(left, 'slice')} ({_share(left / network.slices)} of "
            "the chips) until then; without, all of them wait."
        )
    )
    what = _named("slice", np.unique(network.parts["slice"][hit]))
    return (
        f"{slices} of {network.slices} slices {_is(slices)} down ({what}): {why}.",
        f"{'It' if slices == 1 else 'They'} must be created anew; {elastic}",
    )


def _replacement(network: Network, hit: np.ndarray, family: SliceFamily) -> Told:
    """What a TPU slice gets in place of the chips hit."""
    if "cube" in network.parts:
        return _cubes(network, hit, family)
    per_slice, pod = network.chips // network.slices, family.count("pod_chips")
    if per_slice <= 4:
        return ("It is one virtual machine: that machine is made anew on another host.",), "another host"
    if family.wrap == "cube":
        return (
            "A slice smaller than a cube has no optical links that could take the host out: it is placed anew on "
            f"{per_slice // 4} healthy hosts that stand together.",
        ), "other hosts that stand together"
    if per_slice == pod:
        return (
            f"{family.name} has no optical switches and the slice fills its pod of {pod} chips: it needs another "
            "whole pod, or waits for the repair.",
        ), "another pod"
    shape = "x".join(str(n) for n in _shape(network))
    return (
        f"{family.name} has no optical switches that could take the chip out: the slice moves to another free "
        f"block of {shape}, in a pod of {pod} chips.",
    ), f"another free block of {shape}"


def _cubes(network: Network, hit: np.ndarray, family: SliceFamily) -> Told:
    """Cubes exchanged by the optical circuit switches."""
    cubes = np.unique(network.parts["cube"][hit])
    per_slice = (int(network.parts["cube"].max()) + 1) // network.slices
    pod = family.count("cubes")
    free = pod - per_slice
    names = _named("cube", cubes)
    if free < np.bincount(cubes // per_slice).max():  # at best each slice has a pod to itself
        which = "The slice" if network.slices == 1 else "A slice"
        return (
            f"{which} takes {per_slice} of the pod's {pod} cubes: {_spares(free)} for {names}. A smaller slice "
            "runs at once, this one after the repair.",
        ), None
    verb, one = ("is", "it") if len(cubes) == 1 else ("are", "each")
    swap = (
        f"{names[0].upper()}{names[1:]} {verb} taken out and a spare cube put in place of {one}: {FACES} light "
        f"paths of a cube move, {PATHS} on each of the 48 optical switches. No cable is touched, and the shape "
        "stays."
    )
    return (
        swap,
        f"A slice takes {per_slice} of the {pod} cubes of its pod: a spare must be free among the other "
        f"{free}, which other slices may hold.",
    ), f"{_some(len(cubes), 'spare cube')} for {names}"


def _optical(network: Network, optical: np.ndarray, family: SliceFamily) -> tuple[str, ...]:
    """Only light paths were lost."""
    count = int(np.count_nonzero(optical))
    switches = np.unique(network.link_parts["ocs"][optical])
    through = f"{count:,} light path{'s' * (count != 1)} through {_named('optical switch', switches)}"
    resilient = " and ".join(f.name.removeprefix("TPU ") for f in families().values() if f.ici_resiliency)
    if family.ici_resiliency:
        return (
            f"The slice may go on: {through} {_is(count)} lost and no chip. ICI resiliency, on by default for "
            f"{resilient} slices of a cube or more, routes around failed light paths, at less bandwidth until the "
            "repair.",
        )
    return (
        f"Count on the slice being down: {through} {_is(count)} lost. ICI resiliency, which routes around failed "
        f"light paths, is documented for {resilient}; for {family.name} it is not known here.",
    )


def _boardfly(network: Network, lost: Lost) -> Told:
    """Groups of a Boardfly, exchanged by the optical circuit switches."""
    optical = lost.cut & (network.link_kind == KIND_OF["ocs"])
    hit = _chips_hit(network, lost, lost.cut & ~optical)
    if not hit.any():
        count = int(np.count_nonzero(optical))
        return (
            f"{count:,} light path{'s' * (count != 1)} between groups {_is(count)} lost, and no chip: ways over "
            "other groups remain. Whether a job goes on over them is not published.",
        ), None
    groups = np.unique(network.parts["group"][hit])
    used, pod = network.chips // boardfly.GROUP, families()["TPU 8i"].count("pod_groups")
    names, free = _named("group", groups), pod - used
    down = _down(network, lost, hit)
    if free < len(groups):
        return (
            *down,
            f"It takes {used} of the pod's {pod} groups: {_spares(max(free, 0))} for {names}. A smaller "
            "slice runs at once, this one after the repair.",
        ), None
    return (
        *down,
        f"The optical switches can join another of the pod's {pod} groups in place of {names}: {free} are "
        "not in this slice (inferred: 1,024 of 1,152 chips active leaves 4 groups spare; how they are used is not "
        "published).",
    ), f"{len(groups)} of {free} spare groups for {names}"


def _gpus(network: Network, lost: Lost) -> Told:
    """GPUs under packet switches: dead GPUs stop the job, dead switches and links cost bandwidth."""
    dead = lost.nodes[: network.chips]
    told = [sentence for tell in (_switches_lost, _links_lost) for sentence in tell(network, lost)]
    if not dead.any():
        return tuple(told), None
    hosts = np.unique(network.parts["host"][dead])
    name = "tray" if "tray" in network.axes else "node"
    several = len(hosts) > 1
    stop = (
        f"The job stops: a collective waits for every GPU. {_named(name, hosts).capitalize()} "
        f"{'are' if several else 'is'} cordoned, and the job goes back to its last checkpoint"
    )
    if int(network.parts["host"].max()) == 0:
        return (stop + " on another node.", *told), "another node"
    size = int(np.bincount(network.parts["host"]).max())
    return (
        f"{stop}: with {_some(len(hosts), f'spare {name}')}, since packet switches let any take the place, or "
        f"smaller by {len(hosts) * size:,} GPUs, such as by whole data-parallel replicas.",
        *told,
    ), _some(len(hosts), f"spare {name}")


def _switches_lost(network: Network, lost: Lost) -> list[str]:
    """A sentence on each kind of packet switch that failed."""
    kinds, dead = switch_kinds(network), lost.nodes[network.chips :]
    told = []
    for number, (name, _, _) in enumerate(SWITCHES):
        failed = np.flatnonzero(dead & (kinds == number))
        if len(failed):
            first = int(np.argmax(kinds == number))
            shown = "NVLink switch" if name == "nvswitch" else name
            told.append(_MEANS[name](network, failed, _named(shown, failed - first)))
    return told


def _nvswitch(network: Network, failed: np.ndarray, names: str) -> str:
    gone = np.isin(network.links[:, 1], network.chips + failed)
    hit = np.unique(network.links[gone, 0])
    mine = np.isin(network.links[:, 0], hit) & (network.link_kind == KIND_OF["nvlink"])
    left = 1 - np.count_nonzero(gone) / np.count_nonzero(mine)
    if left == 0:
        return (
            f"{len(hit)} GPUs lose NVLink ({names}): only the network card is left to them. The node is of no use "
            "for tensor parallelism; it is cordoned."
        )
    return (
        f"No GPU is lost with {names}: NVLink goes on with {_share(left)} of its bandwidth for {len(hit)} GPUs. "
        "The job that runs usually fails at once, and starts again when the domain is set up anew."
    )


def _leaf(network: Network, failed: np.ndarray, names: str) -> str:
    rails = network.links[network.link_kind == KIND_OF["rail"]]
    host, gone = network.parts["host"][rails[:, 0]], np.isin(rails[:, 1], network.chips + failed)
    left = np.bincount(host[~gone], minlength=int(host.max()) + 1)[host]
    beside, apart = (gone & some for some in (left > 0, left == 0))
    told = []
    if beside.any():
        told.append(
            f"{_some(int(np.count_nonzero(beside)), 'GPU')} lose their network card's switch ({names}). They still "
            "send over NVLink through other GPUs of their nodes, at less bandwidth; jobs on those nodes usually fail "
            "first."
        )
    if apart.any():
        hosts = len(np.unique(host[apart]))
        told.append(
            f"{_some(hosts, 'node')} with {_some(int(np.count_nonzero(apart)), 'GPU')} {_is(hosts)} cut off with "
            f"{names}: jobs on them stop, and start again on other nodes until the switch is replaced."
        )
    return " ".join(told)


def _spine(network: Network, failed: np.ndarray, names: str) -> str:
    """What is left to the leaf that lost most: of three tiers the spines of other pods are none of its own."""
    ways = network.links[network.link_kind == KIND_OF["spine"]] - network.chips
    leaf = np.bincount(ways[np.isin(ways[:, 1], failed), 0]).argmax()
    mine = np.unique(ways[ways[:, 0] == leaf, 1])
    pod = " in the pod" if len(mine) < np.count_nonzero(switch_kinds(network) == _number("spine")) else ""
    return _rest(names, len(mine), int(np.isin(mine, failed).sum()), pod)


def _core(network: Network, failed: np.ndarray, names: str) -> str:
    return _rest(names, int(np.count_nonzero(switch_kinds(network) == _number("core"))), len(failed), "")


def _rest(names: str, of: int, failed: int, pod: str) -> str:
    """What goes on over the other switches of a tier."""
    if failed == of:
        return (
            f"No GPU is lost with {names}, but no other switch joins those below: nothing goes over that tier any more."
        )
    return (
        f"No GPU is lost with {names}: traffic takes the other {of - failed} of {of}{pod}, about "
        f"{_share(1 - failed / of)} of the bandwidth at that tier."
    )


def _number(name: str) -> int:
    return [s[0] for s in SWITCHES].index(name)


_MEANS: dict[str, Callable[[Network, np.ndarray, str], str]] = {
    "nvswitch": _nvswitch,
    "leaf": _leaf,
    "spine": _spine,
    "core": _core,
}


def _links_lost(network: Network, lost: Lost) -> list[str]:
    count = int(np.count_nonzero(lost.cut))
    if not count:
        return []
    return [
        f"{_some(count, 'link')} {_is(count)} lost, and no GPU with {'it' if count == 1 else 'them'}. A running "
        "job stops as a rule, and starts again on the links that are left."
    ]


def _chips_hit(network: Network, lost: Lost, links: np.ndarray) -> np.ndarray:
    """Chips that failed or lost one of `links`, bool (chips,)."""
    hit = lost.nodes[: network.chips].copy()
    hit[network.links[links].ravel()] = True
    return hit


def _shape(network: Network) -> tuple[int, ...]:
    """Chips along each axis of one slice."""
    return tuple(int(n) + 1 for n in network.coordinates.max(axis=0))


def _what(network: Network, lost: Lost) -> str:
    chips, links = int(np.count_nonzero(lost.nodes[: network.chips])), int(np.count_nonzero(lost.links))
    switches = int(np.count_nonzero(lost.nodes[network.chips :]))
    found = [_some(n, word) for n, word in ((chips, "chip"), (switches, "switch"), (links, "link")) if n]
    return " and ".join(found) if found else "Nothing"


def _named(what: str, numbers: np.ndarray) -> str:
    """`cube 3`, `cubes 0, 4 and 7`, `25 cubes`."""
    if len(numbers) == 1:
        return f"{what} {int(numbers[0])}"
    if len(numbers) > 6:
        return _some(len(numbers), what)
    return f"{_plural(what)} {', '.join(str(int(n)) for n in numbers[:-1])} and {int(numbers[-1])}"


def _some(count: int, what: str) -> str:
    return f"{count:,} {what if count == 1 else _plural(what)}"


def _plural(what: str) -> str:
    return "leaves" if what == "leaf" else f"{what}es" if what.endswith("switch") else f"{what}s"


def _share(part: float) -> str:
    return f"{100 * part:.3g} %"


def _spares(free: int) -> str:
    return "there is no spare" if free == 0 else f"there {_is(free)} only {free}"


def _is(count: int) -> str:
    return "is" if count == 1 else "are"
