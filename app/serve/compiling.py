"""A request to compile, from the page or the API: checked here, before any process is started for it.

Only models of the catalogue: the server never runs anyone's code.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import catalog
from app.compile_options import OPTIONS
from errors import InputError, QuestionError
from errors.options import Option
from simulators.tpu_compile.launch import versions
from simulators.tpu_compile.request import REMATS, make_request

MODEL = Option("model", str, None, "a model of the catalogue")
REQUEST = (MODEL, *(o for o in OPTIONS if not o.local))  # what a request may ask
FIELDS = {o.name: o.help for o in REQUEST}
_OPTIONS = {o.name: o for o in REQUEST}


@dataclass(frozen=True)
class CompileAsked:
    """What is asked of `chipledger compile`; None: left to its default."""

    model: str
    topology: str
    mesh: str | None = None
    seq: int | None = None
    batch: int | None = None
    remat: str | None = None
    slices: int | None = None

    def options(self) -> list[str]:
        """As arguments of the command."""
        given = {n: getattr(self, n) for n in FIELDS if n != "model"}
        return [f"--{name}={value}" for name, value in given.items() if value is not None]


def missing() -> str:
    """Why nothing can be compiled here and what to install, as a sentence; empty where it can."""
    try:
        versions()
    except InputError as e:
        return str(e)
    return ""


def compile_request(given: Mapping[str, Any]) -> CompileAsked:
    """The request, checked as the command would. Raises InputError for fields that are not understood and
    QuestionError for what cannot be compiled."""
    for name in given:
        if name not in FIELDS:
            raise InputError(f"no field {str(name)[:40]!r} here", expected=f"one of {', '.join(FIELDS)}")
    values = {name: _value(name, given[name]) for name in given if given[name] not in (None, "")}
    for name in ("model", "topology"):
        if name not in values:
            raise InputError(f"no {name} is named", expected=FIELDS[name])
    model = catalog.model(values["model"])
    asked = CompileAsked(**{**values, "model": model.name})
    make_request(
        topology=asked.topology,
        mesh=asked.mesh,
        model=model,
        subject=model.name,
        seq=asked.seq,
        batch=asked.batch,
        slices=asked.slices or 1,
        remat=asked.remat or REMATS[0],
    )
    if lacks := missing():
        raise QuestionError(lacks)
    return asked


def _value(name: str, value: Any) -> Any:
    option = _OPTIONS.get(name)
    if option is not None and not isinstance(option.kind, type):
        try:
            return option.parse(value)
        except QuestionError as e:
            what = f"{name} {str(value)[:40]!r} is not understood"
            raise InputError(what, expected=f"{option.expected}: {option.help}") from e
    if not isinstance(value, str) or not value.isprintable() or len(value) > 200:
        raise InputError(f"{name} is not understood", expected=FIELDS[name])
    return value.strip()
