"""How the tests run: where they write, how many workers, how many examples of a property, and which tests the inner
loop leaves out."""

import gc
import os
import shutil
import sys
import time
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import is_hypothesis_test, settings

from app.cli import YOUNG
from tests import loading
from tests.postgres import (  # noqa: F401 - fixtures
    _connections_end_with_the_test,
    either_registry,
    postgres,
    registry_at,
)
from tests.slow import is_slow, whole_files

DEV_EXAMPLES = 15  # of each property, but in CI: there as many as it asks for
DEV_PART = 5  # of the seeds of tests that draw for themselves, one in so many, but in CI: there all of them
MOST_WORKERS, WORKER_BYTES = 4, 2_500_000_000
MEMORY, MEMORY_BYTES = Path("/dev/shm"), 4_000_000_000  # files that lie in memory; those of all tests take less
LONG_S = 0.1  # of a processor, for a look at all objects
NO_VALUES = SimpleNamespace(params={})
_SETTINGS = "_hypothesis_internal_use_settings"  # where Hypothesis keeps what `@settings` said


def _memory_is_free() -> bool:
    """Whether the files of all tests fit into memory, beside what the workers take."""
    try:
        room = os.statvfs(MEMORY)
        told = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    except OSError:
        return False
    available = int(told.get("MemAvailable", "0 kB").split()[0]) * 1024
    return (
        os.access(MEMORY, os.W_OK)
        and room.f_bavail * room.f_frsize >= MEMORY_BYTES
        and available >= MEMORY_BYTES + 2 * WORKER_BYTES
    )


# Tests make many objects and little of them is garbage, as programs do when they load code.
gc.set_threshold(*YOUNG)

# Each run that is stored is synced to the disk, file by file and folder by folder, and thousands are: that is waited
# for. The calls are made all the same; only what lies below them is faster.
if "PYTEST_DEBUG_TEMPROOT" not in os.environ and _memory_is_free():
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(MEMORY)

settings.register_profile(
    "ci", settings.get_profile("default"), deadline=None
)  # how busy the machine is, is no property
settings.register_profile("dev", settings.get_profile("default"), max_examples=DEV_EXAMPLES, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "dev")


def seeds(most: int) -> range:
    """Numbers below `most`, of a test that draws for itself or walks all there is: every one where properties are tried
    in full, else one in so many."""
    return range(0, most, 1 if settings.get_current_profile_name() == "ci" else DEV_PART)


def bounded(test, most: int) -> None:
    """Let a property try at most so many examples, also where it names a number of its own: a profile alone gives way
    to that."""
    said = getattr(test, _SETTINGS, None) or settings.default
    setattr(test, _SETTINGS, settings(said, max_examples=min(said.max_examples, most)))


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """A worker for each core: their servers and browsers fill the time in which they wait, and one more made all of
    them later; fewer where memory is short."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(os.cpu_count() or 1, MOST_WORKERS, memory // WORKER_BYTES))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What the inner loop leaves out as a whole is not imported for it either."""
    said = config.option.markexpr
    left_out = ("not slow" in said and collection_path in whole_files()) or (
        "not browser" in said and collection_path == Path(__file__).parent / "browser"
    )
    return True if left_out else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Have each worker compile its part of the files, before all of them collect all."""
    config, worker = session.config, getattr(session.config, "workerinput", None)
    if worker is not None:
        ignored = {Path(path).resolve() for path in config.getoption("ignore") or ()}
        files = loading.found(
            (config.invocation_params.dir / path for path in config.args),
            lambda file: any(p in ignored or pytest_ignore_collect(p, config) for p in (file, *file.parents)),
        )
        number = int(worker["workerid"].removeprefix("gw"))
        loading.load(loading.turned(files, number, worker["workercount"]), config.rootpath)


def _told_alike(item: pytest.Item) -> None:
    """Refuse a name that another worker may write otherwise: a set read back from compiled code has another order than
    the one that was compiled, and workers whose names differ run nothing."""
    for value in getattr(item, "callspec", NO_VALUES).params.values():
        if isinstance(value, set | frozenset) and len(value) > 1 and str(value) in item.callspec.id:
            raise pytest.UsageError(f"{item.nodeid} is named by a set, whose order is no order: use a list")


@pytest.hookimpl(tryfirst=True)  # before -m chooses by marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    dev = settings.get_current_profile_name() == "dev"
    browser = Path(__file__).parent / "browser"
    for item in items:
        _told_alike(item)
        if browser in item.path.parents:
            item.add_marker(pytest.mark.browser)
        if is_slow(item.nodeid):
            item.add_marker(pytest.mark.slow)
        if dev and is_hypothesis_test(getattr(item, "function", None)):
            bounded(item.function, DEV_EXAMPLES)


_MAIN = sys.modules["__main__"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
    """A page that is opened in this process takes the place of its main module. A process that is spawned runs that
    file first, and would end there."""
    sys.modules["__main__"] = _MAIN
    yield
    if nextitem is not None and nextitem.path != item.path:
        _set_aside()


def _set_aside() -> None:
    """What the tests of a file leave behind stays, as what was imported: once there is so much of it that to look
    through it takes long, a test that comes later and makes many objects would pay for it."""
    began = time.thread_time()
    gc.collect()
    if time.thread_time() - began > LONG_S:
        gc.freeze()


def pytest_collection_finish(session: pytest.Session) -> None:
    """What was imported and collected stays to the end: no collection of garbage needs to look through it again.
    Streamlit asks for one after each page that is drawn."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Give the memory back that the files of a session took where it passed; those of one that failed are looked at."""
    folder = session.config._tmp_path_factory._basetemp
    if exitstatus == 0 and folder and MEMORY in folder.parents and "PYTEST_XDIST_WORKER" not in os.environ:
        shutil.rmtree(folder, ignore_errors=True)
