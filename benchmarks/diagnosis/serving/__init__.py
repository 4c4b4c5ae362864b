"""Real serving runs of the benchmark: the reference's small engine and its client, hurt as a case says."""
