"""What a row of the library tells of a run: one record a column, with its unit, its definition and how it is shown.

Numbers that come of questions (goodput, MFU ...) are None where they are not known, or not worked out yet.
"""

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from errors import QuestionError
from errors import format as fmt
from runs.live import Live

Kind = Literal["text", "number", "share", "usd", "seconds", "date"]


def folded(text: str) -> str:
    """A text as searches compare it: without case, composed (names of files may not be), one space for several."""
    return " ".join(unicodedata.normalize("NFC", text.casefold()).split())


@dataclass(frozen=True, kw_only=True)
class Row:
    """A run as the library lists it.

    `address`: what leads to it wherever a run is asked for. `stored_name`: what it was called when it was stored.
    `created_ns`: when it was stored. `demo`: it came with the product. `groups`: those of people who
    alone see it; none: all do. `usd_per_chip_hour`: as people said, else as its inputs do. `tables`:
    rows by table. `numbers`: by column, those that are known. `largest_loss`: the account of the ledger that cost most,
    and its share of the run. `bar`: (account, what it is, share of the chip time), a picture of the ledger. `under`:
    the amount in words. `spent`: what fleets add up (`analyzers.fleet.spent`), as JSON. `pending`: its numbers are
    being worked out. `problem`: what is damaged of it; of one that cannot be read (`readable` false) all else is empty.
    """

    run_id: str
    address: str
    name: str
    stored_name: str = ""
    kind: str = ""
    simulated: bool = False
    created_ns: int | None = None
    chip: str | None = None
    chips: int | None = None
    chips_text: str = ""
    model: str | None = None
    topology: str = ""
    job: str = ""
    project: str = ""
    experiment: str = ""
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    notes: tuple[str, ...] = ()
    starred: bool = False
    archived: bool = False
    demo: bool = False
    groups: tuple[str, ...] = ()
    usd_per_chip_hour: float | None = None
    tables: Mapping[str, int] = field(default_factory=dict[str, int])
    live: Live | None = None
    readable: bool = True
    problem: str | None = None
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])
    largest_loss: str | None = None
    bar: tuple[tuple[str, str, float], ...] = ()
    under: str = ""
    spent: str = field(default="", repr=False)
    pending: bool = False

    @property
    def group(self) -> str:
        """`project/experiment`, `project`, or empty."""
        return f"{self.project}/{self.experiment}" if self.experiment else self.project

    @cached_property
    def words(self) -> str:
        """All that words of a search are looked for in."""
        tags = [f"{k}={v}" for k, v in self.tags.items()]
        said = [
            self.run_id,
            self.name,
            self.kind,
            self.chip or "",
            self.topology,
            self.job,
            self.model or "",
            self.group,
        ]
        return "\n".join(folded(text) for text in (*said, *tags))

    @cached_property
    def folded_tags(self) -> tuple[tuple[str, str], ...]:
        """Tags as searches compare them: made once, since each value of a search looks at all of them."""
        return tuple((folded(k), folded(v)) for k, v in self.tags.items())

    @cached_property
    def folded_notes(self) -> str:
        """Notes as searches compare them; what is searched for never goes from one note to the next."""
        return "\n".join(folded(note) for note in self.notes)

    def to_dict(self) -> dict[str, Any]:
        """As the API and `runs --json` list it: of one that cannot be read what is not known is null."""
        numbers = {c.name: self.numbers.get(c.name) for c in COLUMNS if c.worked_out and c.kind != "text"}
        known = self.readable
        return {
            "run_id": self.run_id,
            "name": self.name if known else None,
            "kind": self.kind if known else None,
            "simulated": self.simulated,
            "created_ns": self.created_ns,
            "chip": self.chip,
            "chips": self.chips,
            "chips_text": self.chips_text,
            "model": self.model,
            "tags": dict(self.tags),
            "usd_per_chip_hour": self.usd_per_chip_hour,
            "tables": dict(self.tables),
            "live": self.live.to_dict() if self.live else None,
            "problem": self.problem,
            "stored_name": self.stored_name if known else None,
            "starred": self.starred,
            "archived": self.archived,
            "project": self.project or None,
            "experiment": self.experiment or None,
            "groups": list(self.groups),
            "noted": len(self.notes),
            "numbers": numbers,
            "largest_loss": self.largest_loss,
            "pending": self.pending,
        }

    def text(self, column: str) -> str:
        """What a cell shows. Raises QuestionError where there is no such column."""
        found = named(column)
        return found.shown(found.value(self))


@dataclass(frozen=True, kw_only=True)
class Column:
    """`value`: as it is sorted and compared, None where it is not known. `worked_out`: of the answers to questions."""

    name: str
    title: str
    kind: Kind
    meaning: str
    value: Callable[[Row], Any]
    unit: str = ""
    aliases: tuple[str, ...] = ()
    worked_out: bool = False

    @property
    def head(self) -> str:
        """Above its cells: the title, with the unit of a number."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    def shown(self, value: Any) -> str:
        """A value with its unit, as a person reads it."""
        if value is None or value == "":
            return fmt.NO_VALUE
        return _SHOWN[self.kind](value)


_SHOWN: dict[Kind, Callable[[Any], str]] = {
    "text": str,
    "number": lambda v: f"{v:,}" if isinstance(v, int) else fmt.number(v),
    "share": fmt.share,
    "usd": fmt.usd,
    "seconds": fmt.duration,
    "date": fmt.date,
}


def _of(name: str) -> Callable[[Row], Any]:
    return lambda row: getattr(row, name)


def _worked_out(name: str) -> Callable[[Row], Any]:
    return lambda row: row.numbers.get(name)


COLUMNS: tuple[Column, ...] = (
    Column(name="name", title="Name", kind="text", meaning="what the run is called", value=_of("name")),
    Column(
        name="kind",
        title="Kind",
        kind="text",
        meaning="training, serving, rl, compiled or simulated",
        value=_of("kind"),
    ),
    Column(name="chip", title="Chip", kind="text", meaning="the chip it ran on", value=_of("chip")),
    Column(name="chips", title="Chips", kind="number", meaning="chips held at one time", value=_of("chips")),
    Column(name="model", title="Model", kind="text", meaning="the model, or its size", value=_of("model")),
    Column(name="group", title="Group", kind="text", meaning="project/experiment", value=lambda row: row.group or None),
    Column(
        name="tags",
        title="Tags",
        kind="text",
        meaning="tags, key=value",
        value=lambda row: " ".join(f"{k}={v}" if v else k for k, v in row.tags.items()) or None,
        aliases=("tag",),
    ),
    Column(
        name="star",
        title="Star",
        kind="text",
        meaning="whether somebody starred it",
        value=lambda row: "★" if row.starred else None,
    ),
    Column(name="added", title="Added", kind="date", meaning="when it was stored", value=_of("created_ns")),
    Column(
        name="hours",
        title="Hours",
        unit="h",
        kind="number",
        meaning="hours that the ledger accounts for: chip-hours over chips",
        value=_worked_out("hours"),
        worked_out=True,
    ),
    Column(
        name="chip_hours",
        title="Chip time",
        unit="chip-hours",
        kind="number",
        meaning="chip-hours that the ledger accounts for; not known where the number of chips is not",
        value=_worked_out("chip_hours"),
        worked_out=True,
    ),
    Column(
        name="cost",
        title="Cost",
        unit="USD",
        kind="usd",
        meaning="chip-hours at the price of one, where a price is known",
        value=_worked_out("cost"),
        worked_out=True,
    ),
    Column(
        name="goodput",
        title="Goodput",
        kind="share",
        meaning="share of the chip time that went into kept steps; of serving, into answers",
        value=_worked_out("goodput"),
        worked_out=True,
    ),
    Column(
        name="mfu",
        title="MFU",
        kind="share",
        meaning="model FLOPs of usual steps over what the chips' peak would give in their time",
        value=_worked_out("mfu"),
        worked_out=True,
    ),
    Column(
        name="step_time",
        title="Usual step",
        kind="seconds",
        meaning="median of kept, usual steps",
        value=_worked_out("step_time"),
        aliases=("step",),
        worked_out=True,
    ),
    Column(
        name="loss",
        title="Loss",
        kind="number",
        meaning="training loss of the last kept step that tells it; not known where that is no number",
        value=_worked_out("loss"),
        worked_out=True,
    ),
    Column(
        name="throughput",
        title="Throughput",
        unit="tokens/s",
        kind="number",
        meaning="training: tokens per second of all chips in usual steps; serving: output tokens per second",
        value=_worked_out("throughput"),
        worked_out=True,
    ),
    Column(
        name="largest_loss",
        title="Largest loss",
        kind="text",
        meaning="the account that cost most of what is known, and its share of the chip time",
        value=_of("largest_loss"),
        worked_out=True,
    ),
)
USUAL = ("name", "kind", "chips", "added", "goodput", "mfu", "tags")  # columns that are shown where none are chosen


def named(name: str) -> Column:
    """The column of this name. Raises QuestionError where there is none."""
    for column in COLUMNS:
        if name == column.name or name in column.aliases:
            return column
    raise QuestionError(f"no column {name[:40]!r}", expected=f"one of {', '.join(c.name for c in COLUMNS)}")
