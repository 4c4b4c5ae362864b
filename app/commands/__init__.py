"""The command line's commands: one file each, listed once."""

from app.commands import catalog, demo, doctor, ingest, runs, serve, show

COMMANDS = (demo, serve, ingest, runs, show, catalog, doctor)
