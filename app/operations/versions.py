"""Which versions run: of Chipledger, of the runs that it writes, and of what it stands on."""

import functools
import importlib.metadata
import platform

UNKNOWN = "unknown"


def version_of(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return UNKNOWN


@functools.cache
def versions() -> dict[str, str]:
    from runs.run import SCHEMA_VERSION

    return {
        "version": version_of("chipledger"),
        "schema": str(SCHEMA_VERSION),
        "python": platform.python_version(),
        "streamlit": version_of("streamlit"),
    }
