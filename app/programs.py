"""The programs that are kept with runs, read anew where somebody looks at one.

They are no tables of a run: reading one takes a tenth of a millisecond an instruction, which is paid by who looks and
not by every ingest, and runs that were stored before have them too.
"""

from dataclasses import dataclass

import pyarrow as pa

from app.workspace import workspace
from errors import InputError
from runs.kept import Answers
from runs.programs import Program
from runs.run import Run
from runs.tables import Tables

CACHE_BYTES = 256 << 20
LIMIT_BYTES = 1 << 28  # of one program, unpacked


@dataclass(frozen=True)
class StoredPrograms:
    """Those of one run (`runs.programs.Programs`)."""

    run: Run

    def of(self, file: str) -> Program:
        from collectors.device.hlo.program import program_of  # here: who asks of other things reads no protobuf

        return _read.get((self.run.writing, file), lambda: program_of(self.unpacked(file)))

    def unpacked(self, file: str) -> bytes:
        """The kept HloProto. Raises InputError where it is damaged or too large."""
        path, where = self.run.blob(file), f"{self.run.run_id}: blobs/{file}"
        try:
            with self.run.reading(), pa.input_stream(str(path), compression="zstd") as f:
                data = f.read(LIMIT_BYTES + 1)
        except (OSError, pa.ArrowException) as e:
            raise InputError("a program that cannot be unpacked", where=where, expected="an HloProto, zstd") from e
        if len(data) > LIMIT_BYTES:
            raise InputError(f"a program of more than {LIMIT_BYTES:,} bytes", where=where)
        return data

    def other(self, run: str) -> "tuple[str, Tables, StoredPrograms]":
        found = workspace(str(self.run.folder.parent.parent)).store.find(run)
        return found.manifest.name, found.tables, StoredPrograms(found)


_read = Answers(CACHE_BYTES)
