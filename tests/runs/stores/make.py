"""Makes a small store with the program of an earlier commit, as it lies in a worktree of that commit:

    git worktree add /tmp/earlier COMMIT
    cd /tmp/earlier && python THIS_FILE STORE INPUTS

What an earlier program could not do is passed over. Paths of this machine are taken out of what it kept.
"""

import contextlib
import sqlite3
import sys
from pathlib import Path

sys.path.insert(0, ".")


def main(root: Path, inputs: Path) -> None:
    from collectors.ingest import ingest
    from runs.registry import Registry
    from runs.store import Store

    store = Store(root)
    registry = Registry(root / "registry.db")
    log = ingest([inputs / "train.log"], store, name="a log", chip="v5p", chips=32, tags={"team": "first"})
    both = ingest([inputs / "goodput.jsonl", inputs / "train.log"], store, name="both", chip="v5p")
    registry.tag(log.run_id, "kept", "yes")
    registry.note(log.run_id, "a remark of then")
    registry.price(both.run_id, 4.2)
    with contextlib.suppress(ImportError, TypeError):
        from runs.promise_book import Promise, PromiseBook

        said = {"low_share": 0.01, "likely_share": 0.02, "high_share": 0.03, "draws": {"idle": 5.0}}
        PromiseBook(registry.path).keep(Promise(run_id=log.run_id, job="a log", cause="c", title="then", **said))
    with contextlib.suppress(ImportError, AttributeError):
        from runs.shelf import Shelf

        registry.rename(both.run_id, "both, renamed", "ann")
        registry.declare(both.run_id, {"seq": 4096}, "ann")
        Shelf(registry.path).star([log.run_id])
        Shelf(registry.path).group([both.run_id], "project", "experiment")
        third = ingest([inputs / "goodput.jsonl"], store, name="in the bin")
        store.bin.put(third.run_id)
        Shelf(registry.path).note_binned(third.run_id, "in the bin", "ann")
    with contextlib.suppress(ImportError):
        from runs.baseline_book import BaselineBook

        BaselineBook(registry.path).set("main", log.run_id, "a log", who="ann", why="then")
    tidy(root)


def tidy(root: Path) -> None:
    """Without paths of this machine, and as one file."""
    with sqlite3.connect(root / "registry.db") as db:
        with contextlib.suppress(sqlite3.Error):
            db.execute("update files set path = '/data/' || substr(sha256, 1, 8)")
        db.commit()
        db.execute("pragma journal_mode = delete")
        db.execute("pragma page_size = 512")
        db.execute("vacuum")
    db.close()
    for left in ("partial", "uploads", "derived", "partial.lock", "bin.lock"):
        path = root / left
        with contextlib.suppress(OSError):
            path.rmdir() if path.is_dir() else path.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
