"""What is known of an HLO module once it was analysed: its operations, arguments, products and loops."""

from dataclasses import dataclass, field

from collectors.device.hlo.assignment import Assignment
from collectors.device.hlo.buffers import DeviceMemory
from collectors.device.hlo.collectives import ProgramCollective
from collectors.device.hlo.cost import Product
from collectors.device.hlo.scopes import NOWHERE, Scope
from collectors.device.hlo.shapes import Collective


@dataclass(frozen=True)
class Operation:
    """One instruction as a trace may name it.

    `flops`, `bytes`: of one execution; None if it only contains others. `cycles`: clock cycles of one execution as
    the compiler estimates them, where it does. `count`: executions in one run of the module; 0 inside an
    asynchronous operation, which stands for what it wraps; None in a loop that runs an unknown number of times.
    `framework`: what the framework calls it, `scope` what that tells.
    """

    name: str
    opcode: str
    category: str
    flops: float | None
    bytes: float | None
    shape: str
    source: str | None
    collective: Collective | None
    cycles: float | None = None
    count: int | None = 0
    framework: str | None = None
    scope: Scope = NOWHERE


@dataclass(frozen=True)
class Argument:
    """An input of a module on one device: `bytes` logical, `padded_bytes` as its layout says.

    `copies`: devices that hold the same piece of it, this one included; None where the program does not tell.
    """

    name: str
    bytes: int
    padded_bytes: int
    shape: str
    op: str
    copies: int | None = None


@dataclass(frozen=True)
class Matmul:
    """A matrix product of a module and how often one run of the module executes it; None: not known. `within`: the
    operation that a profile shows it in, the fusion around it or itself; None where several hold it."""

    op: str
    product: Product
    count: int | None
    dtype: str | None
    layout: str
    remat: bool
    source: str | None
    within: str | None = None


@dataclass
class Module:
    """The analysis of one module. `operations` holds every instruction outside fusions, by name.

    `flops`, `remat_flops`, `bytes`: of one run; None where a loop of `unknown_loops` holds some.
    """

    name: str
    flops: float | None = 0.0
    remat_flops: float | None = 0.0
    bytes: float | None = 0.0
    instructions: int = 0
    devices: int = 0  # devices in the replica groups of its collectives, 0 where there are none
    operations: dict[str, Operation] = field(default_factory=dict)
    matmuls: list[Matmul] = field(default_factory=list)
    collectives: list[ProgramCollective] = field(default_factory=list)
    arguments: list[Argument] = field(default_factory=list)
    memory: DeviceMemory | None = None  # where the compiler's buffer assignment came with the module
    assignment: Assignment | None = None  # on which devices it runs, where the program tells
    unknown_loops: list[str] = field(default_factory=list)  # loops of which nothing tells how often they run
