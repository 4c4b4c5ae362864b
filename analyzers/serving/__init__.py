"""Serving: requests, their latencies and objectives, load, the engine and its caches."""
