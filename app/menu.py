"""A page of the dashboard: where it is, what it is for, and of which runs it can tell."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from catalog.terms import Term
from errors import ChipledgerError
from runs.run import Run

Kind = Literal["job", "serving", "compiled"]  # a job that ran or was simulated; requests served; a program compiled


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page.

    name     what it is called in code and, where `address` is empty, in its address
    file     below app/; empty: it has none
    about    kinds of run that it can tell of, each with the tables one of which must be there (none: any run of that
             kind); empty: it is about no single run
    formats  of these runs it tells only where a file of one of these formats was read; empty: of any
    program  of these runs it tells only where a program is kept: PyTorch names modules and keeps none
    in_menu  it stands in the menu at the top; else only among the links of a run
    key      the letter that leads there after `g`; empty: none
    aliases  older names, which still lead here
    terms    what its figures mean
    """

    name: str
    title: str
    icon: str
    asks: str
    file: str = ""
    address: str = ""
    about: Mapping[Kind, tuple[str, ...]] = field(default_factory=dict, hash=False)
    formats: tuple[str, ...] = ()
    program: bool = False
    in_menu: bool = False
    key: str = ""
    aliases: tuple[str, ...] = ()
    terms: tuple[Term, ...] = ()

    @property
    def path(self) -> str:
        """The last part of its address."""
        return self.address or self.name

    def tells_of(self, run: Run) -> bool:
        """Whether it can tell something of a run of this kind, with what the run holds."""
        needed = self.about.get(kind_of(run))
        if needed is None or (needed and not any(run.manifest.tables.get(table) for table in needed)):
            return False
        if self.formats and not any(source.get("collector") in self.formats for source in run.manifest.sources):
            return False
        return not self.program or _keeps_a_program(run)


def kind_of(run: Run) -> Kind:
    """What a run is of: a simulated or profiled job counts as a job."""
    kind = run.manifest.kind
    return kind if kind in ("serving", "compiled") else "job"


def _keeps_a_program(run: Run) -> bool:
    """Whether a module of it names the file of its program; of a damaged table the page itself tells."""
    try:
        files = run.tables.arrow("modules", ["file"])["file"]
    except ChipledgerError:
        return True
    return files.null_count < len(files)
