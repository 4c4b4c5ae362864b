"""What a store holds, read by brute force: manifests as JSON, the registry as SQL, folders as lists of names.

Nothing of the product is asked, so that it cannot be wrong in the same way.
"""

import hashlib
import json
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

State = Mapping[str, Any]  # what is to be found under each key: "run:SHA256", "baseline:NAME", "upload:ID/NAME"
LIBRARY, BIN = "library", "bin"
_ID = re.compile(r"[0-9a-f]{32}")
YOUNG_S = 120.0


@dataclass
class Found:
    """`ids`: the run of each input. `problems`: what may never be."""

    state: dict[str, Any] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def look(root: Path) -> Found:
    found = Found()
    with sqlite3.connect(f"file:{root / 'registry.db'}?mode=ro", uri=True) as db:
        whole = [row for (row,) in db.execute("pragma integrity_check")]
        if whole != ["ok"]:
            found.problems.append(f"the registry is not whole: {whole[:3]}")
        _runs(root, db, found)
        _baselines(db, found)
    db.close()
    for path in (root / "live").glob("*/live.json"):
        found.state[f"live:{path.parent.name}"] = json.loads(path.read_text())["entries"]
    for path in (root / "uploads").glob("*/files/*"):
        found.state[f"upload:{path.parts[-3]}/{path.name}"] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def _runs(root: Path, db: sqlite3.Connection, found: Found) -> None:
    seen: Counter[str] = Counter()
    for place, folder in ((LIBRARY, "runs"), (BIN, "bin")):
        for path in (root / folder).iterdir():
            try:
                told = json.loads((path / "run.json").read_text())
            except (OSError, ValueError) as e:
                found.problems.append(f"half a run in {folder}/: {path.name} ({type(e).__name__})")
                continue
            key = f"run:{told['sources'][0]['sha256']}"
            seen[key] += 1
            found.ids[key] = path.name
            found.state[key] = _said(db, path.name, told["name"]) | {"at": place}
    found.problems += [f"{n} runs of one input: {key[:20]}" for key, n in seen.items() if n > 1]


def _said(db: sqlite3.Connection, run_id: str, stored: str) -> dict[str, Any]:
    def rows(asked: str) -> list[tuple[Any, ...]]:
        return db.execute(asked, (run_id,)).fetchall()

    (shelved,) = rows("select starred, archived, project, experiment from shelved where run_id = ?") or [(0, 0, "", "")]
    names = rows("select name from names where run_id = ?")
    return {
        "name": names[0][0] if names else stored,
        "renames": len(rows("select id from renames where run_id = ?")),
        "tags": dict(rows("select key, value from tags where run_id = ?")),
        "notes": sorted(text for (text,) in rows("select text from notes where run_id = ?")),
        "starred": bool(shelved[0]),
        "archived": bool(shelved[1]),
        "group": list(shelved[2:]),
        "facts": {k: json.loads(v) for k, v in rows("select key, value from declared where run_id = ?")},
    }


def _baselines(db: sqlite3.Connection, found: Found) -> None:
    if not db.execute("select 1 from sqlite_master where name = 'baseline_moves'").fetchone():
        return
    for name, run_id, moves in db.execute(
        "select name, (select run_id from baseline_moves b where b.name = a.name order by id desc limit 1), count(*) "
        "from baseline_moves a group by name"
    ):
        found.state[f"baseline:{name}"] = {"run_id": run_id, "moves": moves}


def leaks(root: Path, served: bool = False) -> list[str]:
    """What lies there that belongs to nothing, once the store was opened again. `served`: by a server, which alone
    looks after uploads."""
    kept = {p.name for p in (root / "runs").iterdir()}
    found = [f"partial/{p.name}" for p in (root / "partial").iterdir()]
    found += [f"derived/{p.name}" for p in _in(root / "derived") if p.name not in kept]
    found += [f"live/{p.parent.name}/{p.name}" for p in (root / "live").glob("*/.*")]
    found += [f"{p.relative_to(root)}" for p in (root / "bin").iterdir() if not (p / "run.json").is_file()]
    if served:
        found += _upload_leaks(root / "uploads")
        found += [f"serving/{p.name}" for p in _in(root / "serving")][1:]  # but for the server that looks
    return found


def _upload_leaks(folder: Path) -> list[str]:
    found = [f"uploads/{p.relative_to(folder)}" for p in folder.glob("*/*.part")]
    for path in folder.iterdir():
        name = path.name.removesuffix(".runs")
        other = path.with_name(name if path.name != name else f"{name}.runs")
        young = path.is_file() and time.time() - path.stat().st_mtime < YOUNG_S  # a server may begin it just now
        if not _ID.fullmatch(name) or not (other.exists() or young):
            found.append(f"uploads/{path.name}")
    return found


def _in(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []
