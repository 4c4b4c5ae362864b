"""The command line's commands: one file each, listed once."""

from app.commands import alerts, catalog, compile, demo, doctor, ingest, runs, serve, show, watch, whatif

COMMANDS = (demo, serve, ingest, runs, show, compile, whatif, catalog, alerts, watch, doctor)
