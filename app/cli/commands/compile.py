"""`chipledger compile`: what the TPU compiler makes of a training step, on a machine without a TPU; it becomes a run.

A user's own function is run by the command line alone: the server takes names of models, never a file.
"""

import argparse
import json
import re
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.cli.commands import show
from app.cli.commands.ingest import teller
from app.compile_options import OPTIONS, Asked
from app.options import add_flags, from_args
from app.workspace import workspace
from errors import InputError, QuestionError

if TYPE_CHECKING:
    from catalog import Model
    from simulators.tpu_compile.request import CompileRequest

NAME = "compile"
HELP = "compile a training step for a TPU slice, without a TPU, and keep what comes out as a run"
CACHE = "compiled-cache"
CONFIG_BYTES = 1 << 20
COMPILING = 0.95  # of the work; the rest reads the result


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a model of the catalogue, a model's config.json, or FILE.py:FUNCTION, beside a function arguments(mesh)",
    )
    add_flags(parser, OPTIONS)
    parser.add_argument("--json", action="store_true", help="print the run's id and the answer as JSON")


def run(args: argparse.Namespace) -> None:
    from collectors.ingest import ingest
    from simulators.tpu_compile.launch import Limits, compiled_file

    asked = Asked(**from_args(args, OPTIONS))
    request, limits = _request(args.model, asked), Limits(asked.timeout)
    if asked.memory_gb is not None:
        limits = Limits(asked.timeout, round(asked.memory_gb * 1e9))
    place = workspace(args.store)
    stop = threading.Event()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: stop.set())  # the server's way to cancel
    tell = teller()

    def told(part: float, doing: str) -> None:
        tell(round(part * COMPILING * 1e6), 1_000_000, doing)

    file = compiled_file(request, place.store.root / CACHE, limits, told, stop.is_set)
    told(1.0, "reading the result")
    done = ingest([file], place.store, name=asked.name or request.title, cancel=stop.is_set)
    tell(1, 1, "stored")
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    answer = argparse.Namespace(
        store=args.store, run=done.run_id, analysis="compiled", option=None, json=args.json, explain=False
    )
    show.run(answer)


def _request(named: str, asked: Asked) -> "CompileRequest":
    from simulators.tpu_compile.request import make_request

    if asked.topology is None:
        raise QuestionError("no topology is named", expected="--topology SPEC, such as v6e:4x4")
    names = ("topology", "mesh", "slices", "seq", "batch", "remat", "optimizer", "attention", "weights")
    given = {name: getattr(asked, name) for name in names}
    if re.search(r"\.py:[^/\\:]*$", named):
        return make_request(function=named, **given)
    model, subject = _model(named)
    return make_request(model=model, subject=subject, **given)


def _model(text: str) -> "tuple[Model, str | dict[str, Any]]":
    """The model and how a run names it. Raises QuestionError or InputError where there is none."""
    from catalog import model
    from catalog.configs import from_config

    path = Path(text)
    if path.suffix == ".py":
        raise QuestionError("which function of it?", where=text, expected="FILE.py:FUNCTION")
    if not path.is_file():
        found = model(text)
        return found, found.name
    try:
        config = json.loads(path.read_bytes()[: CONFIG_BYTES + 1])
    except (OSError, ValueError, RecursionError) as e:
        raise InputError(f"cannot be read as JSON ({e})", where=text, expected="a model's config.json") from e
    if not isinstance(config, dict):
        raise InputError("no JSON object", where=text, expected="a model's config.json")
    return from_config(config), config
