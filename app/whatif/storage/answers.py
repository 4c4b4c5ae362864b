"""From the options of `whatif storage` to who waits, for what, and what would mend it."""

from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from app.whatif.storage.asked import MOST_READERS, PREFETCH, Asked
from app.whatif.storage.cases import worked
from app.whatif.storage.inputs import Measured, measured, pipe, size, store
from errors import QuestionError
from errors import format as fmt
from errors.numbers import SECONDS_OR_NONE
from simulators.storage.epoch import LARGE_BYTES, PAGE, Epoch, epoch, in_large_files
from simulators.storage.limits import limit
from simulators.storage.needed import Needed, needed
from simulators.storage.pipe import Pipe
from simulators.storage.waiting import NOBODY, Waits, stands_for_several, waits

if TYPE_CHECKING:
    from app.workspace import Workspace

HOURS_OF_A_DAY = 24.0
AROUND = 5  # doublings on either side of what is, in a curve
OF_A_RUN = frozenset(  # options that say nothing of how a batch is read
    ("run", "step_s", "prefetch", "chips", "days", "usd_per_chip_hour", "checkpoint_bytes", "write_bytes_per_s")
)
UNLIMITED = {
    "stream_bytes_per_s": "a stream",
    "host_bytes_per_s": "a host's network",
    "store_bytes_per_s": "the store's bytes",
    "store_requests_per_s": "its requests a second",
}
NOTES = (
    "A request brings its first byte after a latency, then its bytes; all steps begin when the slowest host has its "
    f"batch. Who waits less than {fmt.whole_share(NOBODY)} of a step is said not to wait.",
    "Hosts are alike and share the store alike; retries, caches and other jobs that read from the store are not in it.",
)
STANDS = (
    "One drawn request, reader or host stands for several that are alike. Beside walks of every one of them, in twelve "
    "settings, waits above a hundredth of a step came out from a fifth too long to two fifths too short."
)


@dataclass(frozen=True)
class StorageAnswer:
    """`pipe` None: nothing is known of the store, and a batch takes what the run measured. `alone`: of one host of
    several; `limit`: see `simulators.storage.limits`, or unknown."""

    asked: Asked
    pipe: Pipe | None
    step_s: float
    batch_s: float
    waits: Waits
    alone: Waits | None
    limit: str
    needed: Needed | None
    chips: int | None
    measured: Measured | None
    epochs: tuple[Epoch, Epoch | None] | None
    save_s: float | None
    notes: tuple[str, ...]

    @property
    def seed(self) -> int:
        return self.asked.seed or 0

    @property
    def share(self) -> float:
        """Of all time: what chips wait for their input."""
        return self.waits.wait_s / (self.step_s + self.waits.wait_s)

    @property
    def chip_hours(self) -> float | None:
        """That are waited in all."""
        if self.chips is None or self.asked.days is None:
            return None
        return self.share * self.chips * self.asked.days * HOURS_OF_A_DAY

    @property
    def usd(self) -> float | None:
        price = self.asked.usd_per_chip_hour
        return None if price is None or self.chip_hours is None else self.chip_hours * price

    @cached_property
    def by_readers(self) -> tuple[dict[str, float], ...]:
        """Time per batch and wait over readers of a host."""
        if self.pipe is None:
            return ()
        counts = {min(max(1, round(self.pipe.readers * 2.0**n)), MOST_READERS) for n in range(-AROUND, AROUND + 1)}
        return tuple({"readers": n} | self._at(readers=n) for n in sorted(counts))

    @cached_property
    def by_file_bytes(self) -> tuple[dict[str, float], ...]:
        """The same over the size of a file, up to a batch of a host."""
        if self.pipe is None:
            return ()
        p = self.pipe
        sizes = {min(p.file_bytes * 2.0 ** (2 * n), max(p.batch_bytes, p.file_bytes)) for n in range(-3, 5)}
        return tuple({"file_bytes": n} | self._at(file_bytes=n) for n in sorted(sizes) if n >= 1)

    def _at(self, **change: float) -> dict[str, float]:
        assert self.pipe is not None
        at = replace(self.pipe, **change)
        wait_s = waits(at, self.step_s, self.seed).wait_s
        return {"batch_s": waits(at, 0.0, self.seed).wait_s, "wait_s": wait_s}

    def to_dict(self) -> dict[str, Any]:
        several = self.alone is not None
        return {
            "batch_s": self.batch_s,
            "step_s": self.step_s,
            "wait_s_per_step": self.waits.wait_s,
            "wait_error_s": self.waits.error_s,
            "wait_share": self.share,
            "wait_of_one_host_s": self.alone.wait_s if several and self.alone is not None else None,
            "first_batch_s": self.waits.first_s,
            "limit": self.limit,
            "parts_s": None if self.pipe is None else self.pipe.parts,
            "needed": None if self.needed is None else asdict(self.needed),
            "chip_hours_waited": self.chip_hours,
            "usd_waited": self.usd,
            "epoch": None if self.epochs is None else [asdict(e) for e in self.epochs if e is not None],
            "save_s": self.save_s,
            "measured": None if self.measured is None else asdict(self.measured),
            "by_readers": list(self.by_readers),
            "by_file_bytes": list(self.by_file_bytes),
            "cases": list(worked()),
            "basis": "modelled" if self.pipe is not None else "measured",
            "notes": list(self.notes),
        }


def find(asked: Asked, place: "Workspace | None" = None) -> StorageAnswer:
    """Raises QuestionError where something is missing or cannot be."""
    _check(asked)
    run = measured(asked, place)
    step_s = asked.step_s or (run and run.step_s)
    if not step_s:
        tells = f"run {run.run[:80]!r} does not tell a step" if run else "nothing says how long a step takes"
        raise QuestionError(tells, expected="--step-s, seconds")
    if run is not None and run.fetch_s is not None and _as_the_run_did(asked):
        return _of_the_run(asked, run, step_s, run.fetch_s)
    held = store(asked)
    made, seed = pipe(asked, held), asked.seed or 0
    several = made.hosts > 1 and made.sigma > 0
    given = asked.files
    return StorageAnswer(
        asked=asked,
        pipe=made,
        step_s=step_s,
        batch_s=waits(made, 0.0, seed).wait_s,
        waits=waits(made, step_s, seed),
        alone=waits(_one(made), step_s, seed) if several else None,
        limit=limit(made, step_s, seed),
        needed=needed(made, step_s, seed),
        chips=asked.chips or (run.chips if run else None),
        measured=run,
        epochs=None if given is None else (epoch(made, given), in_large_files(made, given)),
        save_s=_save_s(asked, held.write_bytes_per_s, made.host_bytes_per_s and made.host_bytes_per_s * made.hosts),
        notes=(*_notes(asked, made, run), *held.taken, *NOTES),
    )


def _one(made: Pipe) -> Pipe:
    """One of its hosts, with the same share of the store."""
    total, rate = made.store_bytes_per_s, made.store_requests_per_s
    return replace(
        made,
        hosts=1,
        store_bytes_per_s=None if total is None else total / made.hosts,
        store_requests_per_s=None if rate is None else rate / made.hosts,
    )


def _as_the_run_did(asked: Asked) -> bool:
    """Whether nothing is asked that a measured fetch cannot answer: all that tells of files or a store is empty."""
    plain = Asked()
    return all(f.name in OF_A_RUN or getattr(asked, f.name) == getattr(plain, f.name) for f in fields(Asked))


def _of_the_run(asked: Asked, run: Measured, step_s: float, fetch_s: float) -> StorageAnswer:
    """A batch takes what the run measured, each time: with batches fetched ahead it is hidden behind a step."""
    ahead = PREFETCH if asked.prefetch is None else asked.prefetch
    wait_s = max(fetch_s - step_s, 0.0) if ahead else fetch_s
    return StorageAnswer(
        asked=asked,
        pipe=None,
        step_s=step_s,
        batch_s=fetch_s,
        waits=Waits(wait_s, 0.0, fetch_s),
        alone=None,
        limit="nothing" if wait_s <= NOBODY * step_s else "unknown",
        needed=None,
        chips=asked.chips or run.chips,
        measured=run,
        epochs=None,
        save_s=_save_s(asked, asked.write_bytes_per_s, None),
        notes=(
            "A batch takes the run's usual fetch, every time, one after another. What it is made of is not known: name "
            "what a step reads, the size of files and a latency to see what binds.",
            *_notes(asked, None, run),
        ),
    )


def _notes(asked: Asked, made: Pipe | None, run: Measured | None) -> list[str]:
    said = []
    if run is not None and asked.step_s is None:
        less = f", less the {fmt.share(run.waited_share)} in which devices waited for input" if run.waited_share else ""
        said.append(f"A step is the usual one of run {run.run[:80]}{less}.")
    if made is None:
        return said
    if free := [words for name, words in UNLIMITED.items() if getattr(made, name) is None]:
        said.append(f"No limit was given of: {', '.join(free)}.")
    if made.files < 1:
        said.append(
            f"A file holds {1 / made.files:.3g} batches of a host; it is taken as there once the whole of it is. Where "
            "it is read in parts, name the bytes of a part."
        )
    if made.sigma == 0:
        said.append("Every request takes the median latency: give its 99th percentile to see what its spread costs.")
    if stands_for_several(made):
        said.append(STANDS)
    if asked.files is not None:
        large = f"{LARGE_BYTES / 1e6:.0f} MB"
        said.append(f"Names are listed {PAGE:,} a request, one request after another; large files are of {large}.")
    return said


def _save_s(asked: Asked, write_bytes_per_s: float | None, sent: float | None) -> float | None:
    """Seconds of a save: bytes of a checkpoint at what the store takes, and no faster than all hosts send, in bytes/s
    (None: no limit)."""
    bytes_ = size(asked.checkpoint_bytes, "a checkpoint, in bytes,")
    if bytes_ is None:
        return None
    if write_bytes_per_s is None:
        raise QuestionError("a checkpoint without the store's rate", expected="--write-bytes-per-s with it")
    return SECONDS_OR_NONE.read(bytes_ / min(write_bytes_per_s, sent or write_bytes_per_s), "seconds of a save,")


def _check(asked: Asked) -> None:
    """What belongs together."""
    if asked.write_bytes_per_s is not None and not asked.checkpoint_bytes:
        raise QuestionError("a rate of writing without a checkpoint", expected="--checkpoint-bytes with it")
    if asked.usd_per_chip_hour is not None and asked.days is None:
        raise QuestionError("a price without a length of the job", expected="--days, and --chips or --run, with it")
    if asked.days is not None and asked.chips is None and not asked.run:
        raise QuestionError("a length of the job without chips", expected="--chips, or --run, with it")
