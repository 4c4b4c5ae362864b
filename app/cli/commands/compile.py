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
from app.workspace import workspace
from errors import InputError, QuestionError
from simulators.tpu_compile.launch import DEFAULT_MEMORY_BYTES, DEFAULT_SECONDS, Limits, compiled_file
from simulators.tpu_compile.request import (
    ATTENTIONS,
    DEFAULT_SEQ,
    OPTIMIZERS,
    REMATS,
    WEIGHTS,
    CompileRequest,
    make_request,
)

if TYPE_CHECKING:
    from catalog import Model

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
    parser.add_argument("--topology", required=True, help="such as v6e:4x4, v5p:4x4x8, tpu7x:2x2x1 or v5p-128")
    parser.add_argument("--mesh", help="such as data=4,model=4 over the slice's JAX devices (default: all on fsdp)")
    parser.add_argument("--slices", type=int, default=1, help="such slices, joined by the data-centre network")
    parser.add_argument("--seq", type=int, help=f"tokens in a sequence (default: {DEFAULT_SEQ})")
    parser.add_argument("--batch", type=int, help="sequences in a step over all chips (default: one a data part)")
    for name, words, what in (
        ("remat", REMATS, "what the backward pass makes again"),
        ("optimizer", OPTIMIZERS, "optimiser"),
        ("attention", ATTENTIONS, "blocks of queries, or all at once"),
        ("weights", WEIGHTS, "type of weights, gradients and optimiser state; activations are bf16"),
    ):
        parser.add_argument(f"--{name}", choices=words, default=words[0], help=f"{what} (default: {words[0]})")
    parser.add_argument(
        "--timeout", type=float, default=DEFAULT_SECONDS, metavar="SECONDS", help="give up after (default: %(default)g)"
    )
    parser.add_argument(
        "--memory-gb",
        type=float,
        default=DEFAULT_MEMORY_BYTES / 1e9,
        metavar="GB",
        help="memory the compiler may take on this machine (default: %(default).1f)",
    )
    parser.add_argument("--name", help="name of the run (default: model, topology and mesh)")
    parser.add_argument("--json", action="store_true", help="print the run's id and the answer as JSON")


def run(args: argparse.Namespace) -> None:
    from collectors.ingest import ingest

    request, limits = _request(args), _limits(args)
    place = workspace(args.store)
    stop = threading.Event()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: stop.set())  # the server's way to cancel
    tell = teller()

    def told(part: float, doing: str) -> None:
        tell(round(part * COMPILING * 1e6), 1_000_000, doing)

    file = compiled_file(request, place.store.root / CACHE, limits, told, stop.is_set)
    told(1.0, "reading the result")
    done = ingest([file], place.store, name=args.name or request.title, cancel=stop.is_set)
    tell(1, 1, "stored")
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    asked = argparse.Namespace(store=args.store, run=done.run_id, analysis="compiled", option=None, json=args.json)
    show.run(asked)


def _request(args: argparse.Namespace) -> CompileRequest:
    names = ("topology", "mesh", "slices", "seq", "batch", "remat", "optimizer", "attention", "weights")
    given = {name: getattr(args, name) for name in names}
    if re.search(r"\.py:[^/\\:]*$", args.model):
        return make_request(function=args.model, **given)
    model, subject = _model(args.model)
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


def _limits(args: argparse.Namespace) -> Limits:
    for name, value in (("timeout", args.timeout), ("memory-gb", args.memory_gb)):
        if not 0 < value < 1e9:
            raise QuestionError(f"--{name} {value:g}", expected="a positive number")
    return Limits(args.timeout, round(args.memory_gb * 1e9))
