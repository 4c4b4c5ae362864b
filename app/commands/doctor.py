"""`chipledger doctor`: what is installed, what is missing, and what that disables."""

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import shutil
from dataclasses import dataclass
from typing import Any

from app.commands.base import print_json, print_table
from app.workspace import store_path
from errors import ChipledgerError

NAME = "doctor"
HELP = "what is installed, what is missing, and what that disables"
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
        ("streamlit", "streamlit"), ("plotly", "plotly"), ("pandas", "pandas"), ("numpy", "numpy"),
        ("pyarrow", "pyarrow"), ("duckdb", "duckdb"), ("numba", "numba"), ("protobuf", "google.protobuf"),
        ("google-cloud-logging", "google.cloud.logging"),
    )
)  # fmt: skip
OPTIONAL: tuple[Package, ...] = (
    Package("jax", "jax", "the reference runs cannot be recorded anew; the bundled ones still open"),
    Package("orbax-checkpoint", "orbax.checkpoint", "the reference runs cannot be recorded anew"),
    Package("libtpu", "libtpu", "models cannot be compiled for TPUs (chipledger[tpu] brings it); bundled ones open"),
    Package("xprof", "xprof", "XProf's own tools do not open from a run; every page of ours answers without them"),
    Package("playwright", "playwright", "the browser tests cannot run"),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")


def run(args: argparse.Namespace) -> None:
    found = findings(args.store)
    if args.json:
        print_json(found)
        return
    print_table(
        ("what", "found", "without it"),
        [
            ("chipledger", found["chipledger"], ""),
            ("python", found["python"], ""),
            *((p["name"], p["version"] or "missing", "" if p["version"] else p["without"]) for p in found["packages"]),
            ("chromium", found["chromium"] or "missing",
             "" if found["chromium"] else "the browser tests cannot run; install the package chromium"),
            ("cloud logging", found["cloud_logging"]["credentials"] or "no credentials here",
             _without_login(found["cloud_logging"])),
            ("store", found["store"]["path"], found["store"]["problem"] or f"{found['store']['runs']} runs, writable"),
        ],
    )  # fmt: skip


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
    from runs.store import Store

    path = store_path(given)
    nearest = next(p for p in (path, *path.parents) if p.exists())
    problem, runs = "", 0
    if not nearest.is_dir():
        problem = f"{nearest} is no folder"
    elif not os.access(nearest, os.W_OK | os.X_OK):
        problem = f"{nearest} cannot be written"
    elif path.exists():
        try:
            runs = len(Store(path).ids())
        except ChipledgerError as e:
            problem = str(e)
    return {"path": str(path), "writable": not problem, "problem": problem or None, "runs": runs}
