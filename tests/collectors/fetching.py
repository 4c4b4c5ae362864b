"""Fetching from a logging server of this machine, with little patience, and what was kept."""

import json
import time
from pathlib import Path

from collectors.cloud_logging.fetch import Fetcher
from collectors.cloud_logging.pace import Limiter, Patience
from collectors.cloud_logging.query import Wanted
from collectors.cloud_logging.service import Door
from collectors.cloud_logging.spool import Spool
from tests.collectors.job_entries import PROJECT, S
from tests.collectors.logging_server import LoggingServer

DAY = 86400 * S
NOW = time.time_ns()
QUICK = Patience(tries=8, base_s=0.01, most_s=0.05)


def fetcher(server: LoggingServer, folder: Path, *, name="night-run", since=NOW - 30 * DAY, **more) -> Fetcher:
    door = {"limiter": Limiter(1000, 1.0), "patience": QUICK, **more}
    made = Fetcher(Door(PROJECT, server.address, **door).open(), Wanted(PROJECT, name), Spool(folder, name))
    made.begin(since)
    return made


def kept(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "entries.jsonl").read_text().splitlines()]


def same(got: list[dict], wanted: list[dict]) -> bool:
    """Whether these are the same entries, each exactly once, whatever their order."""

    def order(entries):
        return sorted(json.dumps(e, sort_keys=True) for e in entries)

    return order(got) == order(wanted)
