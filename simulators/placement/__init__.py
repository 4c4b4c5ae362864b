"""Logical mesh axes laid over physical ones: every way, which axes close to rings, and what a step costs on each."""
