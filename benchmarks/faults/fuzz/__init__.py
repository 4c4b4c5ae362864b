"""Damaged files for all readers: `python -m benchmarks.faults.fuzz --files 100000 --out FOLDER`."""
