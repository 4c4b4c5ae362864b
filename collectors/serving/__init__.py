"""Formats that tell of serving: load tests, engines, their logs and metrics, traces of requests."""
