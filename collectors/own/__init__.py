"""Formats of Chipledger itself: tables handed in, and the facts beside a run."""
