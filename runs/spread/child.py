"""The process that `processes` gives tasks to: it does one after the other and gives back what came of each.

Standard input: pickled (work, stamp, asked), one after another. Standard output: of each a pickled ("done", answer), or
what was raised. Nobody but the process that started this one writes or reads there.
"""

import os
import pickle
import sys
from typing import BinaryIO

from errors import ChipledgerError
from runs.spread.engine import perform


def main() -> None:
    """Does tasks until there are no more."""
    tell = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever a library prints is no answer
    while _next(sys.stdin.buffer, tell):
        pass


def _next(ask: BinaryIO, tell: BinaryIO) -> bool:
    """Do one task; whether there was one."""
    try:
        work, stamp, asked = pickle.load(ask)
    except EOFError:
        return False
    try:
        told = "done", perform(work, stamp, asked)
    except ChipledgerError as e:
        told = "refused", (type(e), {"what": e.what, "where": e.where, "expected": e.expected, "advice": e.advice})
    pickle.dump(told, tell, protocol=5)
    tell.flush()
    return True


if __name__ == "__main__":
    try:
        main()
    except (KeyboardInterrupt, BrokenPipeError, MemoryError):  # told by the process that started this one, if it lives
        os._exit(1)
