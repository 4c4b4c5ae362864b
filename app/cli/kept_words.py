"""What is made of the code of all commands, kept in a file of the user's cache: to make it anew, all are imported."""

import contextlib
import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]
_SOURCES = ("app", "analyzers", "catalog", "errors")  # where words come from


def kept_or_made(name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `make` makes of the code: as kept under this name where the code is the same, else made anew."""
    kept, stamp = _kept_in(name), _stamp()
    try:
        found = json.loads(kept.read_bytes())
        if found["stamp"] == stamp:
            return found
    except (OSError, ValueError, TypeError, KeyError):
        pass
    return _keep(kept, {"stamp": stamp, **make()})


def _keep(path: Path, words: dict[str, Any]) -> dict[str, Any]:
    with contextlib.suppress(OSError):  # then they are made anew each time
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(words), encoding="utf-8")
        part.replace(path)
    return words


def _kept_in(name: str) -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(cache) / "chipledger" / f"{name}-{zlib.crc32(str(_ROOT).encode()):08x}.json"


def _stamp() -> list[int]:
    """What tells that files which words come from are others: how many, how large, and when the last was written."""
    number = size = newest = 0
    waiting = [os.path.join(_ROOT, name) for name in _SOURCES]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.name.endswith((".py", ".json")):
                    told = entry.stat()
                    number, size, newest = number + 1, size + told.st_size, max(newest, told.st_mtime_ns)
                elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir():
                    waiting.append(entry.path)
    return [number, size, newest]
