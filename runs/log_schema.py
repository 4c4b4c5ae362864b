"""The tables of what lines of logs tell beside steps: why something happened, and what the job ran with. See
`runs.schema`."""

import pyarrow as pa

from runs.columns import ID, INT, SOURCE, TEXT, Column, TableSchema

LOG_TABLES: tuple[TableSchema, ...] = (
    TableSchema(
        "evidence",
        "a line of a log, or an event, that may tell why something happened",
        (
            Column("ts_ns", INT, "when it was written, ns since the epoch; null where it does not say"),
            Column("attempt", ID, "which start of the job, from 0, as far as its input tells"),
            Column("step", INT, "last step seen before it in its input, if any"),
            Column("host", TEXT, "host that it names, or that wrote it; null where neither is known"),
            Column("device", ID, "device number on that host, if it names one"),
            Column("cause", TEXT, "what it tells of, see catalog.causes.CAUSES; null where no pattern fits"),
            Column("severity", TEXT, "fatal, error, warning or info, as written"),
            Column("text", pa.string(), "the line as written, its first 500 characters"),
            Column("offset", INT, "its place in the input, bytes from the start"),
            Column("order", INT, "position in its input, from 0"),
            SOURCE,
        ),
    ),
    TableSchema(
        "settings",
        "a variable, flag or argument that a log says the job ran with; of an environment none but those of "
        "catalog.settings",
        (
            Column("attempt", ID, "which start of the job, from 0, as far as its input tells"),
            Column("step", INT, "last step seen before it in its input, if any"),
            Column("host", TEXT, "host or rank that the line is of; null where it names none"),
            Column("name", TEXT, "its name, of catalog.settings.SETTINGS"),
            Column("value", TEXT, "its value where that is a plain word, (set) where it is anything else"),
            Column("offset", INT, "its place in the input, bytes from the start"),
            Column("line", INT, "the line of the file, from 1; null where lines were taken out of an export"),
            Column("order", INT, "position among those of its input, from 0"),
            SOURCE,
        ),
    ),
)
