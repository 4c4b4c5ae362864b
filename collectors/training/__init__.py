"""Formats that tell of training jobs: logs, goodput entries, launchers."""
