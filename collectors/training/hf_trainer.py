"""Output of Hugging Face's Trainer, which TRL, Axolotl and LLaMA-Factory are built on: dicts of numbers amid a bar.

The dicts name no step and no time; the progress bar of training, which is drawn anew right behind each, tells both:
`45/360 [07:52<51:52, 9.88s/it]`. It counts whole seconds, so steps take the mean over a minute and more. What an
evaluation took, as its dict says, is taken off. Of dicts that come together, as output that is kept back does, nothing
tells the steps. The first step that a bar shows may be the one behind that at which a job was resumed: nothing tells
how long it took, nor those before it. Without a bar (it goes to standard error) nothing tells the steps.
A step that the bar shows to take five times as long as those around it, and ten seconds and more, as one behind a save
does, has that time as its own.
An evaluation ended when its dict was written: where something dates that line, it is an interval of the job's life, and
steps are laid around it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from collectors.base import Item, Source
from collectors.reading.line_prefix import bare
from collectors.reading.textlog import is_text_log, seconds_to_ns
from collectors.training.step_lines import StepLines, Told

NAME = "hf_trainer"
TITLE = "Hugging Face Trainer log"
HELP = (
    "Output of Hugging Face's Trainer, with its progress bar (TRL, Axolotl, LLaMA-Factory too): step times, loss, "
    "evaluations."
)

_DICT = re.compile(r"\{(?='[\w/ .()-]{1,80}': )", re.ASCII)  # how one begins; it ends with the line
_PAIR = re.compile(r"'([\w/ .()-]{1,80})': '?([-+]?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|nan|inf))'?(?=, '|$)", re.ASCII)
_BAR = re.compile(
    r"^\s*\d{1,3}%\|[^|]{0,200}\| (\d{1,12})/(\d{1,12}) \[(?:(\d{1,6}):)?(\d\d):(\d\d)"
    r"<[^,\]]{1,20}, *(?:\?|[\d.]+)?(?:it/s|s/it)",
    re.ASCII,
)
_EVALUATED = re.compile(r"eval_(?:.{1,70}_)?runtime")  # of one set, or of each of several by its name
_SNIFF_DICT = re.compile(rb"\{'loss': '?-?[\d.naif]")
_SNIFF_BAR = re.compile(rb"\d{1,3}%\|[^|\r\n]{0,200}\| \d+/\d+ \[[\d:]+<[^,\]]{1,20}, *(?:\?|[\d.]+)?(?:it/s|s/it)")
_LEAST_S = 60  # of a bar that counts whole seconds: a mean over less is off by more than some per cent
_SURE_S = 10  # of the last steps of a log, or of one alone: whole seconds tell less than a tenth wrong
_FAR_LONGER = 5  # times what the steps around it take: a step whose time is its own
EXPECTED = "lines such as `{'loss': 1.25, 'learning_rate': 5e-05, 'epoch': 0.1}` amid a progress bar"
EVERY = "the progress bar counts whole seconds: they took the mean over a minute and more"
UNSEEN = "no progress bar stands behind them, which tells of which step they are"


def sniff(source: Source) -> float:
    mine = is_text_log(source) and _SNIFF_DICT.search(source.head) and _SNIFF_BAR.search(source.head)
    return 0.85 if mine else 0.0


def read(source: Source) -> Iterator[Item]:
    """Steps, evaluations and what else the dicts tell. Raises InputError where the log holds none of them."""
    yield from _Log(source).read(source, EXPECTED)


@dataclass
class _Window:
    """Steps whose mean is taken. `step`, `seconds`, `paused_s`: where the bar stood before them, and what evaluations
    had taken by then; `losses`: of steps that a dict told of."""

    step: int
    seconds: int
    paused_s: float
    pauses: list[tuple[int, int]] = field(default_factory=list)  # those of them that are dated: start, end, ns
    losses: dict[int, float] = field(default_factory=dict)
    alone: dict[int, float] = field(default_factory=dict)  # seconds of steps that took long enough to be timed alone
    last: tuple[int, float, str, int] | None = None  # step, time that steps took, what stood before its dict, offset


class _Log(StepLines):
    def __init__(self, source: Source):
        super().__init__(source, NAME)
        self.total: int | None = None  # of the bar of training: evaluations draw others
        # by the total of a bar, the first step that it showed since it began anew, and the last, each with its seconds;
        # with the first, what evaluations had taken by then
        self.begun: dict[int, tuple[int, int, float] | None] = {}
        self.shown: dict[int, tuple[int, int]] = {}
        self.logged: tuple[int, int] | None = None  # where the bar of training stood behind the last dict
        self.again = False  # it began anew: the job was started again
        self.window: _Window | None = None
        self.paused_s = 0.0  # what evaluations took
        self.paused_by_bar_s = 0.0  # by the time the bar of training was drawn last
        self.usual_s: float | None = None  # a step of the last window
        self.told: tuple[int, str, dict[str, float]] | None = None  # a dict that waits for its bar
        self.together = False  # others stand before it without one: they were kept back, and the bar has gone on
        self.handlers = (("{'", self.piece), ("it/s", self.piece), ("s/it", self.piece))

    def piece(self, offset: int, line: str, whole: bool) -> None:
        if bar := _BAR.match(bare(line)):
            hours, minutes, seconds = (int(bar[n] or 0) for n in (3, 4, 5))
            self.bar(int(bar[1]), int(bar[2]), hours * 3600 + minutes * 60 + seconds)
        elif (text := line.rstrip()).endswith("}") and (found := _DICT.search(text)):
            pairs = _PAIR.findall(text[found.end() : -1])
            self.numbers(offset, line[: found.start()], {n: float(v) for n, v in pairs})

    def bar(self, step: int, total: int, seconds: int) -> None:
        begun, shown = self.begun.get(total), self.shown.get(total, (0, 0))
        if begun is None or step < shown[0] or seconds < shown[1]:
            begun = None
        if step and begun is None:
            begun = step, seconds, self.paused_s
        self.begun[total], self.shown[total] = begun, (step, seconds)
        if total == self.total:
            took = seconds - shown[1] - (self.paused_s - self.paused_by_bar_s)
            if self.window and step == shown[0] + 1 and took >= _SURE_S:
                self.window.alone[step] = took
            self.paused_by_bar_s = self.paused_s
        if step and self.told:  # the bar of training is drawn anew right behind a dict; evaluations draw others
            offset, prefix, found = self.told
            if self.together:
                self.tally.add("lines of numbers", UNSEEN, offset)
                found = {}
            self.told, self.together = None, False
            if self.logged and (total != self.total or step < self.logged[0] or seconds < self.logged[1]):
                self._settle()
                self.again = True
            self.total, self.logged = total, (step, seconds)
            self._logged(offset, prefix, step, seconds, found)

    def numbers(self, offset: int, prefix: str, found: dict[str, float]) -> None:
        if "loss" in found:
            if self.told:
                self.tally.add("lines of numbers", UNSEEN, self.told[0])
                self.together = True
            self.told = offset, prefix, found
            return
        at = self.clock.time_ns(prefix, offset)
        self._evaluated(at, sum(took for name, took in found.items() if _EVALUATED.fullmatch(name)))
        self.values(at, self.last_step, {n: (v, None) for n, v in found.items()})

    def _evaluated(self, at: int | None, seconds: float) -> None:
        """An evaluation that took so long has ended."""
        if not (took := seconds_to_ns(seconds)) or took < 0:
            return
        self.paused_s += seconds
        if at is None:
            return
        self.life.add("eval", at - took, at, self.attempt, self.last_step, None, self.order, self.source)
        self.order += 1
        if self.window:
            self.window.pauses.append((at - took, at))

    def _logged(self, offset: int, prefix: str, step: int, seconds: int, found: dict[str, float]) -> None:
        """A dict of this step, at which the bar had counted so many seconds."""
        if self.window is None:
            began = self.begun.get(self.total or 0)
            self.window = _Window(*(began or (step, seconds, self.paused_s)))
        window = self.window
        self.last_step = step
        if "loss" in found:
            window.losses[step] = found["loss"]
        took = seconds - window.seconds - (self.paused_s - window.paused_s)
        if step > window.step:
            window.last = step, took, prefix, offset
        at = self.clock.time_ns(prefix, offset)
        self.values(at, step, {n: (v, None) for n, v in found.items() if n != "loss"})
        if took >= _LEAST_S and self._is_full(window, step, took):
            self._settle()
            self.window = _Window(step, seconds, self.paused_s)

    def _is_full(self, window: _Window, step: int, took: float) -> bool:
        """Whether a window up to `step` is long enough for a mean of the steps that are no longer than others; where
        most are longer, as once all are, these may never come to that."""
        longer = self._far_longer(window, step, took)
        return took - sum(longer.values()) >= _LEAST_S or _most(longer, step - window.step)

    def _far_longer(self, window: _Window, step: int, took: float) -> dict[int, float]:
        """The seconds of those steps of a window, up to `step`, that took far longer than the others."""
        alone = {n: s for n, s in window.alone.items() if window.step < n <= step}
        others = step - window.step - len(alone)
        usual = (took - sum(alone.values())) / others if others > 0 else self.usual_s
        return {n: s for n, s in alone.items() if usual and s >= _FAR_LONGER * usual > 0}

    def ended(self) -> None:
        if self.told:
            self.tally.add("lines of numbers", UNSEEN, self.told[0])
        self._settle()
        if self.total is not None:
            self.facts["planned_steps"] = self.total

    def _settle(self) -> None:
        """Enter the steps of a window."""
        window, self.window = self.window, None
        if window is None or window.last is None:
            return
        step, took, prefix, offset = window.last
        if self.again:
            self.begins(prefix, None, None)
            self.again = False
        if (taken := self.taken(offset, prefix, step)) is None:
            return
        name, _, at, place = taken
        longer, count = self._far_longer(window, step, took), step - window.step
        if _most(longer, count) and took <= sum(longer.values()) and count > len(longer):
            longer = {}  # in whole seconds the others took none
        took -= sum(longer.values())
        others = count - len(longer)
        sure = took >= _SURE_S or _most(longer, count)
        each = seconds_to_ns(took / others) if others and sure else None
        if each or not others:  # all were longer: it is what steps take from here on
            self.usual_s = took / others if others else sum(longer.values()) / count
        own = {n: seconds_to_ns(s) for n, s in longer.items()}
        around = [pause for pause in window.pauses if at is not None and pause[1] <= at]
        self.enter(name, place, step, count, at, Told(each), EVERY, window.losses, around=around, own=own)


def _most(longer: dict[int, float], count: int) -> bool:
    """Whether so many of `count` steps are far longer that the others are the exception."""
    return 2 * len(longer) > count
