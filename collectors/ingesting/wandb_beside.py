"""Files in the folder of a run of W&B that its own file, `run-<id>.wandb`, tells in full, and more:

    files/output.log            the console, without its times
    files/wandb-summary.json    the last values; where it was copied beside the run's file, too
    logs/debug*.log             what W&B's client says of itself; linked to from the folder in which all runs lie, too
Of several runs in one folder nothing tells which a file is of: it is read.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

REASON = "left out: the run of W&B beside it tells the same"
_RUN_FOLDER = re.compile(r"(?:offline-)?run-\d{8}_\d{6}-\w+")
_OF_CLIENT = re.compile(r"debug(?:-internal|-core|-cli\.\w+)?\.log")


def told_again(jobs: Sequence[Any]) -> dict[str, str]:
    """{name: reason} of the files that a run of W&B among them tells. A job has a `source`, a `collector`, a `size`."""
    runs = Counter(_folder(job.source.name) for job in jobs if _reader(job) == "wandb_log" and job.size)
    if not runs:
        return {}
    return {job.source.name: REASON for job in jobs if _told(job.source.name, _reader(job), runs)}


def _told(full_name: str, reader: str, runs: Mapping[str, int]) -> bool:
    path = PurePath(full_name)
    above, within, name = str(path.parent.parent), path.parent.name, path.name.removesuffix(".gz")
    if _OF_CLIENT.fullmatch(name):
        beside = (at for at in map(PurePath, runs) if str(at.parent) == _folder(full_name))
        return runs.get(above) == 1 if within == "logs" else any(_RUN_FOLDER.fullmatch(at.name) for at in beside)
    of_files = within == "files" and runs.get(above) == 1
    if name == "output.log":
        return of_files
    return name == "wandb-summary.json" and reader == "wandb_files" and (of_files or runs.get(_folder(full_name)) == 1)


def _reader(job: Any) -> str:
    return getattr(job.collector, "NAME", "")


def _folder(name: str) -> str:
    return str(PurePath(name).parent)
