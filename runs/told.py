"""The tables of a run in another process, of the plain values that `ParquetTables.told` gives."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runs.integrity import Files, Mark
from runs.tables import ParquetTables


def tables_told(told: Mapping[str, Any]) -> ParquetTables:
    """Rows of theirs are counted in the files that there are."""
    folder, marks = Path(told["folder"]), {relative: mark and Mark(*mark) for relative, mark in told["marks"].items()}
    if not told["place"]:
        return ParquetTables(Files(folder, marks))
    from runs.objects.files import files_told  # late: most stores are folders

    return ParquetTables(files_told(folder, marks, told["place"]))
