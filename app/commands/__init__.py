"""The command line's commands: one file each, listed once."""

from app.commands import alerts, catalog, compile, demo, doctor, ingest, runs, serve, show

COMMANDS = (demo, serve, ingest, runs, show, compile, catalog, alerts, doctor)
