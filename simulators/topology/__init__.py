"""Networks of chips: built from a name, counted, loaded, broken. One file for each kind of system, listed once."""

from functools import lru_cache

from simulators.topology.network import Network
from simulators.topology.spec import Spec, System, split
from simulators.topology.systems import boardfly_pod, edge_list, fat_tree, free_lattice, nvlink, tpu_slice

SYSTEMS: tuple[System, ...] = (  # the first that reads a name has it
    free_lattice,
    boardfly_pod,
    nvlink,
    fat_tree,
    edge_list,
    tpu_slice,
)


def parse(text: str) -> Spec:
    """The topology of this name. Raises QuestionError: the rule that it breaks, and the nearest that exist."""
    return _parsed(text)[1]


@lru_cache(maxsize=16)
def build(text: str) -> Network:
    """The network of this name; of the last few names it is kept. Raises QuestionError as `parse`."""
    system, spec = _parsed(text)
    return system.build(spec)


def _parsed(text: str) -> tuple[System, Spec]:
    name, shape, options = split(text)
    system = next(s for s in SYSTEMS if s.reads(name) or s is SYSTEMS[-1])
    return system, system.parse(text, name, shape, options)
