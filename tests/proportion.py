"""A bound on what a test takes, for input on which something once went on without end or squared its size."""

import signal
import time
from collections.abc import Iterator

import pytest

SOON_S = 3.0  # of CPU, for what takes milliseconds
ENDED_S = 60  # of a clock, for what would not end


@pytest.fixture(autouse=True)
def soon() -> Iterator[None]:
    """Ends a test that goes on without end, and fails one that takes out of all proportion. To be imported."""

    def ended(*_: object) -> None:
        raise AssertionError("it goes on without end")

    before = signal.signal(signal.SIGALRM, ended)
    signal.alarm(ENDED_S)
    begun = time.process_time()
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert time.process_time() - begun < SOON_S
