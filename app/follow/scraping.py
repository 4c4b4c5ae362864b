"""Polling a serving engine's `/metrics` into a live run: each answer is kept, and a silence is a gap with a note.

    <store>/live/<name>/metrics.prom.gz   each answer below `# scraped_at TIME`, each silence as `# no_answer TIME why`
    <store>/live/<name>/cursor.json       how much of it is whole; written anew after each answer

The file is one gzip member an answer: text that repeats itself shrinks to a tenth. A kill leaves half a member behind
what the cursor knows, which the next start cuts off. Where the cursor is gone, damaged, or of another version, it is
made anew of the answers. Snapshots, pointer and retirement are those of
`app/follow/watching.py`.
"""

import contextlib
import gzip
import http.client
import ipaddress
import json
import os
import re
import threading
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from app.follow.watching import OnPoll, Tell, Watcher
from app.workspace import Workspace
from collectors.ingesting.gather import Cancelled
from collectors.reading.exposition import NO_ANSWER, SCRAPED_AT
from collectors.serving.in_turn import returns
from errors import InputError, QuestionError
from errors.numbers import ANY
from runs.durable import write_whole, writing
from runs.live import TAG, Live
from runs.run import Run

SPOOL, CURSOR = "metrics.prom.gz", "cursor.json"
MOST_BYTES = 64 << 20  # of one answer
MOST_SPOOL_BYTES = 1 << 30
TIMEOUT_S = 10.0
SNAPSHOT_EVERY_S = 15.0  # a page need not be newer, and each snapshot reads all answers again
_SAMPLE = re.compile(rb"^[a-zA-Z_:][\w:.]*(?:\{[^\n]*\})?[ \t]+[-+\dNI.]", re.MULTILINE)
MOST_LEFT = 1000  # processes that are remembered
_BEGAN = re.compile(rb"^process_start_time_seconds(?:\{[^\n]*\})?[ \t]+(\d[\d.eE+]*)", re.MULTILINE)
_REPEATED = re.compile(rb"^# (?:HELP|TYPE|EOF)[^\n]*\n?", re.MULTILINE)
_FAULTS = (OSError, http.client.HTTPException, ValueError)


def address(text: str) -> str:
    """The address to ask: `localhost:8000` becomes `http://localhost:8000/metrics`. Raises InputError for what is none.

    Credentials do not belong in it: it is kept with the run.
    """
    url = text.strip() if "://" in text else f"http://{text.strip()}"
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good or re.search(r"[\s\x00-\x1f]", url):
        raise InputError(f"--metrics {text[:80]!r} is no address", expected="such as http://127.0.0.1:8000/metrics")
    if parts.username or parts.password:
        raise InputError(
            "--metrics with a user or a password in it",
            expected="an address without credentials",
            advice="Ask a proxy that adds them.",
        )
    return parts._replace(path=parts.path if parts.path not in ("", "/") else "/metrics", fragment="").geturl()


def host(url: str) -> str:
    """What a live run is named after where no name is given: host and port."""
    return urlsplit(url).netloc.replace(":", "-").strip("[]")


def scrape(url: str, timeout_s: float = TIMEOUT_S) -> bytes:
    """One answer. Raises InputError, in a few words, where there is none in time or it holds no metrics."""
    asked = urllib.request.Request(url, headers={"Accept": "text/plain;version=0.0.4", "User-Agent": "chipledger"})
    proxies = urllib.request.ProxyHandler({} if _loopback(url) else None)
    deadline = time.monotonic() + timeout_s
    try:
        with urllib.request.build_opener(proxies).open(asked, timeout=timeout_s) as answer:
            body = bytearray()
            while piece := answer.read1(1 << 16):
                body += piece
                if len(body) > MOST_BYTES:
                    raise InputError(f"an answer of more than {MOST_BYTES:,} bytes", where=url)
                if time.monotonic() > deadline:
                    raise TimeoutError("it takes too long")
            if answer.length:  # of what it said that it would send
                raise ConnectionError("the answer is cut off")
    except urllib.error.HTTPError as e:
        e.close()
        raise InputError(f"answered with {e.code} {e.reason}", where=url, advice="Is the path right?") from e
    except _FAULTS as e:
        reason = getattr(e, "reason", None) or e
        said = reason.strerror if isinstance(reason, OSError) and reason.strerror else str(reason) or type(e).__name__
        raise InputError(f"does not answer ({said})", where=url, advice="It is asked again.") from e
    if not _SAMPLE.search(body):
        raise InputError(
            "answered with something else than metrics",
            where=url,
            expected="Prometheus text: vLLM and SGLang have it at /metrics",
            advice="SGLang needs --enable-metrics.",
        )
    return bytes(body)


def _loopback(url: str) -> bool:
    name = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


@dataclass
class Cursor:
    """What the spool holds: whole bytes, answers, the newest time, and what was unusual: gaps, restarts, and how many
    servers answer in turn where one came back after another (see `collectors/serving/in_turn.py`)."""

    bytes: int = 0
    entries: int = 0
    newest: int | None = None
    counts: dict[str, int] = field(default_factory=dict)
    began: str = ""  # process_start_time_seconds of the newest answer
    left: list[str] = field(default_factory=list)  # of processes that answered before it
    silent: bool = False  # the newest entry is a gap

    @property
    def active(self) -> int | None:
        """When the server last answered."""
        return self.newest

    @property
    def heard(self) -> int | None:
        return self.newest

    def answered(self, began: str, at_ns: int) -> None:
        if self.began and began and began != self.began:
            self._another(began)
        self.began, self.silent = began or self.began, False
        self.entries += 1
        self.newest = at_ns

    def _another(self, began: str) -> None:
        """Another process answers: one that started again, or of several in turn the next."""
        if began in self.left and returns(map(float, (began, self.began, began))):
            self.counts.pop("restarts", None)
            self.counts["servers in turn"] = len({*self.left, self.began})
        elif "servers in turn" not in self.counts:
            self._count("restarts")
        elif began not in self.left:
            self._count("servers in turn")
        self.left = [*(one for one in self.left if one != self.began), self.began][-MOST_LEFT:]

    def silenced(self) -> None:
        self.silent = True
        self._count("gaps")

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1


class Spool:
    """A server's answers on disk, written by one process alone. Raises InputError where they cannot be."""

    def __init__(self, folder: Path):
        self.path, self._cursor_path = folder / SPOOL, folder / CURSOR
        with writing(self.path):
            folder.mkdir(parents=True, exist_ok=True)
            self.cursor = self._read_cursor()
            size = self.path.stat().st_size if self.path.exists() else 0
            if size < self.cursor.bytes:
                raise InputError(
                    f"it is shorter than when it was written ({size:,} of {self.cursor.bytes:,} bytes)",
                    where=str(self.path),
                    advice=f"Remove the folder {folder.name} to begin anew.",
                )
            if size > self.cursor.bytes:  # half an answer, of a process that was killed
                os.truncate(self.path, self.cursor.bytes)

    def answer(self, body: bytes, at_ns: int) -> None:
        """Keep an answer. What it says of the metrics themselves (HELP, TYPE) is kept of the first one alone."""
        text = body if not self.cursor.entries else _REPEATED.sub(b"", body)
        (following := self._following()).answered(_began(body), at_ns)
        self._append(f"{SCRAPED_AT}{_stamp(at_ns)}\n".encode() + text.rstrip(b"\n") + b"\n", following)

    def silence(self, at_ns: int, why: str) -> None:
        """Note that there was no answer; a silence that lasts is one gap."""
        if not self.cursor.silent:
            (following := self._following()).silenced()
            self._append(f"{NO_ANSWER}{_stamp(at_ns)} {' '.join(why.split())[:200]}\n".encode(), following)

    def _following(self) -> Cursor:
        """What is told once the next entry is kept: of one that a full disk refuses nothing is."""
        return replace(self.cursor, counts=dict(self.cursor.counts), left=list(self.cursor.left))

    def _append(self, text: bytes, following: Cursor) -> None:
        member = gzip.compress(text, 6)
        with writing(self.path), self.path.open("r+b" if self.path.exists() else "xb") as f:
            f.truncate(self.cursor.bytes)  # what a write that failed left there
            f.seek(self.cursor.bytes)
            f.write(member)
            f.flush()
            os.fsync(f.fileno())
        following.bytes += len(member)
        self.cursor = following
        with writing(self.path):
            write_whole(self._cursor_path, json.dumps(asdict(self.cursor), indent=1))

    def _read_cursor(self) -> Cursor:
        try:
            return Cursor(**json.loads(self._cursor_path.read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return self._read_again()

    def _read_again(self) -> Cursor:
        """What all answers tell that are whole in the file."""
        cursor = Cursor()
        for text, end in _members(self.path) if self.path.exists() else ():
            head, _, body = text.partition(b"\n")
            if head.startswith(SCRAPED_AT.encode()):
                cursor.answered(_began(body), int(head.removeprefix(SCRAPED_AT.encode()).replace(b".", b"")))
            else:
                cursor.silenced()
            cursor.bytes = end
        return cursor


def _began(body: bytes) -> str:
    """When the process was started, as an answer writes it; empty where it tells of none, or of several at once."""
    told = {match[1] for match in _BEGAN.finditer(body)}
    text = told.pop().decode("ascii") if len(told) == 1 else ""
    return text if ANY.reads(text) else ""


def _members(path: Path) -> Iterator[tuple[bytes, int]]:
    """(text, where it ends) of each whole gzip member of a file, up to what is none."""
    unpack, text, end = zlib.decompressobj(wbits=31), bytearray(), 0
    with path.open("rb") as f, contextlib.suppress(zlib.error):
        while piece := f.read(1 << 20):
            while piece:
                text += unpack.decompress(piece)
                end += len(piece) - len(unpack.unused_data)
                piece = unpack.unused_data
                if unpack.eof:
                    yield bytes(text), end
                    unpack, text = zlib.decompressobj(wbits=31), bytearray()


def _stamp(ns: int) -> str:
    return f"{ns // 1_000_000_000}.{ns % 1_000_000_000:09d}"


@dataclass(frozen=True)
class MetricsPlan:
    """What to poll, and how. `for_s`: how long, None without end. `options`: name, chip, chips and model of the run."""

    url: str
    every_s: float = 5.0
    for_s: float | None = None
    options: dict[str, Any] = field(default_factory=dict)


class _Poller:
    """What a Watcher reads from: here a server's answers."""

    def __init__(self, plan: MetricsPlan, folder: Path):
        self.plan, self.spool = plan, Spool(folder)

    def poll(self) -> None:
        """Ask once. Raises InputError where there is no answer; the gap is kept before."""
        if self.spool.cursor.bytes > MOST_SPOOL_BYTES:
            raise InputError(
                f"{MOST_SPOOL_BYTES:,} bytes are kept of this server: no more are read",
                where=self.plan.url,
                advice="Go on under another --name.",
            )
        try:
            body = scrape(self.plan.url, TIMEOUT_S)
        except InputError as e:
            self.spool.silence(time.time_ns(), e.what)
            raise
        self.spool.answer(body, time.time_ns())

    def ended(self) -> bool:
        return False  # a server that goes away may come back


class MetricsWatcher(Watcher):
    """One server. Made by the one process that holds the lock of its live run (`LiveRuns.following`).

    Raises InputError where the name is taken by something else, or the spool cannot be used.
    """

    least_pause_s = SNAPSHOT_EVERY_S

    def __init__(
        self, place: Workspace, name: str, plan: MetricsPlan, stop: threading.Event, tell: Tell, on_poll: OnPoll
    ):
        self.place, self.plan, self.stop, self._tell, self._on_poll = place, plan, stop, tell, on_poll
        known = place.store.live.read(name)
        if known and known.job != plan.url:
            raise InputError(f"live run {name!r} follows {known.job}", advice="Give this one another --name.")
        live = known or Live(name, "", plan.url)
        options = {**live.options, **plan.options}
        self._stale = options != live.options
        self.live = replace(
            live, options=options, every_s=plan.every_s, state="following", problem="", last_poll_ns=time.time_ns()
        )
        self.fetcher = _Poller(plan, place.store.live.of(name))
        self._adopt_strays()
        self._next_snapshot_s = 0.0
        self._reached = False
        self._told: tuple[str, str] | None = None

    def follow(self, once: bool = False) -> None:
        """Poll until stopped, until the time is over, or once; all answers are in the last snapshot.

        With `once` it raises InputError where there is no answer.
        """
        deadline = None if self.plan.for_s is None else time.monotonic() + self.plan.for_s
        due = time.monotonic()
        try:
            while not self.stop.is_set():
                self.poll(once)
                due = max(due + self.plan.every_s, time.monotonic())  # evenly, however long an answer took
                over = deadline is not None and due > deadline
                if once or over or self.stop.wait(due - time.monotonic()):
                    break
        except Cancelled:
            pass
        finally:
            with contextlib.suppress(InputError, Cancelled):
                self._snapshot(at_once=True)
            self._publish(True, state="stopped", **self._read_so_far())
        if self.live.run_id is None:
            raise QuestionError("not one answer with metrics", advice=self.live.problem or "Is the address right?")

    def _anything(self) -> bool:
        return bool(self.fetcher.spool.cursor.entries)

    def _ingesting(self) -> dict[str, Any]:
        return {"kind": "serving", "name": self.live.name}  # not cancelled: the last one is made after the stop

    def _ours(self, run: Run) -> bool:
        manifest = run.manifest
        return manifest.tags.get(TAG) == self.live.name and [s["name"] for s in manifest.sources] == [SPOOL]
