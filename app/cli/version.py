"""Which version this is."""

from errors.options import SWITCH, Option

VERSION = Option("version", SWITCH, False, "print the version of Chipledger and of the runs that it writes", local=True)


def version_line() -> str:
    """`Chipledger 0.1.0 (runs of schema 5)`: of a clone that was never installed only the schema is known."""
    import importlib.metadata

    from runs.run import SCHEMA_VERSION

    try:
        number = f" {importlib.metadata.version('chipledger')}"
    except importlib.metadata.PackageNotFoundError:
        number = ""
    return f"Chipledger{number} (runs of schema {SCHEMA_VERSION})"
