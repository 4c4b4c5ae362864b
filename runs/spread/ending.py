"""The end of processes that read, whatever they are at."""

import contextlib
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def end(children: Sequence["subprocess.Popen[Any]"], pool: ThreadPoolExecutor) -> None:
    """Kill `children`, wait for the threads of `pool` that speak with them, and close what they spoke through."""
    for child in children:
        child.kill()
    pool.shutdown(wait=True, cancel_futures=True)
    for child in children:
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        child.wait()
