"""`nvl:72`, `h100:8`, `mi300x:8`: GPUs of one scale-up domain, over NVLink switches or joined directly.

Published: how many links a GPU has and how many switches a domain. How an HGX H100's 18 links spread over its four
switches (5, 4, 4, 5), an A100's 12 over six and a B200's 18 over two are known from their makers' block diagrams; in
a rack of 72 each GPU has one link to each of 18 switches (9 trays of two). MI300X and MI355X: each GPU one link to
each other. V100: the hybrid cube mesh, as `nvidia-smi topo -m` prints it on a DGX-1.
"""

import re
from collections.abc import Mapping

import numpy as np

from catalog.chips import Chip
from catalog.chips import chip as find_chip
from errors import QuestionError
from simulators.topology.network import KIND_OF, Network, make
from simulators.topology.spec import Spec, refuse_options, whole

FORMS = (
    ("nvl:72", "a GB200 rack: 72 GPUs, one NVLink to each of 18 switches; fewer GPUs in whole trays of 4"),
    ("h100:8", "an NVLink node: h100, h200, b200, b300, a100, v100"),
    ("mi300x:8", "GPUs joined directly to each other: mi300x, mi355x"),
)
RACK = "GB200"
LINKS_TO_SWITCHES: dict[str, tuple[int, ...]] = {  # links of a GPU to each switch of its domain
    "A100 SXM 40GB": (2,) * 6,
    "A100 SXM 80GB": (2,) * 6,
    "H100 SXM": (5, 4, 4, 5),
    "H200 SXM": (5, 4, 4, 5),
    "B200": (9, 9),
    "B300": (9, 9),
    RACK: (1,) * 18,
}
CUBE_MESH = (  # (GPU, GPU, links)
    (0, 1, 1),
    (0, 2, 1),
    (0, 3, 2),
    (0, 4, 2),
    (1, 2, 2),
    (1, 3, 1),
    (1, 5, 2),
    (2, 3, 2),
    (2, 6, 1),
    (3, 7, 1),
    (4, 5, 1),
    (4, 6, 1),
    (4, 7, 2),
    (5, 6, 2),
    (5, 7, 1),
    (6, 7, 2),
)
ALL_TO_ALL = tuple((a, b, 1) for a in range(8) for b in range(a + 1, 8))
DIRECT: dict[str, tuple[tuple[int, int, int], ...]] = {
    "MI300X": ALL_TO_ALL,
    "MI355X": ALL_TO_ALL,
    "V100 SXM2 16GB": CUBE_MESH,
    "V100 SXM2 32GB": CUBE_MESH,
}
SHORT = {  # how a chip is written
    "A100 SXM 80GB": "a100",
    "A100 SXM 40GB": "a100-40gb",
    "H100 SXM": "h100",
    "H200 SXM": "h200",
    "B200": "b200",
    "B300": "b300",
    "MI300X": "mi300x",
    "MI355X": "mi355x",
    "V100 SXM2 32GB": "v100",
    "V100 SXM2 16GB": "v100-16gb",
    RACK: "gb200",
}
_NAMES = {short: name for name, short in SHORT.items()}
_RACK = re.compile(r"nvl-?([0-9]*)")


def reads(name: str) -> bool:
    return _RACK.fullmatch(name.lower()) is not None or _gpu(name) is not None


def parse(text: str, name: str, shape: str, options: Mapping[str, str]) -> Spec:
    refuse_options(text, options, ())
    rack = _RACK.fullmatch(name.lower())
    chip = find_chip(RACK) if rack else _gpu(name)
    domain = domain_of(chip, text)
    gpus = whole(text, "GPUs", shape or (rack[1] if rack else "") or str(domain), 0, 10**9 - 1)
    short = "nvl" if chip.name == RACK else SHORT[chip.name]
    tray = int(chip.value("chips_per_host"))
    if gpus > domain:
        ways = "nvl:72" if chip.name == RACK else f"{short}:{domain}"
        if chip.name != RACK:
            up = -(-gpus // 8) * 8
            ways += f", or several nodes over a network: rail:{up}:chip={short} or fattree:{up}:chip={short}"
        raise QuestionError(f"{text}: a domain of {chip.name} has {domain} GPUs, not {gpus:,}", expected=ways)
    if gpus < 2 or (tray < domain and gpus % tray):
        rule = f"{chip.name} comes in trays of {tray}" if tray < domain else "one GPU has no network"
        below = max(gpus // tray * tray, tray) if tray < domain else 2
        near = sorted({below, min(below + tray, domain)} if tray < domain else {2, domain})
        raise QuestionError(f"{text}: {rule}", expected=" or ".join(f"{short}:{n}" for n in near))
    notes = ()
    if name.lower() == "v100":
        notes = ("V100 is read as the 32 GB card; the 16 GB card is wired alike.",)
    elif chip.name == RACK and gpus < domain:
        notes = (f"Part of a rack: {gpus} of its 72 GPUs, each with all its links.",)
    kind = "nvlink" if chip.name in LINKS_TO_SWITCHES else "direct" if DIRECT[chip.name] is ALL_TO_ALL else "cube mesh"
    return Spec(text=f"{short}:{gpus}", kind=kind, chip=chip.name, chips=gpus, notes=notes)


def build(spec: Spec) -> Network:
    chip = find_chip(spec.chip)
    ends, kind, switches = wiring(chip.name, spec.chips)
    at = np.arange(spec.chips)
    tray = int(chip.value("chips_per_host"))
    several = spec.chips > tray
    return make(
        spec=spec.text,
        kind=spec.kind,
        chip=spec.chip,
        chips=spec.chips,
        switches=switches,
        links=ends,
        link_kind=np.full(len(ends), KIND_OF[kind]),
        coordinates=np.stack([at // tray, at % tray], axis=1) if several else at[:, None],
        axes=("tray", "gpu") if several else ("gpu",),
        parts={"host": (at // tray).astype(np.int32)},
        oneway_bytes_per_s={kind: chip.value("link_oneway_bytes_per_s")},
    )


def wiring(chip: str, gpus: int) -> tuple[np.ndarray, str, int]:
    """(links (n, 2), their kind, switches) of one domain; its switches are nodes `gpus`, `gpus + 1`, ..."""
    if chip in DIRECT:
        pairs = [(a, b) for a, b, links in DIRECT[chip] for _ in range(links) if b < gpus]
        return np.array(pairs, np.int64).reshape(-1, 2), "direct", 0
    spread = LINKS_TO_SWITCHES[chip]
    to = gpus + np.repeat(np.arange(len(spread)), spread)
    return np.stack([np.repeat(np.arange(gpus), len(to)), np.tile(to, gpus)], axis=1), "nvlink", len(spread)


def domain_of(chip: Chip, text: str) -> int:
    """GPUs of one scale-up domain. Raises QuestionError for a chip whose wiring is not known."""
    if chip.name not in SHORT or "links_per_chip" not in chip.numbers:
        known = ", ".join(f"{short}:8" for name, short in SHORT.items() if name != RACK)
        raise QuestionError(
            f"{text}: how {chip.name} are joined is not known here ({chip.scaleup})", expected=f"one of nvl:72, {known}"
        )
    return int(chip.value("scaleup_domain_chips"))


def _gpu(name: str) -> Chip | None:
    """The GPU of this name; None where it is another maker's chip, or none."""
    try:
        found = find_chip(_NAMES.get(name.lower(), name))
    except QuestionError:
        return None
    return None if found.vendor == "Google" else found
