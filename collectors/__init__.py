"""Collectors: one module a format, all listed here. See `collectors.base` for what each of them has."""

from collectors import compiled, goodput_log, maxtext, maxtext_metrics, sidecar, xplane

COLLECTORS = (xplane, goodput_log, maxtext, maxtext_metrics, compiled, sidecar)
