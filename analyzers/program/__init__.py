"""Compiled programs looked at closely: their text, the neighbourhood of an operation, two of them, their heap."""
