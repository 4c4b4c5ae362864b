"""The library itself, asked about entries in memory: what our own rules of its name are held against."""

import datetime as real
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def installed() -> bool:
    try:
        from ml_goodput_measurement.src import goodput_elastic  # noqa: F401
    except ImportError:
        return False
    return True


class Answers:
    """Entries (time of writing, payload), read the way the library reads Cloud Logging."""

    def __init__(self, entries: list[tuple[real.datetime, dict]]):
        self._entries = entries

    def read_cloud_logging_entries(self, start_time: Any = None, end_time: Any = None, last_entry_info: Any = None):
        part = [
            (at, p)
            for at, p in self._entries
            if (start_time is None or at > start_time) and (end_time is None or at <= end_time)
        ]
        return [dict(p) for _, p in part], (part[-1][0], "id") if part else (None, None)


class Library:
    """The elastic calculator at a moment `now`: it gives the plain one's numbers, and the elastic buckets."""

    def __init__(self, entries: list[tuple[real.datetime, dict]], now: real.datetime, folder: Path):
        from ml_goodput_measurement.src import goodput_elastic

        self._now, self._entries, self._folder, self._count = now, entries, folder, 0
        self._class = goodput_elastic.ElasticGoodputCalculator

    def _calculator(self):
        self._count += 1
        return self._class(
            job_name=f"made{self._count}",
            logger_name="x",
            cloud_logger=Answers(self._entries),
            cache_dir=str(self._folder),
        )

    def cumulative(self) -> tuple[float, dict, dict]:
        """(share in %, badput in %, details in s)."""
        asked = self._calculator()
        with at(self._now):
            share, badput, _ = asked.get_job_goodput(include_badput_breakdown=True)
            return share, badput, asked.get_job_goodput_details()

    def window(self, start: real.datetime, end: real.datetime) -> tuple:
        with at(self._now):
            return self._calculator().get_job_goodput_interval(start, end)

    def slices(self, start: real.datetime, end: real.datetime) -> dict:
        with at(self._now):
            return self._calculator().get_interval_metric_details(start, end)

    def excluding(self, times: list[tuple[real.datetime, real.datetime]]) -> tuple[tuple, dict]:
        asked = self._calculator()
        with at(self._now):
            return asked.get_job_goodput_with_exclusions(times, True), asked.get_job_goodput_details()


@contextmanager
def at(now: real.datetime):
    """The library's clock stands still."""
    from ml_goodput_measurement.src import goodput, goodput_exclusion

    class Still(real.datetime):
        @classmethod
        def now(cls, tz: Any = None):
            return now

    shim = SimpleNamespace(datetime=Still, timezone=real.timezone, timedelta=real.timedelta)
    modules = (goodput, goodput_exclusion)
    for module in modules:
        module.datetime = shim
    try:
        yield
    finally:
        for module in modules:
            module.datetime = real
