"""How many devices hold the same piece of a program's input, from its sharding."""

from collections.abc import Iterable
from typing import Any

from collectors.device.hlo.products import prod

_REPLICATED, _OTHER = 0, 3
_MAX_DEVICES = 1 << 20


def copies_of(parameters: Iterable[Any]) -> dict[int, int]:
    """Devices that hold the same piece, that device included, by instruction; those that do not tell are left out.

    A sharding lists how often each dimension is cut; a last number, where it says so, counts copies of each piece.
    What is on all devices alike (`replicated`) has as many copies as the other shardings have devices.
    """
    said = {i.id: i.sharding for i in parameters if i.HasField("sharding")}
    tiled = {i: s for i, s in said.items() if s.type == _OTHER and s.dimensions and min(s.dimensions) > 0}
    devices = max((prod(s.dimensions) for s in tiled.values()), default=0)
    if not 1 < devices <= _MAX_DEVICES:
        return {}
    found = {i: devices for i, s in said.items() if s.type == _REPLICATED}
    for i, sharding in tiled.items():
        if sharding.last_tile_dims:
            dims = sharding.dimensions[-len(sharding.last_tile_dims) :]
            alike = zip(dims, sharding.last_tile_dims, strict=False)
            found[i] = prod(n for n, kind in alike if kind == _REPLICATED)
        else:
            found[i] = sharding.dimensions[-1] if sharding.replicate_on_last_tile_dim else 1
    return found
