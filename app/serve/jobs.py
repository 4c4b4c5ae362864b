"""Jobs of the server: each runs `chipledger ingest`, `compile` or `capture` in a process of its own.

Whatever an input does to that process (bad bytes, too much memory), the server and its pages go on. The queue is in the
registry (`runs/job_book.py`): it outlives this process, and servers and workers of one store share it. Here is one
worker of it: it takes jobs, runs so many at once, and says how far they are.
"""

import asyncio
import contextlib
import logging
import shutil
import signal
import tempfile
import time
import uuid
import weakref
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from app.identity.asking import who
from app.operations import logs
from app.serve.bounds import GRACE, Bounds, bounds
from app.serve.job import STORED, Job
from app.serve.job_inputs import STORE, as_now, is_here, lying, own_of
from app.serve.job_process import GRACE_SECONDS, Ended, JobProcess, sentence
from app.serve.orphans import Orphans
from app.serve.stopping import Stopping
from app.workspace import Workspace
from errors import ChipledgerError
from runs.job_book import CANCELLED, DONE, FAILED, PARKED, USUAL, Beat, Entry, JobBook, Wanted, no_job
from runs.job_locks import JobLocks
from runs.postgres.presence import Presence
from runs.postgres.refusals import Unkept
from runs.postgres.server import Server

AT_ONCE = {"ingest": 2, "compile": 1, "capture": 2}  # jobs that run at the same time; more wait for their turn
MOST_ATTEMPTS = {"ingest": 3, "compile": 3, "capture": 1}  # a recording is of its moment, and is not made later
MOST_WAITING = 1000  # jobs that have not ended; whoever asks for more is told, or they would fill the disk
LISTED = 50  # jobs of a list
LAST_WORDS_SECONDS = 60.0  # a job whose run is there may take to say so
TICK_SECONDS = 1.0  # between two looks at the queue, and two times that progress is kept
BEAT_SECONDS = 5.0  # of a job that makes no progress
RESCUE_SECONDS = 5.0  # between two looks for workers that are gone
CANCEL_SECONDS = 15.0  # for another worker to end a job
TOLD = ("run_id", "existed", "tables", "warnings")  # what is kept of an answer
GONE = "the {} was begun {} times, and each time its worker was gone before it ended.{}"
ELSEWHERE = (
    "error: the store is at {} for the server that was asked, and at {} for the worker that was to do it. Have it at "
    "the same place for both, or have the job tried again at the server of that store"
)
UNKEPT = "what the {} said cannot be kept; look among the runs for what it stored, or have it done again"
ADVICE = {
    "ingest": " The files are kept: have them read again, or see in the server's log what ended it.",
    "compile": " Ask again, or see in the server's log what ended it.",
    "capture": " Record anew: what was to be recorded then is over.",
}


class Jobs:
    """The jobs of a store, and one worker of them. Without `place` they are of this process alone."""

    def __init__(
        self,
        place: Workspace | None = None,
        *,
        works: bool = True,
        ingests: int = AT_ONCE["ingest"],
        limits: Bounds | None = None,
        grace_s: float = GRACE.default,
    ) -> None:
        self._place, self._works, self._grace_s = place, works, grace_s
        self._at_once = AT_ONCE | {"ingest": ingests}
        self._root = place.store.root if place else _for_now(self)
        self._book = JobBook(place.registry.at if place else self._root / "registry.db")
        at = self._book.at
        self._locks = JobLocks(self._root, Presence(at) if isinstance(at, Server) else None)
        self._orphans = Orphans()
        self._bounds = limits or bounds()
        self._running: dict[str, tuple[Job, JobProcess, asyncio.Task[None]]] = {}
        self._handed: weakref.WeakValueDictionary[str, Job] = weakref.WeakValueDictionary()
        self._ends: set[asyncio.Task[None]] = set()
        self._woken = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self._looked_s = float("-inf")  # when it was last looked for workers that are gone, monotonic
        self._until_s: float | None = None  # when what runs is parked, monotonic; None while all goes on

    @property
    def stopping(self) -> bool:
        return self._until_s is not None

    def open(self) -> None:
        """Begin to work, in the loop that runs."""
        self._loop = asyncio.get_running_loop()
        if self._works and self._worker is None and not self.stopping:
            self._worker = self._loop.create_task(self._work())

    def start(self, arguments: Sequence[str], about: dict[str, Any] | None = None, priority: int = USUAL) -> Job:
        """Ask for `chipledger ARGUMENTS` (a command that prints its run with --json) as a job. Raises QuestionError
        where MOST_WAITING have not ended yet, or this server is being stopped."""
        self.check()
        about = {**(about or {}), **lying(self._place, about or {})}
        job = Job(uuid.uuid4().hex, arguments[0], about=about, who=who().name, priority=priority)
        asked = {"what": job.what, "arguments": list(arguments), "about": job.about, "priority": priority}
        self._handed[job.job_id] = job
        self._book.ask(Wanted(job_id=job.job_id, who=job.who, **asked), MOST_WAITING)
        logs.tell("job_began", job_id=job.job_id, what=job.what, who=job.who or None)
        self._wake()
        return job

    def check(self) -> None:
        """Raises Stopping where nothing new is taken."""
        if self.stopping:
            raise Stopping("this server is being stopped", advice="Ask again in a minute: what was sent is kept.")

    def get(self, job_id: str, since: int | None = None) -> Job:
        """A job as it is now; with its files where `since` says from which change on. Raises QuestionError where there
        is none."""
        here = self._running.get(job_id)
        job = here[0] if here else Job.of(self._book.get(job_id))
        if not job.theirs:
            raise no_job(job_id)
        if here is None and since is not None:
            job.files = self._book.files(job_id, since)
        return job

    def newest(self) -> list[Job]:
        """The jobs of whoever asks, the newest first."""
        here = {job_id: job for job_id, (job, _, _) in list(self._running.items())}
        asks = who()
        entries = self._book.newest(LISTED, None if asks.sees_all else asks.name)
        return [here.get(e.job_id) or Job.of(e) for e in entries]

    def by_state(self) -> Counter[tuple[str, str]]:
        """How many jobs are remembered, by what they do and their state."""
        return self._book.by_state()

    def reading(self) -> set[str]:
        """Uploads that a job reads, or waits for its turn to read."""
        return self._book.reading()

    def retry(self, job_id: str, paths: Sequence[str] | None = None) -> Job:
        """Have a job that failed or was cancelled done again, in this store. `paths`: of an upload, the words that say
        what it holds now. Raises QuestionError for any other."""
        self.check()
        self.get(job_id)

        job = Job.of(self._book.retry(job_id, MOST_WAITING, lambda words: as_now(words, self._root, paths)))
        self._wake()
        return job

    async def cancel(self, job_id: str) -> Job:
        """Stop a job. What it had read is thrown away, the uploaded files stay; one that has stored its run by then is
        done, and says so."""
        await asyncio.to_thread(self.get, job_id)
        if job_id not in self._running:
            entry = await asyncio.to_thread(self._book.cancel, job_id)
            if entry.ended:
                if (handed := self._handed.get(job_id)) and not handed.ended:
                    handed.end(entry.state)
                return Job.of(entry)
        until_s = time.monotonic() + CANCEL_SECONDS
        while job_id not in self._running and time.monotonic() < until_s:
            job = await asyncio.to_thread(self.get, job_id)  # another worker runs it, or it begins at this moment
            if job.ended:
                return job
            await asyncio.sleep(TICK_SECONDS / 10)
        await self._end_here(job_id, CANCELLED)
        return await asyncio.to_thread(self.get, job_id)

    def stop(self) -> None:
        """Take nothing new from now on, and give what runs `grace_s` to end."""
        if self._until_s is None:
            self._until_s = time.monotonic() + self._grace_s
            self._wake()

    async def close(self) -> None:
        """Stop; what has not ended in its time is parked, and goes on with whoever works next."""
        self.stop()
        left_s = (self._until_s or 0.0) - time.monotonic()
        if tasks := [task for _, _, task in self._running.values()]:
            await asyncio.wait(tasks, timeout=max(0.0, left_s))
        await asyncio.gather(*(self._end_here(job_id, PARKED) for job_id in list(self._running)))
        self._closed = True  # to cancel it would not do: `wait_for` loses a cancel that comes with what it waits for
        self._woken.set()
        if self._worker is not None:
            await asyncio.wait([self._worker], timeout=CANCEL_SECONDS)
            self._worker.cancel()
        self._locks.leave()

    def _wake(self) -> None:
        with contextlib.suppress(RuntimeError):  # asked from a thread, or where there is no loop, or none any more
            if self._loop is None:
                self.open()
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._woken.set)

    async def _work(self) -> None:
        """Takes jobs and looks after what runs, for as long as this process works."""
        refused = ""
        while not self._closed:
            self._woken.clear()
            why = [await self._tried(step) for step in (self._look, self._beat, self._take)]
            said = next(filter(None, why), "")
            if said and said != refused:  # the registry cannot be used now: it is tried again, and told once
                logs.tell("jobs_wait", level=logging.WARNING, why=said)
            refused = said
            if not self._closed:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), TICK_SECONDS)

    async def _tried(self, step: Callable[[], Awaitable[None]]) -> str:
        """Why a step was refused; empty where it was not. What fails of one keeps nobody from the next."""
        try:
            await step()
        except ChipledgerError as e:
            return e.what
        except Exception as e:  # or nothing would be worked on any more
            logs.tell_defect(e)
        return ""

    async def _look(self) -> None:
        if time.monotonic() - self._looked_s > RESCUE_SECONDS:
            self._looked_s = time.monotonic()
            await asyncio.to_thread(self._locks.be_seen)
            await asyncio.to_thread(self._rescue)

    async def _take(self) -> None:
        while not self.stopping and (entry := await asyncio.to_thread(self._claim)):
            self._begin(entry)

    def _claim(self) -> Entry | None:
        running = [job.what for job, _, _ in list(self._running.values())]
        room = [what for what, most in self._at_once.items() if running.count(what) < most]
        taken: list[str] = []

        def take(job_id: str) -> bool:
            return self._locks.take(job_id) and not taken.append(job_id)

        entry = None
        try:
            entry = self._book.claim(self._locks.worker, room, take, lambda upload_id: is_here(self._place, upload_id))
            return entry
        finally:
            for job_id in taken if entry is None else ():
                self._locks.drop(job_id)

    def _begin(self, entry: Entry) -> None:
        job = self._handed.get(entry.job_id) or Job.of(entry)
        job.begin(entry)
        sealed = job.what == "ingest" and bool(job.about.get("upload_id"))
        store = next((a.removeprefix(STORE) for a in entry.arguments if a.startswith(STORE)), str(self._root))
        registry = self._book.at if self._place else None
        own = own_of(self._place, entry) if sealed else None
        process = JobProcess(job.what, entry.arguments, Path(store), self._bounds, job.tell, sealed, registry, own)
        self._running[job.job_id] = (job, process, asyncio.create_task(self._run(job, process)))

    async def _run(self, job: Job, process: JobProcess) -> None:
        try:
            state, error = _outcome(job, await self._ended(job, process))
            await self._finish(job, state, error)
        finally:
            self._running.pop(job.job_id, None)
            self._locks.drop(job.job_id)
            self._woken.set()

    async def _ended(self, job: Job, process: JobProcess) -> Ended:
        if job.wish:  # before it began
            return Ended(code=-signal.SIGTERM, answer={}, why="", said=())
        if self._place is not None and process.store != self._root:
            return Ended(code=2, answer={}, why="", said=[ELSEWHERE.format(process.store, self._root)])
        try:
            ended = await process.run(self._locks.file(job.job_id))
        except OSError as e:
            return Ended(code=1, answer={}, why=f"could not be started ({e.strerror})", said=())
        except Exception as e:  # or the page would wait for it forever
            logs.tell_defect(e)
            return Ended(code=1, answer={}, why="", said=[f"{type(e).__name__}: {e}"])
        if ended.code not in (0, 2) and ended.said and not job.wish:
            logs.tell("job_said", level=logging.ERROR, job_id=job.job_id, traceback="\n".join(ended.said))
        job.result = {name: ended.answer[name] for name in TOLD if name in ended.answer}
        if ended.code == 0 and process.sealed and self._place is not None:
            try:  # what it wrote, without a network
                await asyncio.to_thread(self._place.store.bring_outgoing, str(job.result.get("run_id", "")))
            except ChipledgerError as e:
                return Ended(code=2, answer={}, why="", said=[f"error: {e}"])
            except Exception as e:  # or the page would wait for it forever
                logs.tell_defect(e)
                return Ended(code=1, answer={}, why="", said=[f"{type(e).__name__}: {e}"])
        return ended

    async def _finish(self, job: Job, state: str, error: str) -> None:
        """Say in the book how a job ended, and go on saying it until it is there: what is not said is done again."""
        if state == DONE:
            job.progress = 1.0
        while True:
            try:
                await asyncio.to_thread(self._said, job, state, error)
                break
            except Unkept:  # nor would it be the next time
                state, error, job.result = FAILED, UNKEPT.format(job.what), {}
                job.progress, job.doing, job.files = None, "", {}
            except ChipledgerError:
                if self.stopping:
                    break  # whoever works next finds the job without its worker
                await asyncio.sleep(TICK_SECONDS)
        if state == PARKED:
            job.state = PARKED
            return
        job.end(state, error)
        lasted_s = round(((job.ended_ns or job.began_ns) - job.began_ns) / 1e9, 3)
        logs.tell("job_ended", job_id=job.job_id, what=job.what, state=state, duration_s=lasted_s)
        if state == DONE and self._place is not None:
            with contextlib.suppress(ChipledgerError):  # the next run tells what could not be told now
                await asyncio.to_thread(_tell_alerts, self._place)

    def _said(self, job: Job, state: str, error: str) -> None:
        drop = self._locks.drop
        if state == PARKED:
            self._book.park(self._locks.worker, job.job_id, drop)
        else:
            self._book.end(self._locks.worker, job.beat(""), state, error, job.result, drop)

    async def _end_here(self, job_id: str, wish: str) -> None:
        """End a job that runs here; of one that has stored its run it is waited for what it says."""
        if job_id not in self._running:
            return
        job, process, task = self._running[job_id]
        if job.doing == STORED:  # it only has to say which run
            await asyncio.wait([task], timeout=LAST_WORDS_SECONDS)
        if not task.done():
            job.wish = job.wish or wish
            await process.end()
            await asyncio.wait([task], timeout=2 * GRACE_SECONDS)  # it hears what the process said last

    async def _beat(self) -> None:
        """Say that jobs are run and how far they are, where there is something to say."""
        told: list[tuple[Job, Beat]] = []
        for job, process, _ in self._running.values():
            beat = job.beat(process.named())
            if time.monotonic() - job.beaten_s > BEAT_SECONDS or job.changed(beat):
                told.append((job, beat))
        if not told:
            return
        cancelling, lost = await asyncio.to_thread(self._book.beat, self._locks.worker, [beat for _, beat in told])
        for job, beat in told:
            job.beaten(beat)
        for job_id in cancelling | lost:
            self._ends.add(ending := asyncio.create_task(self._end_here(job_id, CANCELLED)))
            ending.add_done_callback(self._ends.discard)

    def _rescue(self) -> None:
        """Have what was run by workers that are gone begun again, or failed where that was tried often enough."""
        for entry in self._book.running_of(self._locks.worker):
            # taken, but the answer that said so was lost; nothing is taken while this looks, so it was never begun
            if entry.job_id not in self._running:
                most = {entry.what: entry.attempts + 1}
                self._book.give_back(entry, lambda job_id: job_id not in self._running, most, "")
        for entry in self._book.running_elsewhere(self._locks.worker):
            error = GONE.format(entry.what, entry.attempts, ADVICE.get(entry.what, ""))

            def gone(job_id: str, entry: Entry = entry) -> bool:
                return self._locks.gone(job_id, entry.worker, entry.beat)

            if self._book.give_back(entry, gone, MOST_ATTEMPTS, error) is None:
                self._orphans.look(entry.child)
            else:
                self._locks.forget(entry.job_id)


def _outcome(job: Job, ended: Ended) -> tuple[str, str]:
    """(state, error) of a job whose process ended."""
    if ended.code == 0:
        return DONE, ""
    return (job.wish, "") if job.wish else (FAILED, sentence(job.what, ended))


def _tell_alerts(place: Workspace) -> None:
    """A job that reads what was uploaded can open no connection: what its run has people told is sent from here."""
    from app.follow.alerts.evaluate import book, tell

    tell(book(place))


def _for_now(jobs: Jobs) -> Path:
    """A folder that goes with its owner."""
    folder = Path(tempfile.mkdtemp(prefix="chipledger-jobs-"))
    weakref.finalize(jobs, shutil.rmtree, folder, ignore_errors=True)
    return folder
