"""Pairs of real runs with one known change, and how often the comparison names it (see README.md beside this)."""
