"""Faults that are tried against a real server: `python -m benchmarks.faults.scenarios --out FOLDER`."""
