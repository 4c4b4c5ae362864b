"""Which facts may be said of a run, and how what a person gives is checked: one record each."""

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from analyzers.flops.formats import PRECISIONS, format_of
from catalog.chips import chip
from catalog.configs import from_config
from catalog.models import model
from errors import InputError, QuestionError
from errors.numbers import CHIPS, COUNT, PER_SECOND, USD, Number
from runs.registry import PRICE

LONGEST = 10_000  # characters of a fact: a model's dimensions, not a file
AXES = 16  # of parallelism
_SHOWN = 60
_SHAPE = re.compile(r"\d{1,6}(x\d{1,6}){0,3}", re.ASCII)
_AXIS = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}", re.ASCII)
SEQUENCE = Number(1, (1 << 31) - 1, whole=True)
SEVERAL = Number(1, 1 << 20, whole=True)
Given = Mapping[str, Any]  # what is said together, and what was said before, by name


@dataclass(frozen=True, kw_only=True)
class Declarable:
    """A fact that a person may say.

    asks      the question on a page
    unit      of a number
    expected  what may be given
    example   as it is written on the command line
    read      (what was given, what else is known) -> the value that is kept. Raises QuestionError
    tried     a value to find out with what the fact would open, where nothing can be guessed
    asked     the form after an upload asks for it; others are offered under "More"
    """

    name: str
    title: str
    asks: str
    expected: str
    example: str
    read: Callable[[Any, Given], Any]
    tried: Any
    unit: str = ""
    asked: bool = True


def _number(name: str, kind: Number) -> Callable[[Any, Given], Any]:
    def checked(given: Any, known: Given) -> Any:
        text = str(given)[:_SHOWN]
        return kind.read(given, name, shown=None if text.isprintable() else f"{name} {text!r}")

    return checked


def _chip(given: Any, known: Given) -> str:
    """The catalogue's name of a chip; of a chip that it does not have the name as given, where its peak is known."""
    text = _line("chip", given)
    try:
        return chip(text).name
    except QuestionError as e:
        if known.get("peak_flops_per_s") is not None and not e.expected:
            return text
        own = "" if e.expected else " A chip of your own needs peak_flops_per_s beside it."
        raise QuestionError(e.what, expected=e.expected, advice=f"{e.advice.rstrip('.')}.{own}") from e


def _model(given: Any, known: Given) -> str | dict[str, Any]:
    """The catalogue's name of a model, or dimensions that make one."""
    if isinstance(given, str) and given.lstrip().startswith("{"):
        given = _object("model", given)
    if isinstance(given, dict):
        from_config(given)
        return given
    return model(_line("model", given)).name


def _precision(given: Any, known: Given) -> str:
    text = _line("precision", given)
    word = format_of(text)
    if word is None:
        raise QuestionError(f"precision {text[:_SHOWN]!r}", expected=f"one of {', '.join(PRECISIONS)}")
    return word


def _topology(given: Any, known: Given) -> str:
    text = _line("topology", given).lower()
    if not _SHAPE.fullmatch(text):
        raise QuestionError(f"topology {text[:_SHOWN]!r}", expected="chips along each axis, such as 4x4x8")
    return text


def _parallelism(given: Any, known: Given) -> dict[str, int]:
    """Axes and their sizes, in mesh order."""
    if isinstance(given, str) and given.lstrip().startswith("{"):
        given = _object("parallelism", given)
    elif isinstance(given, str):
        pairs = (part.partition("=") for part in given.split(",") if part.strip())
        given = {name.strip(): size.strip() for name, _, size in pairs}
    if not isinstance(given, dict) or not 0 < len(given) <= AXES or not all(map(_axis, given)):
        raise QuestionError("parallelism is not understood", expected="axes and sizes, such as data=4,tensor=8")
    return {name: _number(f"parallelism {name}=", SEVERAL)(size, known) for name, size in given.items()}


def _axis(name: object) -> bool:
    return isinstance(name, str) and _AXIS.fullmatch(name) is not None


def _object(name: str, text: str) -> Any:
    try:
        return json.loads(text[: LONGEST + 1])
    except (ValueError, RecursionError) as e:
        raise QuestionError(f"{name} is no JSON ({e})", expected="an object") from e


def _line(name: str, given: Any) -> str:
    """One line of text. Raises QuestionError for anything else."""
    text = given.strip() if isinstance(given, str) else ""
    if not text or len(text) > LONGEST or not text.isprintable():
        said = f"of {len(text):,} characters" if len(text) > LONGEST else "that is not one line of plain text"
        raise QuestionError(f"a {name} {said}", expected=f"1 to {LONGEST:,} printable characters")
    return text


CHIP = Declarable(
    name="chip",
    title="Chip",
    asks="Which chip ran this?",
    expected="a chip of the catalogue, by any usual name",
    example="v5p",
    read=_chip,
    tried="TPU v5p",
)
CHIP_COUNT = Declarable(
    name="chips",
    title="Number of chips",
    asks="How many chips did it hold?",
    unit="chips",
    expected=CHIPS.expected,
    example="256",
    read=_number("chips", CHIPS),
    tried=8,
)
MODEL = Declarable(
    name="model",
    title="Model",
    asks="Which model is it?",
    expected="a model of the catalogue, or its config.json",
    example="llama2-7b",
    read=_model,
    tried="llama2-7b",
)
SEQ = Declarable(
    name="seq",
    title="Sequence length",
    asks="How many tokens has a sequence?",
    unit="tokens",
    expected=SEQUENCE.expected,
    example="4096",
    read=_number("seq", SEQUENCE),
    tried=4096,
)
BATCH = Declarable(
    name="global_batch",
    title="Global batch",
    asks="How many sequences are in a step of the whole job?",
    unit="sequences",
    expected=COUNT.expected,
    example="512",
    read=_number("global_batch", COUNT),
    tried=512,
)
COST = Declarable(
    name=PRICE,
    title="Price of a chip-hour",
    asks="What does a chip-hour cost?",
    unit="USD",
    expected=USD.expected,
    example="4.2",
    read=_number(PRICE, USD),
    tried=1.0,
)
FACTS: tuple[Declarable, ...] = (  # in the order in which they are asked for
    CHIP,
    CHIP_COUNT,
    MODEL,
    SEQ,
    BATCH,
    COST,
    Declarable(
        name="precision",
        title="Number format",
        asks="In which format ran its matrix products?",
        expected=f"one of {', '.join(PRECISIONS)}",
        example="bf16",
        read=_precision,
        tried="bf16",
        asked=False,
    ),
    Declarable(
        name="topology",
        title="Slice",
        asks="Which shape has its slice?",
        expected="chips along each axis, such as 4x4x8",
        example="4x4x8",
        read=_topology,
        tried="2x2x2",
        asked=False,
    ),
    Declarable(
        name="slices",
        title="Number of slices",
        asks="How many slices did it hold?",
        unit="slices",
        expected=SEVERAL.expected,
        example="2",
        read=_number("slices", SEVERAL),
        tried=1,
        asked=False,
    ),
    Declarable(
        name="parallelism",
        title="Parallelism",
        asks="How is it split over its devices?",
        expected="axes and sizes, such as data=4,tensor=8",
        example="data=4,tensor=8",
        read=_parallelism,
        tried={"data": 8},
        asked=False,
    ),
    Declarable(
        name="chips_per_host",
        title="Chips of a host",
        asks="How many chips has a host?",
        unit="chips",
        expected=SEVERAL.expected,
        example="4",
        read=_number("chips_per_host", SEVERAL),
        tried=4,
        asked=False,
    ),
    Declarable(
        name="peak_flops_per_s",
        title="Peak of one chip",
        asks="What is the peak of one chip?",
        unit="FLOP/s",
        expected=PER_SECOND.expected,
        example="4.59e14",
        read=_number("peak_flops_per_s", PER_SECOND),
        tried=459e12,
        asked=False,
    ),
)


def named(name: str) -> Declarable:
    """The fact of this name. Raises InputError, with the nearest name, where none may be said that is called so."""
    known = {fact.name: fact for fact in FACTS}
    if name in known:
        return known[name]
    usual = {"price": PRICE, "sequence_length": "seq", "batch": "global_batch", "num_chips": "chips"}
    near = usual.get(name) or next(iter(difflib.get_close_matches(name[:_SHOWN], known, n=1)), None)
    raise InputError(
        f"no fact {name[:_SHOWN]!r} can be said of a run",
        expected=f"one of {', '.join(known)}",
        advice=f"Did you mean {near!r}?" if near else "",
    )


def read(given: Given, known: Given) -> dict[str, Any]:
    """The values to keep, of all that was given; None of one that is taken back, which is given as None or "". Raises
    InputError or QuestionError for the first that cannot be. `known`: what is known of the run already."""
    found = {name: named(name) for name in given}
    beside = {**known, **given}
    return {
        name: None if value is None or value == "" else found[name].read(value, beside) for name, value in given.items()
    }


def written(value: Any) -> str:
    """A value as a person writes it."""
    if isinstance(value, float) and abs(value) >= 1e5:
        return f"{value:,.0f}"
    if not isinstance(value, dict):
        return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    if name := value.get("name") or value.get("model_name"):
        return str(name)
    axes = value and "layers" not in value and all(type(size) is int for size in value.values())
    return ",".join(f"{k}={v}" for k, v in value.items()) if axes else json.dumps(value, sort_keys=True)
