"""`chipledger compile`: what the TPU compiler makes of a training step, on a machine without a TPU; it becomes a run.

A user's own function is run by the command line alone: the server takes names of models, never a file.
"""

import argparse
import re
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app import compile_options
from app.cli.commands.base import JSON, model_config
from app.cli.commands.ingest import teller
from app.cli.commands.show import show
from app.compile_options import Asked
from app.ingest_options import OF_A_TERMINAL
from app.options import add_arguments, add_flags, from_args
from app.workspace import Workspace, workspace
from errors import QuestionError
from errors.options import Option
from runs.shelf import NAME_LENGTH

if TYPE_CHECKING:
    from catalog import Model
    from runs.share_book import Audience
    from simulators.tpu_compile.request import CompileRequest

NAME = "compile"
HELP = "compile a training step for a TPU slice, without a TPU, and keep what comes out as a run"
API = "POST /api/compile"
ARGUMENTS = (
    Option(
        "model",
        str,
        None,
        "a model of the catalogue, a model's config.json, or FILE.py:FUNCTION, beside a function arguments(mesh)",
        local=True,
        form="MODEL",
    ),
)
OPTIONS = (*compile_options.OPTIONS, *OF_A_TERMINAL, replace(JSON, help="print the run's id and the answer as JSON"))
CACHE = "compiled-cache"
COMPILING = 0.95  # of the work; the rest reads the result


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from app.sharing import audience

    asked = Asked(**from_args(args, compile_options.OPTIONS))
    request = _request(args.model, asked)  # before a store is made for it
    place = workspace(args.store)
    run_id = compiled(place, request, asked, audience(place, from_args(args, OF_A_TERMINAL)))
    show(place, run_id, "compiled", as_json=bool(args.json))


def compiled(place: Workspace, request: "CompileRequest", asked: Asked, audience: "Audience | None" = None) -> str:
    """Compile, and keep what comes out as a run: its id. Raises InputError where nothing came out."""
    from collectors.ingest import ingest
    from collectors.ingesting.gather import shown
    from collectors.own import sidecar
    from simulators.tpu_compile.launch import Limits, compiled_file

    sidecar.check("name", asked.name, NAME)  # before minutes of work
    limits = Limits(asked.timeout)
    if asked.memory_gb is not None:
        limits = Limits(asked.timeout, round(asked.memory_gb * 1e9))
    stop = threading.Event()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: stop.set())  # the server's way to cancel
    tell = teller()

    def told(part: float, doing: str) -> None:
        tell(round(part * COMPILING * 1e6), 1_000_000, doing)

    file = compiled_file(request, place.store.root / CACHE, limits, told, stop.is_set)
    told(1.0, "reading the result")
    name = asked.name or shown(request.title)[:NAME_LENGTH]
    done = ingest([file], place.store, name=name, cancel=stop.is_set, audience=audience)
    tell(1, 1, "stored")
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    return done.run_id


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
    config = model_config(path, text)
    plain = {key: value for key, value in config.items() if isinstance(value, str | int | float)}
    return from_config(config), plain  # a run's facts hold no lists and no objects in objects
