"""An option of a question or of a what-if: one record, from which come the flag of the command line, the parameter of
the HTTP API, the control on a page, the check of what is given, and the docs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from errors import QuestionError
from errors.nearest import did_you_mean
from errors.numbers import ANY, ANY_WHOLE, Number
from errors.times import Duration, Moment

_SHOWN = 80  # characters of a value that is refused
SWITCH = bool  # the kind of what is on or off: a flag without a value on the command line
Time = Duration | Moment
Kind = type[str] | type[bool] | tuple[str, ...] | Number | Time
_ON, _OFF = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


@dataclass(frozen=True)
class Option:
    """What can be varied.

    name      as in JSON, addresses and parameters: `max_sequences`; the command line writes `--max-sequences`
    kind      str, a tuple of the words allowed, a Number with its bounds, a Duration or Moment, or SWITCH
    default   what holds where nothing is given; None: it follows from what is asked about, as `help` says
    help      what it means and, where it has no fixed default, what holds otherwise
    unit      of a number: `s`, `tokens`, `USD` ...; empty: a count, a share or a word
    label     on a page; empty: the name in words
    of_run    it names a run of the store
    local     the command line alone takes it, such as a file of who asks; the server never
    bare      the value where the flag stands alone on the command line
    several   it may be given again; its value is a tuple of all that was given
    form      how a text is written, as the command line's help shows it: `SPEC`, `CHIP=USD`; empty: by its kind
    letter    a short flag of the command line beside the long one: `o` for `-o`; empty: none
    """

    name: str
    kind: Kind
    default: Any
    help: str
    unit: str = ""
    label: str = ""
    of_run: bool = False
    local: bool = False
    bare: str | None = None
    several: bool = False
    form: str = ""
    letter: str = ""

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def switch(self) -> bool:
        """Whether it is on or off."""
        return self.kind is SWITCH

    @property
    def title(self) -> str:
        """Above its control: the label, with its unit where the label does not say that already."""
        words = self.label or self.name.removesuffix(f"_{self.unit}").replace("_", " ").capitalize()
        said = (
            not self.unit or self.unit in words.lower().split() or " per " in words or words.endswith(")")
        )  # such as `Requests per second`
        return words if said else f"{words} ({self.unit})"

    @property
    def chosen(self) -> str:
        """How it is given, for a sentence that a page and a terminal share: each names it as it calls it."""
        return f'under "{self.title}" on its page, with --option {self.name}=... on the command line'

    @property
    def expected(self) -> str:
        """What may be given: `one of a, b`, `a number from 0`, or empty for any text."""
        if isinstance(self.kind, tuple):
            return f"one of {', '.join(self.kind)}"
        if isinstance(self.kind, Number | Time):
            return self.kind.expected
        return "true or false" if self.switch else ""

    def to_dict(self) -> dict[str, Any]:
        """What it is, as JSON."""
        return {
            "name": self.name,
            "expected": self.expected or "text",
            "unit": self.unit or None,
            "default": self.default,
            "help": self.help,
        }

    def parse(self, text: Any, called: str = "") -> Any:
        """The value from text; of one that may be given again, from text or a list of texts. `called`: how an error
        names it before what was given, such as `--chips `. Raises QuestionError with what would be right."""
        if text is None:
            return self.default
        if self.several:
            return tuple(self._one(t, called) for t in ([text] if isinstance(text, str) else text))
        return self._one(text, called)

    def _one(self, text: Any, called: str) -> Any:
        called = called or f"option {self.name}="
        if isinstance(self.kind, tuple):
            if str(text) not in self.kind:
                advice = did_you_mean(str(text), self.kind)
                raise QuestionError(f"{called}{str(text)[:_SHOWN]!r}", expected=self.expected, advice=advice)
            return str(text)
        if self.switch:
            word = str(text).strip().lower()
            if word not in (*_ON, *_OFF):
                raise QuestionError(f"{called}{str(text)[:_SHOWN]!r}", expected=self.expected)
            return word in _ON
        if isinstance(self.kind, Time):
            return self.kind.read(text, self.name, shown=f"{called}{str(text)[:_SHOWN]!r}")
        if not isinstance(self.kind, Number):
            return str(text)
        said = str(text)[:_SHOWN] if ANY.reads(text) else repr(str(text)[:_SHOWN])
        return self.kind.read(text, self.name, shown=f"{called}{said}")


def parse_options(options: tuple[Option, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """Every option's value. Raises QuestionError for one that does not exist."""
    known = {o.name for o in options}
    for name in given:
        if name not in known:
            raise QuestionError(
                f"no option {name[:_SHOWN]!r} here",
                expected=f"one of {', '.join(o.name for o in options) or 'none'}",
                advice=did_you_mean(name, known),
            )
    return {option.name: option.parse(given.get(option.name)) for option in options}


def once_each(query: Iterable[tuple[str, str]], known: Iterable[str], several: Iterable[str] = ()) -> dict[str, str]:
    """A query as values by name. Raises QuestionError for a name that is unknown, or twice there and not `several`."""
    allowed, repeated = list(known), set(several)
    found: dict[str, str] = {}
    for name, value in query:
        if name not in allowed:
            expected, advice = f"one of {', '.join(allowed) or 'none'}", did_you_mean(name, allowed)
            raise QuestionError(f"no parameter {name[:40]!r} here", expected=expected, advice=advice)
        if name in found and name not in repeated:
            raise QuestionError(f"{name!r} is given twice", expected="once")
        found[name] = value
    return found


WHOLE, NUMBER = ANY_WHOLE, ANY  # of any size
