"""A user's own graph: an edge list as text, or short inside a name, `edges:0-1,1-2,2-0`.

One link on a line: `0 1`, `0,1` or `0,1,copper` (a kind of LINK_KINDS); `#` begins a comment. NetworkX's
`write_edgelist` is read as well (`0 1 {}`), and so are topology files of ns-3, ASTRA-sim and SimAI: a line of counts,
a line with the switches' numbers, then `0 8 400Gbps 0.0005ms 0`. The same link twice is two links.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import islice

import numpy as np

from errors import InputError, QuestionError
from simulators.topology.network import KIND_OF, Network, make
from simulators.topology.spec import MOST_CHIPS, Spec, refuse_options

FORMS = (("edges:0-1,1-2,2-3,3-0", "a graph of your own, link by link"),)
MOST_LINES = 1_000_000
_LINK = re.compile(r"(\d{1,9})(?:\s*[,;]\s*|\s+)(\d{1,9})(?:(?:\s*[,;]\s*|\s+)([A-Za-z]\w{0,30}))?\s*(?:\{.*\})?")
_RATED = re.compile(r"(\d{1,9})\s+(\d{1,9})\s+(\d+(?:\.\d+)?)([KMGT]?)bps(?:\s+\S+){0,3}")
_NUMBERS = re.compile(r"\d{1,9}(\s+\d{1,9})*(\s+[A-Za-z]\w*)?")  # SimAI ends the line of counts with the GPU's name
_SHOWN = 60
_EXPECTED = "two chip numbers from 0, such as `0 1`"
_FACTOR = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def read(lines: Iterable[str], name: str, unit: str = "line") -> Network:
    """The network of an edge list; not connected is no error. Raises InputError: the line and the rule it breaks."""
    kept = []
    for number, line in enumerate(islice(lines, MOST_LINES + 1), 1):
        if text := line.split("#", 1)[0].strip():
            kept.append((number, text))
        if number > MOST_LINES:
            raise InputError(f"more than {MOST_LINES:,} lines", where=name, expected="a smaller edge list")
    if len(kept) > 2 and _RATED.fullmatch(kept[2][1]):
        return _ns3(kept, name)
    ends, kinds = np.empty((len(kept), 2), np.int64), np.empty(len(kept), np.int64)
    for row, (number, text) in enumerate(kept):
        where = f"{name}, {unit} {number}"
        found = _LINK.fullmatch(text)
        if found is None:
            raise InputError(_what_is_wrong(text), where=where, expected=_EXPECTED)
        ends[row] = _ends(found, where)
        kinds[row] = _kind(found[3], where)
    chips = _numbered(ends, name)
    return _network(name, ends, kinds, chips, 0, {})


def _ends(found: re.Match, where: str) -> tuple[int, int]:
    a, b = int(found[1]), int(found[2])
    if a == b:
        raise InputError(
            f"chip {a} is joined to itself", where=where, expected="two different chips", advice="Remove this line."
        )
    if max(a, b) >= MOST_CHIPS:
        raise InputError(f"chip {max(a, b):,}", where=where, expected=f"numbers from 0 to {MOST_CHIPS - 1:,}")
    return a, b


def _kind(text: str | None, where: str) -> int:
    if text is None:
        return KIND_OF["given"]
    if text.lower() not in KIND_OF:
        raise InputError(f"no kind of link is called {text!r}", where=where, expected="one of " + ", ".join(KIND_OF))
    return KIND_OF[text.lower()]


def _what_is_wrong(text: str) -> str:
    """Why a line is no link, in words."""
    if any(ord(c) < 32 and c != "\t" or c == "\ufffd" for c in text):
        return "this is no text"
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
    parts = re.split(r"[\s,;]+", text)
    if len(parts) == 1 and parts[0].isdecimal():
        return f"{shown!r} is half a link"
    if len(parts) > 2 and parts[0].isdecimal() and parts[1].isdecimal():
        return f"{shown!r} says more than a link has here"
    return f"{shown!r} is no link"


def _numbered(ends: np.ndarray, name: str) -> int:
    """How many chips there are. Raises InputError where numbers are left out."""
    if not len(ends):
        raise InputError("there is no link in it", where=name, expected="one link on each line, such as `0 1`")
    used = np.bincount(ends.ravel())
    gaps = np.flatnonzero(used == 0)
    if len(gaps):
        rest = f" ({len(gaps) - 1:,} more are missing)" if len(gaps) > 1 else ""
        advice = "Count from 0: subtract 1 from each number." if list(gaps) == [0] else "Number the chips anew."
        raise InputError(
            f"chips 0 to {len(used) - 1:,}, but no link of chip {gaps[0]:,}{rest}",
            where=name,
            expected="whole numbers from 0 without gaps",
            advice=advice,
        )
    return len(used)


def _ns3(kept: list[tuple[int, str]], name: str) -> Network:
    """A topology file of ns-3: chips are what the second line does not call a switch; numbered anew, chips first."""
    for number, text in kept[:2]:
        if not _NUMBERS.fullmatch(text):
            raise InputError(
                f"{text[:_SHOWN]!r} is no line of counts",
                where=f"{name}, line {number}",
                expected="counts, then the numbers of the switches, then links with rates",
            )
    nodes = int(kept[0][1].split()[0])
    switches = sorted({int(n) for n in kept[1][1].split() if n.isdecimal()})
    if not 1 < nodes - len(switches) <= MOST_CHIPS or nodes > 2 * MOST_CHIPS or switches[-1] >= nodes:
        raise InputError(
            f"{nodes:,} nodes with {len(switches):,} switches",
            where=f"{name}, lines 1 and 2",
            expected=f"2 to {MOST_CHIPS:,} chips, and switches among the nodes",
        )
    ends, rates = [], set()
    for number, text in kept[2:]:
        found = _RATED.fullmatch(text)
        if found is None or max(int(found[1]), int(found[2])) >= nodes or found[1] == found[2]:
            raise InputError(
                f"{text[:_SHOWN]!r} is no link between two of the {nodes:,} nodes",
                where=f"{name}, line {number}",
                expected="such as `0 8 400Gbps 0.0005ms 0`",
            )
        ends.append((int(found[1]), int(found[2])))
        rates.add(float(found[3]) * _FACTOR[found[4]] / 8)
    _as_counted(kept, len(switches), name)
    is_switch = np.zeros(nodes, bool)
    is_switch[switches] = True
    new = np.argsort(np.argsort(is_switch, kind="stable"), kind="stable")
    one_rate = {"given": rates.pop()} if len(rates) == 1 else {}  # links of one kind have one rate here, or none known
    return _network(
        name, new[np.array(ends)], np.full(len(ends), KIND_OF["given"]), nodes - len(switches), len(switches), one_rate
    )


def _as_counted(kept: list[tuple[int, str]], switches: int, name: str) -> None:
    """Raises InputError where the line of counts says otherwise: nodes, switches, links; or, of SimAI, nodes, GPUs of
    a server, NVSwitches, other switches, links."""
    match [int(n) for n in kept[0][1].split() if n.isdecimal()]:
        case [_, stated, links]:
            pass
        case [_, _, nvswitches, others, links]:
            stated = nvswitches + others
        case _:
            return
    if stated != switches:
        raise InputError(
            f"{switches:,} of {stated:,} switches",
            where=f"{name}, line {kept[1][0]}",
            expected=f"the numbers of the {stated:,} switches that line {kept[0][0]} counts",
        )
    if links != (found := len(kept) - 2):
        raise InputError(
            f"{found:,} links, where line {kept[0][0]} counts {links:,}",
            where=name,
            expected="as many links as its line of counts says",
            advice="The file may be cut off: fetch it again." if found < links else "Correct the line of counts.",
        )


def _network(
    name: str, ends: np.ndarray, kinds: np.ndarray, chips: int, switches: int, rates: Mapping[str, float]
) -> Network:
    return make(
        spec=name,
        kind="graph",
        chip=None,
        chips=chips,
        switches=switches,
        links=ends,
        link_kind=kinds,
        coordinates=np.arange(chips)[:, None],
        axes=("chip",),
        oneway_bytes_per_s=rates,
    )


def reads(name: str) -> bool:
    return name.lower() == "edges"


def parse(text: str, name: str, shape: str, options: Mapping[str, str]) -> Spec:
    refuse_options(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...", options, ())
    pairs = [p.strip() for p in shape.split(",") if p.strip()]
    for number, pair in enumerate(pairs, 1):
        if not re.fullmatch(r"\d{1,9}\s*-\s*\d{1,9}", pair):
            raise QuestionError(f"edges, link {number}: {pair[:_SHOWN]!r} is no link", expected="such as 0-1,1-2,2-0")
    written = "edges:" + ",".join("".join(p.split()) for p in pairs)
    network = read((p.replace("-", " ") for p in pairs), "edges", "link")
    return Spec(text=written, kind="graph", chip=None, chips=network.chips)


def build(spec: Spec) -> Network:
    return read((p.replace("-", " ") for p in spec.text.removeprefix("edges:").split(",")), spec.text, "link")
