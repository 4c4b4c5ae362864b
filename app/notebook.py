"""Runs in a notebook or a script: their tables as pandas frames, SQL over them, and the answers that the pages show.

from app.notebook import open_run
run = open_run("my_run")
run.table("steps")
"""

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analyzers.base import Result
from app.workspace import Workspace, workspace
from runs.run import Run
from runs.tables import frame

if TYPE_CHECKING:
    import pandas as pd

ROWS = 1_000_000  # of an answer to SQL: a notebook computes on, where a page would only show


@dataclass(frozen=True)
class OpenedRun:
    """A run of a store, to look at: nothing here changes it. Errors are those of the command line, as
    `errors.ChipledgerError` with one line of text."""

    run: Run
    place: Workspace

    @property
    def name(self) -> str:
        return self.run.manifest.name

    @property
    def facts(self) -> dict[str, Any]:
        """What is known of the run as a whole, such as its chip; where each is from: `run.manifest.facts`."""
        return {name: fact.value for name, fact in self.run.manifest.facts.items()}

    @property
    def tables(self) -> dict[str, int]:
        """The tables that the run holds, with their rows."""
        return {name: rows for name, rows in self.run.manifest.tables.items() if rows}

    def table(self, name: str) -> "pd.DataFrame":
        """A whole table; one that the run lacks is empty, with its columns. Raises QuestionError for one that no run
        has, InputError for one that was damaged."""
        return frame(self.run.tables, name)

    def query(self, sql: str, timeout: float = 30, rows: int = ROWS) -> "pd.DataFrame":
        """The answer to one SELECT over the tables, within `timeout` seconds. Where there are more than `rows` rows, or
        than 64 MiB, the rest is cut off with a warning. Whole numbers are nullable, as in `table`. Raises QuestionError
        for SQL that cannot be answered."""
        from runs.query import query

        answer = query(self.run, sql, timeout, rows)
        if answer.cut:
            warnings.warn(f"cut off after {answer.table.num_rows:,} rows; there are more", stacklevel=2)
        return answer.table.to_pandas(types_mapper=_whole)

    def ask(self, name: str, **options: Any) -> Result:
        """The answer to a question, as `chipledger show` has it: its figures are attributes, `.to_dict()` is its JSON.
        Raises QuestionError for a question or option that is unknown, or that the run cannot answer."""
        from app.questions import question
        from app.questions.asking import ask

        return ask(question(name), self.run, options, self.place.registry)


def _whole(kind: Any) -> Any:
    """What keeps every digit of whole numbers where some are null: pandas' own would be real numbers, and a time in ns
    some hundred of them off."""
    import pandas as pd
    import pyarrow as pa

    if not pa.types.is_integer(kind):
        return None
    return pd.api.types.pandas_dtype(str(kind).replace("uint", "UInt").replace("int", "Int", 1))


def open_run(name: str, store: str | None = None) -> OpenedRun:
    """The run of this id or name, or its beginning. `store`: its folder, else $CHIPLEDGER_STORE, else ~/.chipledger.
    Raises QuestionError where there is none."""
    place = workspace(store)
    return OpenedRun(place.store.find(name), place)
