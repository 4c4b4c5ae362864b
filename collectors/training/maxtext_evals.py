"""Evaluations between the step lines of a MaxText log, and the steps whose lines stand around them.

MaxText prints a step once the next one was begun. So the lines of the last steps before an evaluation stand behind it,
and the seconds of the step after it, counted from one step's begin to the next, hold the evaluation as well:

    completed step: 17, seconds: 2.000           at 0 s
    eval metrics after step: 19                  at 14 s: ten seconds, after steps 18 and 19
    completed step: 18, seconds: 2.000           at 14 s
    completed step: 19, seconds: 2.000           at 14 s
    completed step: 20, seconds: 14.000          at 16 s: it took two
Older versions print each step before what follows it, and count its own seconds alone: there nothing is moved.
"""

from dataclasses import dataclass, field

from collectors.reading.attempts import much_later


@dataclass(slots=True)
class Evaluation:
    """One that its last line has told of. `after`: the step that it follows, `begun` and `end` by its lines (`begun`
    None where they do not tell), `since`: the time of the step line before it, where that is of an earlier step than
    `after`, in ns. `attempt`, `order`: of its own last line. `usual_ns`: the seconds of the last step line."""

    after: int
    begun: int | None
    end: int
    since: int | None
    attempt: int
    order: int
    usual_ns: int | None
    entered: bool = False
    _late: dict[int, int] = field(default_factory=dict)  # when steps began whose lines stand behind it
    _late_ns: int = 0  # how long these took
    _first: int = 0  # when the first host had ended it

    def __post_init__(self) -> None:
        self._first = self.end

    @property
    def start(self) -> int | None:
        """When it began: after the steps whose lines stand behind it."""
        if self.begun is None or self.since is None:
            return self.begun
        return min(max(self.begun, self.since + self._late_ns), self.end)

    def is_told_again(self, after: int, at: int, step_ns: int | None) -> bool:
        """Whether a last line, written at `at`, is another host's of this evaluation: hosts whose lines lag tell of it
        before it could have been done once more."""
        lasted = self.end - self.begun if self.begun is not None else 0
        return after == self.after and not much_later(self.end, at, max(step_ns or 0, lasted))

    def goes_on_to(self, at: int, step_ns: int | None) -> None:
        """It ended when the last host had, which is no later than a step after the first: others' lines lag."""
        if not much_later(self._first, at, step_ns or 0):
            self.end = max(self.end, at)

    def placed(self, step: int, at: int, dur_ns: int) -> tuple[int, int]:
        """(start, duration) of a step whose line stands behind it, written at `at`, with so long a duration, in ns."""
        if step <= self.after:
            return self._before(step, at, dur_ns), dur_ns
        if at - dur_ns < self.end <= at:
            dur_ns = max(at - self.end, min(dur_ns, self.usual_ns or 0))
        return at - dur_ns, dur_ns

    def _before(self, step: int, at: int, dur_ns: int) -> int:
        if self.since is None or much_later(self.end, at, dur_ns):  # the same steps, taken again
            return at - dur_ns
        if step not in self._late:
            if self.entered or self.since + self._late_ns + dur_ns > self.end:
                return at - dur_ns
            self._late[step] = self.since + self._late_ns
            self._late_ns += dur_ns
            self.usual_ns = dur_ns
        return self._late[step]


@dataclass
class Evaluating:
    """What the lines of one host tell of the evaluation that goes on, and the last that has ended.
    `steps_ns`: what its steps took, as far as they say; `begun`: when it began by the times of its lines; `trained`:
    the time of the step line before it."""

    steps_ns: int = 0
    begun: int | None = None
    trained: int | None = None
    ended: Evaluation | None = None

    def step(self, at: int | None, dur_ns: int, trained: int | None) -> None:
        """Enter a step of it. It goes on since the step line before it, of the time `trained`."""
        self.steps_ns += dur_ns
        if self.begun is None and at is not None:
            self.begun, self.trained = at if trained is None else min(at, trained), trained

    def end(self, at: int | None) -> tuple[int, int | None]:
        """End it: how long its steps say that they took (those of several hosts no longer than since the step line
        before it), and when it began, where that is known."""
        took, begun, trained = self.steps_ns, self.begun, self.trained
        self.steps_ns, self.begun, self.trained = 0, None, None
        if at is None:
            return took, None
        if trained is not None and trained < at:
            took = min(took, at - trained)
        return took, at - took if took else None if begun is None else min(begun, at)
