"""How a job's devices share its work, by what each axis of its mesh is called."""

from collections.abc import Mapping
from math import isfinite, prod

from analyzers.base import Facts, fact
from analyzers.subject import devices_per_chip, slices_of

NAMES: dict[str, tuple[str, ...]] = {  # what shares out what: what frameworks call axes that do
    "data": ("data", "dp", "replica", "diloco", "slice", "dcn"),
    "fsdp": ("fsdp", "zero", "fsdp_transpose"),
    "tensor": (
        "tensor",
        "model",
        "tp",
        "mp",
        "tensor_transpose",
        "tensor_sequence",
        "tensor_parallel",
        "tensor_parallelism",
    ),
    "pipeline": ("stage", "pipeline", "pp", "pipe"),
    "expert": ("expert", "ep"),
    "context": ("context", "cp", "sequence", "context_autoregressive"),
}
_ROLE = {name: role for role, names in NAMES.items() for name in names}
_LEVELS = ("ici_", "dcn_")  # MaxText gives each axis a part within a slice and a part across slices
_REST = -1  # as a size, in MaxText: all devices that the other axes of its level leave


def parallel_ways(facts: Facts) -> dict[str, int]:
    """Devices along each role of NAMES, the product of all axes that have it; 1 where the facts name none.

    Megatron deals experts out among the data-parallel devices, so there `expert` is a part of `data` and not beside it:
    known by sizes whose product is the devices of the job only without it.
    """
    said = fact(facts, "parallelism")
    sizes = {str(k).lower(): int(v) for k, v in said.items() if _whole(v)} if isinstance(said, Mapping) else {}
    sizes = _filled(sizes, facts)
    ways = dict.fromkeys(NAMES, 1)
    for name, size in sizes.items():
        if role := _ROLE.get(_plain(name)):
            ways[role] *= max(size, 1)
    devices = devices_of(facts)
    if ways["expert"] > 1 and devices and prod(ways.values()) == devices * ways["expert"]:
        shared, beside = divmod(ways["data"], ways["expert"])
        ways["data"] = ways["data"] if beside else shared
    return ways


def _whole(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and int(value) == value


def _plain(name: str) -> str:
    return next((name.removeprefix(level) for level in _LEVELS if name.startswith(level)), name)


def devices_of(facts: Facts) -> int:
    """Devices of the job, as the facts state its chips or them; 0 where they state neither."""
    chips = fact(facts, "chips")
    return int(chips) * devices_per_chip(facts) if isinstance(chips, int | float) else int(fact(facts, "devices") or 0)


def _filled(sizes: dict[str, int], facts: Facts) -> dict[str, int]:
    """The sizes with those that stand for the rest worked out, as far as slices and devices are known."""
    slices = slices_of(facts) or 1
    inside, over = divmod(devices_of(facts), slices)
    filled = dict(sizes)
    for level, whole in zip(_LEVELS, (0 if over else inside, slices), strict=True):
        own = {name: size for name, size in sizes.items() if name.startswith(level)}
        rest, known = [n for n, s in own.items() if s == _REST], prod(s for s in own.values() if s > 0)
        if len(rest) == 1 and whole and whole % known == 0:
            filled[rest[0]] = whole // known
    return filled
