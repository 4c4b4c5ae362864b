"""Inputs that lie in a bucket and are read there: workers of an engine have each file for as long as they read it.

Whoever asked learns what a file is (`looking.py`), then what it holds (`parts/`); its bytes come to the workers.
"""
