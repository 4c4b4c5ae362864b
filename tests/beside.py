"""Commands side by side: `python -m tests.beside "COMMAND" "COMMAND" ...`.

What the first says is shown as it comes, what each other said after that. Fails where any fails. Tests wait for servers
and other processes a quarter of their time: what runs beside them meanwhile costs little.
"""

import contextlib
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence


def main(commands: Sequence[str]) -> int:
    first, *others = map(shlex.split, commands)
    with contextlib.ExitStack() as stack:
        said = [stack.enter_context(tempfile.TemporaryFile()) for _ in others]
        running = [subprocess.Popen(c, stdout=f, stderr=subprocess.STDOUT) for c, f in zip(others, said, strict=True)]
        try:
            failed = subprocess.call(first) != 0
            for process, output in zip(running, said, strict=True):
                failed |= process.wait() != 0
                output.seek(0)
                sys.stdout.write(output.read().decode(errors="replace"))
        finally:
            for process in running:
                process.terminate()  # of one that ended: nothing happens
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
