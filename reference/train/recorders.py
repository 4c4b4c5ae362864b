"""What a worker writes down: the truth of what was done to it, the goodput entries, and its profiles."""

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import jax
import orbax.checkpoint as ocp


class _JsonLines:
    """Appends JSON lines with one unbuffered write each: SIGKILL loses none."""

    def __init__(self, path: Path):
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def append(self, record: dict) -> None:
        os.write(self._fd, (json.dumps(record) + "\n").encode())


class EventLog(_JsonLines):
    """The worker's own record, which no analyzer reads: `{"event", "ns", ...}` a line, `ns` since the epoch."""

    def write(self, event: str, **fields) -> None:
        self.append({"event": event, "ns": time.time_ns(), **fields})


class GoodputLog(_JsonLines):
    """Goodput entries as a Cloud Logging export has them, with the payload keys of the ml-goodput library.

    `timestamp` and `receiveTimestamp` are both the time of writing: no server stands between.
    """

    def __init__(self, path: Path, job_name: str, attempt: int):
        super().__init__(path)
        self._job_name, self._attempt, self._entries = job_name, attempt, 0

    def entry(self, **payload) -> None:
        written = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        self.append(
            {
                "logName": f"projects/local/logs/goodput_{self._job_name}",
                "resource": {"type": "global", "labels": {"project_id": "local"}},
                "timestamp": written,
                "receiveTimestamp": written,
                "severity": "INFO",
                "insertId": f"{self._attempt:02d}{self._entries:08d}",
                "jsonPayload": {"job_name": self._job_name, **payload},
            }
        )
        self._entries += 1

    def now(self, key: str, **payload) -> None:
        """An entry whose `key` is the time of day, in seconds since the epoch."""
        self.entry(**payload, **{key: time.time()})


class Silence:
    """The goodput log of the processes that write none: only process 0 does."""

    def entry(self, **payload) -> None:
        pass

    def now(self, key: str, **payload) -> None:
        pass


class OrbaxLogger(ocp.logging.AbstractLogger):
    """Hands Orbax's own save and restore statistics to the goodput log.

    Orbax insists on an absolute directory; the entry names it relative to the job's own folder instead.
    """

    def __init__(self, goodput: GoodputLog | Silence):
        self._goodput = goodput

    def log_entry(self, msg: dict, *args, **kwargs) -> None:
        self._goodput.entry(**{**msg, "directory": os.path.relpath(msg["directory"])})


class ProfileWindows:
    """Profiles of this process, one folder per window: `<root>/window_<w>/process_<p>/`. `frames`: with the calls of
    Python, as JAX does unless told otherwise."""

    def __init__(self, root: Path, process: int, events: EventLog, *, frames: bool = False):
        self._root, self._process, self._events = root, process, events
        self._window, self._open = 0, False
        self._options = jax.profiler.ProfileOptions()
        self._options.python_tracer_level = int(frames)
        self._options.host_tracer_level = 1

    def start(self, step: int) -> None:
        folder = self._root / f"window_{self._window}" / f"process_{self._process}"
        jax.profiler.start_trace(folder, profiler_options=self._options)
        self._events.write("profile_start", window=self._window, after_step=step)
        self._open = True

    def stop(self, step: int) -> None:
        if self._open:
            self._events.write("profile_stop", window=self._window, after_step=step)
            jax.profiler.stop_trace()
            self._events.write("profile_exported", window=self._window)
            self._window, self._open = self._window + 1, False
