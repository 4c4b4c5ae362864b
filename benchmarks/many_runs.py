"""The list, its searches, the fleet and a history over very many runs, with the registry in a file and on PostgreSQL.

    python -m benchmarks.many_runs [--store PATH] [--runs 100000] [--times 10] [--postgres] [--steady] [--no-server]
    python -m benchmarks.many_runs --index --runs 1000000

Makes a store of so many runs below `--store`, or measures the one that is there. Each run is a folder with a manifest
alone, as one of twelve small training runs wrote it, with an id, a name and a time of its own; the numbers of its row
are kept, as once a server has worked them out. A tenth has tags, notes, stars or a group, a twentieth is archived.
`--postgres` starts a PostgreSQL as the tests do, copies the registry there, and measures with it.

Before each round of questions another process tags a run, so that nothing that was counted or sorted stands any more;
with `--steady` nothing changes. In process each question is given as its median and 95th of 100, with the median of the
processor time that it took; over HTTP as median and 95th, asked of a server in a process of its own. Beside them stand
what a start takes, resident bytes, and the load of the machine. `--index` fills the index that is searched with rows
that no store holds, and measures it alone.
"""

import argparse
import contextlib
import hashlib
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

from analyzers.fleet.spent import ID_LENGTH
from app.library.answers import glimpse_of
from app.library.columns import Row, named
from app.library.index import Index
from app.library.rows import NEWEST
from app.library.search import read
from app.library.seen import Seen
from app.library.working import key_of
from app.registry_place import FILE_VARIABLE
from app.workspace import Workspace, _opened, workspace
from benchmarks import library as small
from errors import ChipledgerError
from runs.database import NOTE
from runs.registry import Extras
from runs.run import MANIFEST, Run
from runs.shelf import Shelf

SEARCHES = (
    *("retry", "chip:v5p", "mfu<30", "tag:prod", "name:sweep-fp8", "added>=2026-10", "cost>500", "is:starred"),
    *("group:pretraining goodput>80", "chip:v5p mfu<45 -tag:old sweep"),
)
SORTS = ("name", "-mfu", "cost", "tags", "group", "largest_loss", "added")
PAGE = 50


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--steady", action="store_true", help="change nothing between the rounds")
    parser.add_argument("--no-server", action="store_true", help="in process alone")
    parser.add_argument("--no-fleet", action="store_true")
    parser.add_argument("--index", action="store_true", help="the index of so many rows alone, without a store")
    asked = parser.parse_args(arguments)
    if asked.index:
        for line in measure_index(asked.runs, asked.times):
            print(line, flush=True)
        return
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        store = asked.store or Path(folder) / "store"
        if not (store / "runs").is_dir():
            began = time.monotonic()
            make(store, asked.runs)
            print(f"made {asked.runs:,} runs in {time.monotonic() - began:.0f} s", flush=True)
        if asked.postgres:
            os.environ[FILE_VARIABLE] = stack.enter_context(_on_postgres(store, Path(folder)))
        for line in measure(store, asked.times, asked.steady, not asked.no_server, not asked.no_fleet):
            print(line, flush=True)


def make(store: Path, count: int) -> None:
    """A store of so many runs."""
    place = workspace(str(store))
    patterns = [small._pattern(place, number) for number in range(small.PATTERNS)]
    told = [(run, glimpse_of(run, place.registry).to_json()) for run in patterns]
    rng, shelf = random.Random(1), Shelf(place.registry.at)
    for at in range(0, count - len(patterns), 10_000):
        numbers = range(at, min(at + 10_000, count - len(patterns)))
        small._keep_numbers(shelf, [_written(place, *rng.choice(told), number, rng) for number in numbers])
    ids = [_digest(number)[:ID_OF_RUN] for number in range(count - len(patterns))]
    small.add_to_runs(ids, count, rng, shelf)


ID_OF_RUN = 64


def _digest(number: int) -> str:
    return hashlib.sha256(f"made {number}".encode()).hexdigest()


def _written(place: Workspace, run: Run, told: str, number: int, rng: random.Random) -> tuple[str, str, str]:
    """A run's manifest under an id of its own: (id, what its numbers are kept by, these)."""
    digest = _digest(number)
    folder = place.store.runs_folder / digest[:ID_OF_RUN]
    folder.mkdir()
    source = run.written.sources[0]
    written = replace(
        run.written,
        run_id=folder.name,
        name=f"{'-'.join(rng.sample(small.WORDS, 3))}-{number}",
        created_ns=small.START_NS + number * 300 * small.S,
        sources=[{**source, "sha256": digest}],
        tables={},
        files={},
    )
    (folder / MANIFEST).write_text(written.to_json())
    other = Run(folder)
    other.__dict__["written"] = written
    return folder.name, key_of(other, Extras()), told.replace(source["sha256"][:ID_LENGTH], digest[:ID_LENGTH])


@contextlib.contextmanager
def _on_postgres(store: Path, folder: Path) -> Iterator[str]:
    """A file with the address of a registry on a PostgreSQL of its own, which holds what the store's holds."""
    from runs.postgres.moving import to_server
    from runs.postgres.server import server
    from tests.postgres import begun, ended

    cluster = begun()
    if cluster is None:
        raise SystemExit("no PostgreSQL here")
    with contextlib.ExitStack() as stack:
        stack.callback(ended, cluster)
        url, began = cluster.url(cluster.schema()), time.monotonic()
        to_server(store / "registry.db", server(url))
        cluster.sql("analyze")
        (store / "registry.db").rename(aside := store / "registry.db.aside")  # or a server asks which of them it is
        stack.callback(aside.rename, store / "registry.db")
        stack.callback((store / NOTE).unlink, missing_ok=True)  # which a server wrote that found the address
        _opened.clear()
        print(f"copied the registry to PostgreSQL in {time.monotonic() - began:.0f} s", flush=True)
        (file := folder / "registry at").write_text(url)
        file.chmod(0o600)
        yield str(file)


def measure(store: Path, times: int, steady: bool, server: bool, fleet: bool) -> Iterator[str]:
    """What is measured, a line each."""
    load, place = os.getloadavg(), workspace(str(store))
    began, cpu_s = time.perf_counter(), time.process_time()
    from app.library.rows import library

    whole = library(place, limit=PAGE, numbers="kept")
    took = f"{time.perf_counter() - began:.1f} s, {time.process_time() - cpu_s:.1f} s of processor time"
    yield f"{whole.total + whole.archived:,} runs; the first list of a process took {took}"
    yield f"memory of this process {small._resident(os.getpid()) / 2**20:,.0f} MiB"
    if fleet:
        yield f"the first fleet took {_first_fleet(place)}"
        yield f"memory of this process {small._resident(os.getpid()) / 2**20:,.0f} MiB"
    rng, a_run = random.Random(2), whole.rows[0].run_id
    for what, acts in _acts(place, fleet).items():
        yield from _measured(what, acts, times, None if steady else lambda: _tag_elsewhere(store, a_run, rng))
    yield f"memory of this process {small._resident(os.getpid()) / 2**20:,.0f} MiB"
    if server:
        yield from _over_http(store, times, None if steady else lambda: _tag_elsewhere(store, a_run, rng), fleet)
    yield f"load {load[0]:.1f} before, {os.getloadavg()[0]:.1f} after, {os.cpu_count()} cores"


def _first_fleet(place: Workspace) -> str:
    from app.fleet.asking import ask_fleet

    began, cpu_s = time.perf_counter(), time.process_time()
    told = ask_fleet(place, {}, "kept")
    took = f"{time.perf_counter() - began:.1f} s, {time.process_time() - cpu_s:.1f} s of processor time"
    return f"{took}: {told.total.runs:,} runs, {told.total.chip_s:,.3f} chip-seconds"


def measure_index(count: int, times: int) -> Iterator[str]:
    """Of an index that is filled with so many rows, each question after a row that changed."""
    load, rng, index = os.getloadavg(), random.Random(1), Index()
    began, cpu_s = time.perf_counter(), time.process_time()
    for number in range(count):
        index.put(_row(number, rng))
    took = f"{time.perf_counter() - began:.0f} s, {time.process_time() - cpu_s:.0f} s of processor time"
    yield f"{count:,} rows; filling the index took {took}; {small._resident(os.getpid()) / 2**20:,.0f} MiB"
    hidden = frozenset(index.ids[:: max(count // 1000, 1)])

    def asked(text: str = "", sort: str = NEWEST, at: int = 0) -> Callable[[], Any]:
        def ask() -> None:
            seen, query = Seen(index, hidden), read(text)
            view = seen.view(archived=False, demo=True)
            found = seen.found(query, view, named(sort.removeprefix("-")), sort, NEWEST)
            index.ids_of(found[at : at + PAGE])
            assert view.facets is not None

        return ask

    acts = {
        "list": [asked()],
        "list, further pages": [asked(at=PAGE * n) for n in (1, 20, 500)],
        "list, sorted": [asked(sort=sort) for sort in SORTS],
        **{f"search {text}": [asked(text)] for text in SEARCHES},
    }
    for act in acts["list, sorted"]:
        act()  # texts are put in order once
    for what, some in acts.items():
        yield from _measured(what, some, times, lambda: index.put(_row(rng.randrange(count), rng)))
    yield f"{small._resident(os.getpid()) / 2**20:,.0f} MiB of memory"
    yield f"load {load[0]:.1f} before, {os.getloadavg()[0]:.1f} after, {os.cpu_count()} cores"


def _row(number: int, rng: random.Random) -> Row:
    run_id, chip = _digest(number), rng.choice(small.CHIPS)
    figures = {name: rng.random() for name in ("mfu", "goodput", "step_time", "loss", "hours")}
    return Row(
        run_id=run_id,
        address=run_id,
        name=f"{'-'.join(rng.sample(small.WORDS, 3))}-{number}",
        kind="training",
        created_ns=small.START_NS + number * 300 * small.S,
        chip=chip[0],
        chips=chip[2],
        model=rng.choice(small.MODELS),
        project=rng.choice(("", "", *small.PROJECTS)),
        tags=rng.choice(({}, {}, {}, {"prod": ""}, {"team": "research", "old": ""})),
        starred=rng.random() < 0.05,
        archived=rng.random() < 0.05,
        numbers={**figures, "cost": 1000 * rng.random()},
        largest_loss=f"Other, {rng.random():.1%}",
    )


def _acts(place: Workspace, fleet: bool) -> dict[str, list[Callable[[], Any]]]:
    from app.fleet.asking import ask_fleet
    from app.history.choices import choices
    from app.history.told import Asked, tell
    from app.library.rows import library

    def listed(**more: Any) -> Callable[[], Any]:
        return lambda: library(place, **{"limit": PAGE, "numbers": "kept", **more})

    def history() -> None:
        with contextlib.suppress(ChipledgerError):
            tell(Asked(metric="mfu", search="name:pattern"), place)

    found = {
        "list": [listed()],
        "list, further pages": [listed(offset=PAGE * n) for n in (1, 20, 500, 10_000)],
        "list, sorted": [listed(sort=sort) for sort in SORTS],
        **{f"search {text}": [listed(query=text)] for text in SEARCHES},
        "history of a metric of 12 runs": [history],
        "history, what can be asked": [lambda: choices(place)],
    }
    asked = ({}, {"by": "model", "trend": "month"}, {"search": "tag:prod"})
    fleets = {
        f"fleet {given or 'by team, every week'}": [lambda g=given: ask_fleet(place, g, "kept")] for given in asked
    }
    return found | (fleets if fleet else {})


def _measured(what: str, acts: list[Callable[[], Any]], times: int, change: Callable[[], None] | None) -> Iterator[str]:
    wall, cpu = list[float](), list[float]()
    for _ in range(times):
        for act in acts:
            if change:
                change()
            began, cpu_s = time.perf_counter(), time.process_time()
            act()
            wall.append(time.perf_counter() - began)
            cpu.append(time.process_time() - cpu_s)
    spent = f"processor {1e3 * statistics.median(cpu):,.0f} ms, 95th {1e3 * _late(cpu):,.0f} ms"
    yield f"  {what:42} {_told(wall)}, {spent}"


def _late(took: list[float]) -> float:
    return sorted(took)[min(int(0.95 * len(took)), len(took) - 1)]


def _told(took: list[float]) -> str:
    return f"median {1e3 * statistics.median(took):7,.0f} ms, 95th {1e3 * _late(took):7,.0f} ms"


def _tag_elsewhere(store: Path, run_id: str, rng: random.Random) -> None:
    from runs.registry import Registry

    Registry(workspace(str(store)).registry.at).tag(run_id, "n", str(rng.random()))


def _over_http(store: Path, times: int, change: Callable[[], None] | None, fleet: bool) -> Iterator[str]:
    from tests.app.serving import get

    waits = small.Waits()
    more = {FILE_VARIABLE: os.environ[FILE_VARIABLE]} if FILE_VARIABLE in os.environ else {}
    with small.serving(store, waits, env=more) as (address, process):
        first = f"{address}/api/runs?limit={PAGE}"
        waits.time("cold: first list (API)", lambda: urlopen(first, timeout=small.COLD_S).read())
        yield f"the server took {_cpu_s(process):.1f} s of processor time until then"
        if fleet:
            before = _cpu_s(process)
            cold = f"{address}/api/fleet?by=team&every=week"
            waits.time("cold: first fleet (API)", lambda: urlopen(cold, timeout=small.COLD_S).read())
            yield f"and {_cpu_s(process) - before:.1f} s for the first fleet"
        paths = {
            "list (API)": [f"/api/runs?limit={PAGE}&offset={PAGE * n}" for n in (0, 1, 100, 10_000)],
            "search (API)": [f"/api/runs?limit={PAGE}&q={quote(text)}" for text in SEARCHES],
            "sort (API)": [f"/api/runs?limit={PAGE}&sort={sort}" for sort in SORTS],
            **({"fleet (API)": ["/api/fleet?by=team&every=week"]} if fleet else {}),
        }
        for what, asked in paths.items():
            before = _cpu_s(process)
            for _ in range(times):
                for path in asked:
                    if change:
                        change()
                    status = waits.time(f"server: {what}", lambda p=path: get(f"{address}{p}"))[0]
                    assert status == 200, (status, path)
            took = (_cpu_s(process) - before) / (times * len(asked))
            yield f"server: {what:26} {1e3 * took:,.0f} ms of processor time each, with what it does beside"
        yield from waits.lines()
        yield f"memory of the server {small._resident(process) / 2**20:,.0f} MiB"


def _cpu_s(pid: int) -> float:
    """Seconds of processor time that a process took."""
    told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main(sys.argv[1:])
