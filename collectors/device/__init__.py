"""Formats that tell of devices: profiles, compiled programs, samples of their counters."""
