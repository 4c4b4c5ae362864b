"""What is known of one capture while it is read: its planes, lines and summary all work on this, and on nothing of one
another."""

from dataclasses import dataclass, field

import numpy as np

from collectors.base import Lost, Source
from collectors.device.xplane.batches import Batches
from collectors.device.xplane.clock import DeviceClock
from collectors.device.xplane.collectives import Collectives, StepSpans
from collectors.device.xplane.gaps import ProgramRuns
from collectors.device.xplane.launches import Launches
from collectors.device.xplane.marks import Marked
from collectors.device.xplane.ops import OpRows, Programs
from collectors.device.xplane.peaks import PeakCheck
from collectors.device.xplane.planes import Numbers
from collectors.device.xplane.tables import Ops, rehash

OP_ROWS = 1024  # of operations, to begin with
STACK = 1024  # how deep operations may nest before their own times lose exactness


def new_ops(rows: int) -> Ops:
    """Empty tables for `rows` operations."""
    return Ops(
        np.full(4 * rows, -1, np.int32),
        np.zeros((rows, 7), np.int64),
        np.zeros(rows, np.int64),
        np.zeros(rows),
        np.zeros(rows),
    )


def grown(ops: Ops, used: int) -> Ops:
    """The same operations in tables twice as large."""
    larger = new_ops(2 * len(ops.count))
    for old, new in zip(ops[1:], larger[1:], strict=True):
        new[:used] = old[:used]
    rehash(larger, used)
    return larger


@dataclass(eq=False)
class State:
    """`base_ns`: where time starts, since 1970. `stop_ns`: where the profiler says that it stopped. `last_ps`: how far
    events reach from the start. `stand_ins`: device ordinals of host threads that stand in for devices. `gpu_ops`: GPU
    operations without and with the name of an HLO instruction."""

    source: Source
    base_ns: int = 0
    stop_ns: int | None = None
    last_ps: int | None = None
    numbers: Numbers = field(default_factory=Numbers)
    batches: Batches = field(init=False)
    ops: Ops = field(default_factory=lambda: new_ops(OP_ROWS))
    stack: np.ndarray = field(default_factory=lambda: np.zeros((2, STACK, 2), np.int64))
    op_rows: OpRows = field(init=False)
    programs: Programs = field(default_factory=Programs)
    steps: StepSpans = field(default_factory=StepSpans)
    collectives: Collectives = field(default_factory=Collectives)
    marked: Marked = field(init=False)
    stand_ins: set[int] = field(default_factory=set)
    program_runs: ProgramRuns = field(default_factory=ProgramRuns)
    clock: DeviceClock = field(default_factory=DeviceClock)
    launches: Launches = field(default_factory=Launches)
    peaks: PeakCheck = field(default_factory=PeakCheck)
    gpu_ops: list[int] = field(default_factory=lambda: [0, 0])
    lost: list[Lost] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.batches = Batches(self.source.index, self.numbers)
        self.op_rows = OpRows(self.source.index)
        self.marked = Marked(self.source)

    def saw(self, last_ps: int) -> None:
        """Notes how far events reach."""
        self.last_ps = max(last_ps, self.last_ps or last_ps)

    def forget_numbers(self) -> None:
        """Starts names and texts anew, where those of all planes would pile up."""
        self.numbers = self.batches.numbers = Numbers()
