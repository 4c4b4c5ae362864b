"""The engine's process: `main([plan, weights, cold])`, in the job's folder; it ends when the file `stop` is there.

It is `reference.serve.server`, with a compile cache (or without warm-up, where that is the fault) and with a record of
what it compiled when, `truth.jsonl`, that no tool is given.
"""

import os
import threading
import time
from pathlib import Path

import jax

from reference.serve import server
from reference.serve.engine import Engine, now_ns
from reference.train.recorders import EventLog
from reference.train.worker import record_compiles

LOOK_S = 0.02


def _ends_with_its_launcher(given: int) -> None:
    """Ends this process when `given`, what was its standard input, closes."""

    def watch() -> None:
        while os.read(given, 1):
            pass
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _ends_when_told(writing: int) -> None:
    """Closes the server's standard input, which is how it is told to end, when the file `stop` is there."""

    def watch() -> None:
        while not Path("stop").exists():
            time.sleep(LOOK_S)
        os.close(writing)

    threading.Thread(target=watch, daemon=True).start()


def _not_warm(engine: Engine) -> list[dict]:
    """No program is compiled before the first request needs it."""
    now = now_ns()
    return [{"program": "none", "rows": 0, "pages": 0, "start_ns": now, "end_ns": now}]


def main(argv: list) -> None:
    plan, weights, cold = argv
    _ends_with_its_launcher(os.dup(0))
    reading, writing = os.pipe()
    os.dup2(reading, 0)
    _ends_when_told(writing)
    record_compiles(EventLog(Path("truth.jsonl")))
    if cold:
        Engine.warm_up = _not_warm
    else:
        jax.config.update("jax_compilation_cache_dir", "compile_cache")
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    server.main([plan, weights])
