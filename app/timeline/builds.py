"""Timelines that are being made at first view, of runs with many events: how far each is, for all who wait for it.

One at a time, for each takes a core and the memory of its largest lane. It goes on when whoever asked leaves, and is
then there for the next; it ends when somebody ends it, and then nothing of it stays.
"""

import threading
import time
from collections.abc import Hashable

from analyzers.timeline.progress import STAGES, heard_by, heard_from_afar
from app.questions.asking import ask, known
from app.questions.timeline import TIMELINE
from errors import ChipledgerError
from errors import format as fmt
from runs.registry import Registry
from runs.run import Run

WORDS: dict[str, str] = dict(
    zip(STAGES, ("reading its events", "putting events into rows", "summing them for every width"), strict=True)
)
_turn = threading.Lock()
_lock = threading.Lock()
_made: "dict[Hashable, Build]" = {}


class EndedError(ChipledgerError):
    """Somebody ended it."""


class Build:
    """One that is made in a thread of its own."""

    def __init__(self, run: Run, registry: Registry):
        self._run, self._registry = run, registry
        self._begun = time.monotonic()
        self._told: tuple[str, int, int] | None = None
        self._ended = threading.Event()
        self._done = threading.Event()
        threading.Thread(target=self._make, name="timeline", daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Whether it is through by then, be it with an answer, an error, or ended."""
        return self._done.wait(seconds)

    def end(self) -> None:
        """It stops at its next piece."""
        self._ended.set()

    @property
    def ended(self) -> bool:
        return self._ended.is_set()

    @property
    def share(self) -> float:
        """Of its stage."""
        _, done, whole = self._told or ("", 0, 0)
        return min(done / whole, 1.0) if whole else 0.0

    @property
    def words(self) -> str:
        """How far it is, in a sentence."""
        since = fmt.duration(float(int(time.monotonic() - self._begun)))
        if self.ended:
            return "It ends at its next piece."
        if self._told is None:
            return f"The timeline of another run is made first, or this one elsewhere; {since} so far."
        stage, done, whole = self._told
        part = f"Part {STAGES.index(stage) + 1} of {len(STAGES)}"
        return f"{part}, {WORDS[stage]}: {min(done, whole):,} of {whole:,}; {since} so far."

    def _make(self) -> None:
        try:
            with heard_from_afar(self._run.tables.state, self._heard), _turn, heard_by(self._heard):
                ask(TIMELINE, self._run, {}, self._registry)
            self._ended.clear()  # somebody else had it made, and it is there
        except ChipledgerError:
            pass  # whoever asks is told: it is kept, or asked anew
        finally:
            with _lock:
                _made.pop(self._run.writing, None)
            self._done.set()

    def _heard(self, stage: str, done: int, whole: int) -> None:
        if self.ended:
            raise EndedError("the making of this timeline was ended", advice="Open it again to have it made.")
        self._told = stage, done, whole


def made(run: Run, registry: Registry) -> Build | None:
    """The timeline of a run as it is being made: begun now, or by whoever asked before. None where it is there, or
    nobody can have it."""
    try:
        if known(TIMELINE, run, registry) is not None:
            return None
    except EndedError:
        pass
    except ChipledgerError:
        return None
    except Exception:  # noqa: BLE001 - what failed once, such as for lack of memory, is tried again
        pass
    with _lock:
        if run.writing not in _made or _made[run.writing].ended:
            _made[run.writing] = Build(run, registry)
        return _made[run.writing]
