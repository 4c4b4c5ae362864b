"""The command line's commands: one file each, listed once."""

from app.cli.commands import (
    alerts,
    catalog,
    compare,
    compile,
    demo,
    doctor,
    findings,
    ingest,
    mcp,
    query,
    runs,
    serve,
    show,
    topology,
    watch,
    whatif,
)

COMMANDS = (
    demo,
    serve,
    ingest,
    runs,
    findings,
    show,
    query,
    compare,
    compile,
    topology,
    whatif,
    catalog,
    alerts,
    watch,
    mcp,
    doctor,
)
