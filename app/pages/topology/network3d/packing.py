"""A network as the browser gets it: one short JSON header and arrays behind it, differences of whole numbers, deflated.

A blob: uint32 length of the header, the header, then deflated arrays in the header's order. `i`: int32, each the
difference from the one before; `f`: float32. Little-endian. A message is the length of the first blob and two blobs:
what a network is, and what is shown of it, so that the first need not be read anew when only the second changes.
"""

import json
import struct
import zlib
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any

import numpy as np

from app.pages.topology.network_colours import LINKS
from app.pages.topology.network_layout import layout
from simulators.topology.network import LINK_KINDS, Network
from simulators.topology.switches import SWITCHES, switch_kinds

STEP = 1 / 128  # places are whole numbers of this: a hundredth of the way between neighbours


def message(network: Network, shown: bytes) -> bytes:
    """What the component takes: the network, kept for the last few, and a blob made by `pack`."""
    first = packed_network(network)
    return struct.pack("<I", len(first)) + first + shown


def pack(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """One blob. Arrays of floats travel as float32, all others as differences; flattened."""
    listed, parts = [], []
    for name, values in arrays.items():
        flat = np.ravel(values)
        if flat.dtype.kind == "f":
            listed.append([name, "f", len(flat)])
            parts.append(flat.astype("<f4").tobytes())
        else:
            listed.append([name, "i", len(flat)])
            parts.append(np.diff(flat.astype("<i4"), prepend=np.int32(0)).astype("<i4").tobytes())
    body = zlib.compress(b"".join(parts), 6)
    identity = sha256(body + json.dumps(header, sort_keys=True).encode()).hexdigest()[:16]
    head = json.dumps({**header, "id": identity, "arrays": listed}, separators=(",", ":"), allow_nan=False).encode()
    return struct.pack("<I", len(head)) + head + body


@lru_cache(maxsize=8)
def packed_network(network: Network) -> bytes:
    """Everything of a network that failures, loads and routes leave as it is."""
    drawn = layout(network)
    present = sorted(set(network.link_kind.tolist()))
    header = {
        "spec": network.spec,
        "chips": network.chips,
        "nodes": network.nodes,
        "links": len(network.links),
        "slices": network.slices,
        "axes": list(network.axes),
        "parts": list(network.parts),
        "step": STEP,
        "linkParts": list(network.link_parts),
        "directions": list(drawn.axes),
        "switches": [name for name, _, _ in SWITCHES],
        "kinds": [_kind(network, number) for number in present],
    }
    arrays = {
        "places": np.rint(drawn.places / STEP).astype(np.int32).T,
        "from": network.links[:, 0],
        "to": network.links[:, 1] - network.links[:, 0],
        "kind": np.searchsorted(present, network.link_kind),
        "closes": drawn.closes,
        "lane": drawn.lane,
        "outlines": np.rint(drawn.outlines / STEP).astype(np.int32),
        "coordinates": network.coordinates.T,
        "switchKind": switch_kinds(network),
        **{f"part {name}": values for name, values in network.parts.items()},
        **{f"linkPart {name}": values for name, values in network.link_parts.items()},
    }
    return pack(header, arrays)


def _kind(network: Network, number: int) -> dict[str, Any]:
    name, meaning = LINK_KINDS[number]
    look = LINKS[name]
    return {
        "name": name,
        "meaning": meaning,
        "count": int(np.count_nonzero(network.link_kind == number)),
        "light": look.light,
        "dark": look.dark,
        "width": look.width_px,
        "dash": look.dash,
    }
