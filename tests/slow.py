"""Which tests `make check` leaves out, by measured processor time: `tests/slow.txt`, which `make slow` writes anew.

A line names a folder, a file or a test function, all its parameters included. Times are of the processor, which are the
same beside other work, and a part of what is waited, which other tests fill as a rule.
"""

import functools
import json
import os
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_name("slow.txt")
SLOW_S = 0.1  # all parameters of a test together
WAITED = 0.1  # of the time that a test waits: so much of it counts
WHOLE = 0.8  # a file of whose time so much is slow is left out whole
ALWAYS = ("tests/additions/", "tests/interop/")  # a copy of the whole project; files that not every clone has
COSTS = "TEST_COSTS"  # where a session notes what each test took


@functools.cache
def listed() -> frozenset[str]:
    return frozenset(line.strip() for line in LIST.read_text().splitlines() if line.strip() and line[0] != "#")


def whole_files() -> frozenset[Path]:
    """Files and folders of which every test is listed."""
    return frozenset(ROOT / name for name in listed() if "::" not in name)


def is_slow(nodeid: str) -> bool:
    function = nodeid.split("[")[0]
    file = function.split("::")[0]
    return not listed().isdisjoint({function, file, *(f"{p.as_posix()}/" for p in Path(file).parents)})


def _used() -> float:
    """Processor seconds of this process and of the children that it waited for."""
    return sum(
        u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item):
    """As a plugin (`-p tests.slow`): note what each test took, its fixtures and its end included."""
    before, begun = _used(), time.monotonic()
    result = yield
    used = _used() - before
    took = used + WAITED * max(time.monotonic() - begun - used, 0.0)
    with open(f"{os.environ[COSTS]}.{os.getpid()}", "a") as f:
        f.write(json.dumps([item.nodeid, took]) + "\n")
    return result


def chosen(costs: Iterable[tuple[str, float]]) -> list[str]:
    """What is to be listed, from (test, seconds)."""
    files: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for nodeid, seconds in costs:
        if not nodeid.startswith((*ALWAYS, "tests/browser/")):
            file, function = nodeid.split("[")[0].split("::", 1)
            files[file][function] += seconds
    found = list(ALWAYS)
    for file, functions in sorted(files.items()):
        slow = sorted(name for name, seconds in functions.items() if seconds >= SLOW_S)
        share = sum(functions[name] for name in slow) / (sum(functions.values()) or 1)
        found += [file] if share >= WHOLE and len(slow) > len(functions) / 2 else [f"{file}::{name}" for name in slow]
    return found


def main(folder: str) -> None:
    """Write the list from what sessions noted in a folder, and say which tests cost most."""
    lines = [line for path in Path(folder).iterdir() for line in path.read_text().splitlines()]
    costs: list[tuple[str, float]] = [tuple(json.loads(line)) for line in lines]
    names = chosen(costs)
    LIST.write_text("# Left out of `make check`; written by `make slow`.\n" + "".join(f"{n}\n" for n in names))
    for nodeid, seconds in sorted(costs, key=lambda c: -c[1])[:60]:
        print(f"{seconds:7.1f} s  {nodeid}")
    print(
        f"{sum(s for _, s in costs):7.0f} s of processor time in {len(costs)} tests; {len(names)} lines in {LIST.name}"
    )


if __name__ == "__main__":
    main(sys.argv[1])
