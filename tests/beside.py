"""Two lines of commands side by side: `python -m tests.beside "COMMAND" "COMMAND" ...`.

The first beside all others, which run one after another. What the first says is shown as it comes, what each other said
after that. Fails where any fails. Tests in a browser wait for most of their time, the check of types has one processor
to itself: either leaves room for the tests that calculate.
"""

import contextlib
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import IO


def main(commands: Sequence[str]) -> int:
    first, *others = map(shlex.split, commands)
    line = _Line()
    with contextlib.ExitStack() as stack:
        said = [stack.enter_context(tempfile.TemporaryFile()) for _ in others]
        pool = stack.enter_context(ThreadPoolExecutor(1))
        stack.callback(line.end)  # before the pool waits for it: nothing happens where all are through
        failures = [pool.submit(line.run, c, f) for c, f in zip(others, said, strict=True)]
        failed = subprocess.call(first) != 0
        for failure, output in zip(failures, said, strict=True):
            failed |= failure.result()
            output.seek(0)
            sys.stdout.write(output.read().decode(errors="replace"))
    return int(failed)


class _Line:
    """Commands one after another, until it is ended."""

    def __init__(self) -> None:
        self.running: subprocess.Popen[bytes] | None = None
        self.ended = False

    def run(self, command: Sequence[str], output: IO[bytes]) -> bool:
        """Whether it failed."""
        if self.ended:
            return True
        self.running = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        if self.ended:  # meanwhile
            self.running.terminate()
        return self.running.wait() != 0

    def end(self) -> None:
        self.ended = True
        if self.running:
            self.running.terminate()  # of one that ended: nothing happens


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
