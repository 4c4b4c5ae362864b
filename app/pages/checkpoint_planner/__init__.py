"""Checkpoint planner: how often to save, from numbers alone; all of them in the address."""
