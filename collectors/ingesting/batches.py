"""How much of a run's files one task of an engine takes."""

MOST_BYTES = 1 << 25  # of files as they lie there: small ones wait until there are so many for one task
LEAST_BYTES = 1 << 22
TASKS = 64  # of a run at least, where its files allow it: the last to end keeps nobody waiting for long


def task_bytes(whole: int) -> int:
    """Of a run of so many bytes: by them alone, since what one task reads becomes one part, whoever reads it."""
    return min(MOST_BYTES, max(LEAST_BYTES, whole // TASKS))
