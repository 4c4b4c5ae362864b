"""A network after parts of it failed: `chip=5`, `link=12-13`, `cube=1`, `ocs=7`, `random=20@7`, several at once.

Parts are found by what the network itself says its chips and links belong to, so every system can be broken alike.
What the failure means for a job, and what takes the part's place, is told by `operations`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from errors import QuestionError
from simulators.topology.network import KIND_OF, Network
from simulators.topology.operations import Lost, outcome
from simulators.topology.switches import SWITCHES, of_kind, switch_kinds

FAILS: tuple[tuple[str, str], ...] = (
    ("chip", "a chip, and with it all its links"),
    ("link", "one link between two nodes, such as 12-13; named twice, a second one beside it"),
    ("host", "a host with its chips"),
    ("board", "a board with its chips"),
    ("group", "a group with its boards"),
    ("cube", "a block of 4x4x4 chips"),
    ("node", "a server with its GPUs"),
    ("slice", "a whole slice of several"),
    ("ocs", "an optical circuit switch: every light path through it"),
    ("nvswitch", "a switch of an NVLink domain"),
    ("leaf", "a leaf switch"),
    ("spine", "a spine switch"),
    ("core", "a core switch"),
    ("switch", "any packet switch, by its number among all"),
    ("random", "so many chips at random, such as 20@7: 20 chips drawn with seed 7"),
)
MOST = 64  # failures in one question
MOST_NUMBERS = 1000  # parts in one failure
_SAME = {"node": "host"}  # another word for a part
_LINK = re.compile(r"(\d{1,7})-(\d{1,7})")
_NUMBERS = re.compile(r"\d{1,7}(,\d{1,7})*")
_RANDOM = re.compile(r"(\d{1,7})(?:@(\d{1,9}))?")


@dataclass(frozen=True)
class Failure:
    """Parts that fail. `numbers`: which; of a link its two ends; of `random` how many, and the seed."""

    what: str
    numbers: tuple[int, ...]

    @property
    def text(self) -> str:
        """As it is written in an address."""
        joined = {"link": "-", "random": "@"}.get(self.what, ",")
        return f"{self.what}={joined.join(map(str, self.numbers))}"


@dataclass(frozen=True)
class Broken:
    """What is left. `network`: after the failures; `truth`: what it means for a job, sentences, the weightiest first.

    islands     living chips of each part that holds together, largest first; slices are apart anyway
    cut_off     living chips outside the largest such part of their slice
    connected   whether every living chip reaches every other of its slice
    spare       what takes the place of what failed; None where nothing is known to
    """

    network: Network
    failures: tuple[Failure, ...]
    lost_chips: int
    lost_links: int
    truth: tuple[str, ...]
    connected: bool
    islands: tuple[int, ...]
    cut_off: int
    spare: str | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "failures": [f.text for f in self.failures],
            "lost_chips": self.lost_chips,
            "lost_links": self.lost_links,
            "connected": self.connected,
            "islands": list(self.islands[:100]),
            "cut_off_chips": self.cut_off,
            "truth": list(self.truth),
            "spare": self.spare,
        }


def parse_failure(text: str) -> Failure:
    """`chip=5,7`, `link=12-13`, `random=20@7`. Raises QuestionError for what cannot fail or is no number."""
    what, _, value = text.strip().lower().partition("=")
    what, value = what.strip(), value.replace(" ", "")
    names = [name for name, _ in FAILS]
    if what not in names:
        raise QuestionError(f"failure {text[:40]!r}", expected="one of " + ", ".join(f"{n}=..." for n in names))
    if what == "link":
        ends = _LINK.fullmatch(value)
        if not ends:
            raise QuestionError(f"failure {text[:40]!r} names no link", expected="its two ends, such as link=12-13")
        return Failure("link", (int(ends[1]), int(ends[2])))
    if what == "random":
        drawn = _RANDOM.fullmatch(value)
        if not drawn:
            raise QuestionError(f"failure {text[:40]!r}", expected="chips and a seed, such as random=20@7")
        return Failure("random", (int(drawn[1]), int(drawn[2] or 0)))
    if not _NUMBERS.fullmatch(value):
        raise QuestionError(f"failure {text[:40]!r} has no number", expected=f"such as {what}=0 or {what}=0,3")
    numbers = tuple(dict.fromkeys(int(n) for n in value.split(",")))
    if len(numbers) > MOST_NUMBERS:
        raise QuestionError(f"{len(numbers):,} failures of a {what} at once", expected=f"at most {MOST_NUMBERS:,}")
    return Failure(what, numbers)


def fail(network: Network, failures: Sequence[str]) -> Broken:
    """The network after the failures. Raises QuestionError for a part that it does not have, saying which it has."""
    if len(failures) > MOST:
        raise QuestionError(
            f"{len(failures)} failures at once",
            expected=f"at most {MOST}",
            advice="One failure may name several parts: chip=5,7,9.",
        )
    parsed = tuple(dict.fromkeys(parse_failure(f) for f in failures if not f.strip().lower().startswith("link")))
    parsed += tuple(parse_failure(f) for f in failures if f.strip().lower().startswith("link"))
    nodes, links = np.zeros(network.nodes, bool), np.zeros(len(network.links), bool)
    for failure in parsed:
        _strike(network, failure, nodes, links)
    after = network.without(nodes, links)
    if not after.chips_alive:
        raise QuestionError(f"nothing is left of {network.spec}", expected="failures that leave a chip")
    with_nodes = nodes[network.links].any(axis=1)
    gone = links | with_nodes
    connected, islands, cut_off = _islands(after)
    truth, spare = outcome(network, Lost(nodes, gone, links & ~with_nodes)) if parsed else ((), None)
    if not connected:
        truth += (_apart(islands, cut_off),)
    return Broken(
        after,
        parsed,
        int(np.count_nonzero(nodes[: network.chips])),
        int(np.count_nonzero(gone)),
        truth,
        connected,
        islands,
        cut_off,
        spare,
    )


def breakable(network: Network) -> dict[str, int]:
    """What can fail in this network, in the order of FAILS, and how many there are of each."""
    counts = {"chip": network.chips, "link": len(network.links), "random": network.chips, "switch": network.switches}
    counts |= {part: int(number.max()) + 1 for part, number in network.parts.items() if len(number)}
    counts |= {part: int(number.max()) + 1 for part, number in network.link_parts.items() if len(number)}
    if network.switches:
        kinds = switch_kinds(network)
        counts |= {name: int((kinds == number).sum()) for number, (name, _, _) in enumerate(SWITCHES)}
    known = {name: counts.get(name, 0) for name, _ in FAILS}
    if network.switches:  # GPUs stand in servers that people call nodes
        known["node"], known["host"] = known["host"], 0
    if sum(known[name] for name, _, _ in SWITCHES) == known["switch"]:
        known["switch"] = 0  # each has a name of its own
    return {name: number for name, number in known.items() if number}


def _strike(network: Network, failure: Failure, nodes: np.ndarray, links: np.ndarray) -> None:
    """Marks what one failure takes, in place."""
    what, numbers = failure.what, np.array(failure.numbers)
    if what == "link":
        links[_link(network, failure.numbers, links)] = True
        return
    if what == "random":
        count, seed = failure.numbers
        _within(network, "chip", np.array([count - 1]), network.chips, f"random={count}")
        nodes[np.random.default_rng(seed).choice(network.chips, count, replace=False)] = True
        return
    if what == "chip":
        _within(network, what, numbers, network.chips)
        nodes[numbers] = True
    elif what == "switch":
        _within(network, what, numbers, network.switches)
        nodes[network.chips + numbers] = True
    elif what in (s[0] for s in SWITCHES):
        known = of_kind(network, what)
        _within(network, what, numbers, len(known))
        nodes[known[numbers]] = True
    elif what == "ocs":
        _of_part(network, what, network.link_parts.get(what), numbers, links)
    else:
        part = what if what in network.parts else _SAME.get(what, what)
        _of_part(network, what, network.parts.get(part), numbers, nodes[: network.chips])


def _of_part(network: Network, what: str, part: np.ndarray | None, numbers: np.ndarray, hit: np.ndarray) -> None:
    _within(network, what, numbers, 0 if part is None or not len(part) else int(part.max()) + 1)
    if part is not None:
        hit |= np.isin(part, numbers)


def _within(network: Network, what: str, numbers: np.ndarray, count: int, said: str | None = None) -> None:
    """Raises QuestionError where the network has no such part."""
    beyond = numbers[(numbers >= count) | (numbers < 0)]
    if not len(beyond):
        return
    plural = {"switch": "switches", "leaf": "leaves", "ocs": "optical switches"}.get(what, f"{what}s")
    said = said or f"{what}={beyond[0]}"
    if what == "ocs" and (network.link_kind == KIND_OF["ocs"]).any():
        raise QuestionError(
            f"{said}: which optical switch carries which link of {network.spec} is not published",
            expected="link=A-B for one of its light paths",
        )
    if count == 0:
        raise QuestionError(
            f"{said}: {network.spec} has no {plural}", expected="one of " + ", ".join(breakable(network))
        )
    has = f"{what} 0 alone" if count == 1 else f"{plural} 0 and 1" if count == 2 else f"{plural} 0 to {count - 1:,}"
    raise QuestionError(f"{said}: {network.spec} has {has}")


def _link(network: Network, ends: tuple[int, ...], taken: np.ndarray) -> int:
    """Row of a link between two nodes that no earlier failure took. Raises QuestionError where there is none."""
    a, b = ends
    _within(network, "node", np.array(ends), network.nodes, f"link={a}-{b}")
    joins = (network.links == (a, b)).all(axis=1) | (network.links == (b, a)).all(axis=1)
    free = np.flatnonzero(joins & ~taken)
    if len(free):
        return int(free[0])
    near = np.unique(network.links[(network.links == a).any(axis=1)])
    names = ", ".join(map(str, near[near != a][:12])) + (", ..." if len(near) > 13 else "")
    what = "no more links join" if joins.any() else "no link joins"
    node = "Chip" if a < network.chips else "Switch"
    raise QuestionError(f"link={a}-{b}: {what} {a} and {b}", advice=f"{node} {a} is joined to {names or 'nothing'}.")


def _islands(network: Network) -> tuple[bool, tuple[int, ...], int]:
    """(connected, living chips of each island, living chips outside the largest island of their slice)."""
    n, links = network.nodes, network.links
    graph = coo_array((np.ones(len(links), np.int8), (links[:, 0], links[:, 1])), shape=(n, n))
    _, label = connected_components(graph, directed=False)
    living = np.flatnonzero(network.alive[: network.chips])
    islands, first, size = np.unique(label[living], return_index=True, return_counts=True)
    of_slice = network.parts["slice"][living[first]] if network.slices > 1 else np.zeros(len(islands), int)
    largest = np.zeros(of_slice.max() + 1, np.int64)
    np.maximum.at(largest, of_slice, size)
    cut_off = int(len(living) - largest.sum())
    return cut_off == 0, tuple(sorted(map(int, size), reverse=True)), cut_off


def _apart(islands: tuple[int, ...], cut_off: int) -> str:
    sizes = ", ".join(f"{n:,}" for n in islands[:6]) + (", ..." if len(islands) > 6 else "")
    return (
        f"What is left does not hold together: {cut_off:,} chip{'s' * (cut_off != 1)} cannot reach the rest "
        f"(islands of {sizes} chips)."
    )
