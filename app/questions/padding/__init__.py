"""Padding: how much of the matrix unit's work is done on nothing, and which dimension would pay most."""
