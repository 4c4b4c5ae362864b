"""Ranks against one another: stragglers, pipelines, collectives, and who waits for whom."""
