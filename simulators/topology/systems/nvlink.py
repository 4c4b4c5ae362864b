"""`nvl:72`, `h100:8`, `mi300x:8`: GPUs of one scale-up domain, over NVLink switches or joined directly.

How the links of a GPU spread over its switches, or which GPUs they join, is the catalogue's to say (`wiring`), with
its source: a GPU that it wires is a system here.
"""

import re
from collections.abc import Mapping

import numpy as np

from catalog.chips import Chip, chips
from catalog.chips import chip as find_chip
from catalog.traits import Wiring
from errors import QuestionError
from simulators.topology.network import KIND_OF, Network, make
from simulators.topology.spec import Spec, refuse_options, whole

FORMS = (
    ("nvl:72", "a GB200 rack: 72 GPUs, one NVLink to each of 18 switches; fewer GPUs in whole trays of 4"),
    ("h100:8", "an NVLink node, such as h100, h200, b200, b300, a100 or v100"),
    ("mi300x:8", "GPUs joined directly to each other, such as mi300x or mi355x"),
)
_RACK = re.compile(r"nvl-?([0-9]*)")


def reads(name: str) -> bool:
    return _RACK.fullmatch(name.lower()) is not None or _gpu(name) is not None


def parse(text: str, name: str, shape: str, options: Mapping[str, str]) -> Spec:
    refuse_options(text, options, ())
    rack = _RACK.fullmatch(name.lower())
    chip = _rack() if rack else _gpu(name)
    assert chip is not None, "knows() comes first"
    domain, wired = domain_of(chip, text), wiring_of(chip)
    gpus = whole(text, "GPUs", shape or (rack[1] if rack else "") or str(domain), 0, 10**9 - 1)
    short = wired.rack or wired.name
    tray = int(chip.need("chips_per_host"))
    if gpus > domain:
        ways = f"{short}:{domain}"
        if not wired.rack:
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
    elif wired.rack and gpus < domain:
        notes = (f"Part of a rack: {gpus} of its {domain} GPUs, each with all its links.",)
    return Spec(text=f"{short}:{gpus}", kind=wired.kind, chip=chip.name, chips=gpus, notes=notes)


def build(spec: Spec) -> Network:
    chip = find_chip(spec.chip)
    ends, kind, switches = wiring(chip.name, spec.chips)
    at = np.arange(spec.chips)
    tray = int(chip.need("chips_per_host"))
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
    wiring = wiring_of(find_chip(chip))
    if not wiring.to_switches:
        pairs = [(a, b) for a, b, links in wiring.pairs for _ in range(links) if b < gpus]
        return np.array(pairs, np.int64).reshape(-1, 2), "direct", 0
    spread = wiring.to_switches
    to = gpus + np.repeat(np.arange(len(spread)), spread)
    return np.stack([np.repeat(np.arange(gpus), len(to)), np.tile(to, gpus)], axis=1), "nvlink", len(spread)


def domain_of(chip: Chip, text: str) -> int:
    """GPUs of one scale-up domain. Raises QuestionError for a chip whose wiring is not known."""
    if chip.wiring is None or "links_per_chip" not in chip.numbers:
        known = ", ".join(f"{name}:8" for name in nodes())
        raise QuestionError(
            f"{text}: how {chip.name} are joined is not known here ({chip.scaleup})", expected=f"one of nvl:72, {known}"
        )
    return int(chip.need("scaleup_domain_chips"))


def nodes() -> tuple[str, ...]:
    """What GPUs are called that are joined in nodes, not in racks."""
    return tuple(name for name, chip in _wired().items() if not wiring_of(chip).rack)


def wiring_of(chip: Chip) -> Wiring:
    """How the GPUs of a node or rack are joined; for chips of which that is known, as `domain_of` makes sure."""
    assert chip.wiring is not None
    return chip.wiring


def _wired() -> dict[str, Chip]:
    return {c.wiring.name: c for c in chips().values() if c.wiring}


def _rack() -> Chip:
    return next(c for c in _wired().values() if wiring_of(c).rack)


def _gpu(name: str) -> Chip | None:
    """The GPU of this name; None where it is another maker's chip, or none."""
    try:
        found = _wired().get(name.lower()) or find_chip(name)
    except QuestionError:
        return None
    return None if found.vendor == "Google" else found
