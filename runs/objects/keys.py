"""Under which keys the objects of a run lie.

    runs/<run_id>/run.json                its manifest, created where none was: of two writers of a run one creates it
    runs/<run_id>/<mark>/run.json         the same, of this writing of the run
    runs/<run_id>/<mark>/tables/...       its files, as the manifest lists them

`mark` follows from the manifest's bytes. Nothing that was written is ever written over: who reads a run anew writes
beside it.
"""

import hashlib
import re

from runs.run import MANIFEST

ABOUT = "chipledger.json"  # says that a store lies here, and which
RUNS = "runs"
MARK = re.compile(r"[0-9a-f]{16}")


def marked(manifest: bytes) -> str:
    """Which writing of a run a manifest is of."""
    return hashlib.sha256(manifest).hexdigest()[:16]


def pointer_key(run_id: str) -> str:
    return f"{RUNS}/{run_id}/{MANIFEST}"


def manifest_key(run_id: str, mark: str) -> str:
    return f"{below(run_id, mark)}/{MANIFEST}"


def file_key(run_id: str, mark: str, relative: str) -> str:
    return f"{below(run_id, mark)}/{relative}"


def below(run_id: str, mark: str) -> str:
    return f"{RUNS}/{run_id}/{mark}"
