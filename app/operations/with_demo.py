"""`serve --with-demo`: the bundled runs are loaded by a process of its own, while the server answers already."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path

from app.operations import logs

PROJECT = Path(__file__).parents[2]
NICE, GRACE_S = 10, 5.0  # whoever asks the server goes first


@contextlib.contextmanager
def loading_demo(store: Path) -> Generator[None]:
    """Within it the bundled runs that the store lacks are loaded; leaving ends what is not done: a run is stored whole
    or not at all, and the next start goes on."""
    paths = [str(PROJECT), *filter(None, [os.environ.get("PYTHONPATH")])]
    process = subprocess.Popen(
        [sys.executable, "-m", "app.operations.with_demo", str(store)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    threading.Thread(target=_listen, args=(process,), name="bundled runs", daemon=True).start()
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _listen(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    said = [line.strip() for line in process.stdout if line.strip()]
    code = process.wait()
    logs.tell("demo_loaded", exit_code=code, said=" | ".join(said[-20:]))


def main(store: str) -> None:
    from app.bundled_runs import load

    os.nice(NICE)
    for line in load(store):
        print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
