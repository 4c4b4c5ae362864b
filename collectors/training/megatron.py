"""Standard output of Megatron-LM, Megatron-DeepSpeed and NeMo, of every era.

A step line is `iteration N/ M | consumed samples: ... | elapsed time per iteration (ms): X | ...`, printed every
log-interval iterations: its time and its rates are means over the iterations since the line before. One row of `steps`
is made for each of these iterations, since each was taken; where there are several, they share the mean, the fact
`steps_averaged_over` tells how many, and a warning says so. NeMo's lines time the one step they name; of those between
they tell what `unprinted` makes of it. Its saves and restores tell when they began, by which steps are laid whose lines
have no time (`nemo_lines`).

    dur_ns                  the mean, less the saves and evaluations that the printed time includes (older versions
                            stop their timer for neither; the time of day of lines tells, else what steps took before)
    model_flops_per_chip    throughput per GPU (TFLOP/s/GPU), or TFLOPs, * 1e12 * the mean as printed: the job's count;
                            Megatron-Bridge says it in a line before (`Step Time : 3.21s GPU utilization: ...`)
    tokens_per_s_per_chip   tokens per second and GPU where printed, else samples per second, else global batch size by
                            that mean, times sequence length over GPUs; without the saves and evaluations
    loss                    on the row of the printed iteration: it is a mean over them too
    logged_ns               the line's own time, where it has one
    start_ns                so that the rows end when the line was printed; in logs whose lines have no time, laid end
                            to end from `[before the start of training step] datetime`
    attempt                 grows where the program begins again, or where the iteration drops (unless the lines are of
                            hosts mixed in one file, see `attempts`)
    host                    where what stands before the line names one
What stands between two moments that the log dates, and saves, restores and evaluations that it times, become
`lifecycle`; every other number of a step line and the printed timers `scalars`; lines that tell why, `evidence`.
"""

from collections import defaultdict
from collections.abc import Iterator

from collectors.base import Fact, Item, Source
from collectors.reading.attempts import STEP_COLUMNS, Lane, Lanes, Start, StepRows, Taken, highest, much_later
from collectors.reading.evidence import Evidence
from collectors.reading.job_ran import JobRan
from collectors.reading.line_prefix import Clock, host_prefix, pieces, plain
from collectors.reading.textlog import NS_PER_S, Buffer, Tally, fits, is_text_log, lines, seconds_to_ns, tail
from collectors.training import megatron_lines as said
from collectors.training import megatron_timers as timing
from collectors.training import nemo_lines as nemo
from collectors.training.megatron_arguments import Arguments
from collectors.training.megatron_timers import ALL_HEAD, MAX_HEAD, PausesTold, Timers
from collectors.training.step_fields import fields_of, first
from collectors.training.unprinted import BETWEEN, MOST, laid_around, printed_every, stood_for
from errors import InputError

NAME = "megatron"
TITLE = "Megatron log"
HELP = "Megatron-LM, Megatron-DeepSpeed or NeMo training log: iteration times, throughput, loss, checkpoints, model."


def sniff(source: Source) -> float:
    if not is_text_log(source):
        return 0.0
    if said.SNIFF.search(source.head):
        return 0.9
    # A launcher may print its whole environment before the program says a word.
    return 0.8 if said.SNIFF_START.search(source.head) or said.SNIFF.search(tail(source)) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Steps, lifecycle, other metrics and configuration. Raises InputError where the log holds none of them."""
    log = _Log(source)
    empty = True
    for offset, line, whole in lines(source):
        if not line:
            continue
        log.evidence.see(offset, line, log.attempt, log.last_step)
        log.line(offset, plain(line), whole)
        for item in log.batches(full_only=True):
            empty = False
            yield item
    log.timed(0, log.printed.end())
    log.close_job()
    for item in (*log.batches(), *log.facts()):
        empty = False
        yield item
    if empty:
        raise InputError(
            "no iteration in it",
            where=source.name,
            expected="lines such as `iteration 10/ 100 | consumed samples: ... | elapsed time per iteration (ms): ...`",
        )
    yield from log.tally.lost()


class _Log:
    def __init__(self, source: Source):
        self.name, self.tally = source.name, Tally()
        self.clock = Clock(source, self.tally)
        self.evidence = Evidence(source, self.tally, self.clock)
        self.arguments = Arguments(self.tally, JobRan(self.clock))
        self.apart = printed_every(source, said.PRINTED) or 1
        self.nemo_apart = printed_every(source, nemo.PRINTED)
        self.order = self.attempt = 0
        self.averaged: set[int] = set()
        self.hosts: dict[str | None, Lanes] = defaultdict(lambda: Lanes(Start(self.attempt)))
        self._begin()
        if nemo.PRINTED.search(source.head):
            self.cursor = nemo.begun_ns(source, self.nemo_apart)
        self.usual_ns = timing.step_ahead_ns(source.head)  # of a log that was cut, whose first line has none before it
        self.steps = StepRows(*STEP_COLUMNS)
        self.life = Buffer("lifecycle", "kind", "start_ns", "end_ns", "attempt", "step", "detail", "order", "source")
        self.scalars = Buffer("scalars", "ts_ns", "step", "name", "value", "unit", "source")
        # The first needle found decides, so the frequent and the telling ones come first.
        self.handlers = (
            ("elapsed time per iteration", self.step),
            (nemo.TIMING, self.nemo_step),
            ("Global Checkpoint ", self.nemo_checkpoint),
            ("Step Time :", self.utilised),
            ("processes registered. Starting with", self.processes),
            ("time (ms) |", self.timers),
            ("..: ", self.timers),
            (MAX_HEAD, self.timers),
            (ALL_HEAD, self.timers),
            ("datetime: ", self.moment),
            ("saving checkpoint at iteration", self.saving),
            ("loading checkpoint from", self.loading),
            ("loaded checkpoint from", self.loading),
            ("loss at ", self.validation),
            ("time to initialize megatron", self.initialised),
            (" arguments ---", self.program),
            ("using world size", self.program),
        )

    def _begin(self) -> None:
        """Nothing is known of this attempt yet."""
        self.last_step: int | None = None
        self.last_line: tuple[str | None, int, str] | None = None
        self.last_line_ns: int | None = None
        self.leader: Lane | None = None  # of several hosts that print steps, the one that times are laid end to end of
        self.cursor: int | None = None  # the time that the log has come to, ns since the epoch
        self.begun: int | None = None  # that before the last step line
        self.printed_ns: int | None = None  # time of day of the last step line, before the first that training began
        self.paused_ns = 0  # saves and evaluations since the last step line
        self.pauses: list[tuple[int, int]] = []  # the same with start and end, where the log dates anything
        self.around: list[tuple[int, int]] = []  # those that the last step line's iterations lie around
        self.taken_off_ns = 0  # of them, what the last step line's time included
        self.beside_ns = 0  # and what it did not
        self.usual_ns: int | None = None  # a step by the last line with no pause before it, not the first
        self.initialised_ns: int | None = None
        self.initialising_ns = 0
        self.job: list[int | None] = [None, None, self.attempt]  # start, end, attempt
        self.save_step: int | None = None
        self.save_ns: int | None = None
        self.told = PausesTold()
        self.loaded_step: int | None = None
        self.restoring, self.restore_ns = False, 0
        self.printed = Timers()
        self.told_before: tuple[float, float] | None = None  # of the next step line

    def batches(self, full_only: bool = False) -> Iterator[Item]:
        for buffer in (self.steps, self.life, self.scalars, self.evidence):
            yield from buffer.full() if full_only else buffer.rest()

    def line(self, offset: int, line: str, whole: bool) -> None:
        if self.printed.by_rank and whole and (ended := self.printed.below(line)) is not None:
            return self.timed(offset, ended, line)
        for needle, handle in self.handlers:
            if needle in line:
                if self.printed.by_rank:
                    self.timed(offset, self.printed.end(), line)
                for piece in pieces(line):
                    handle(offset, piece, whole)
                break
        else:
            if whole:
                self.arguments.line(offset, line, self.order)

    # --- steps

    def step(self, offset: int, line: str, whole: bool) -> None:
        match = said.STEP.search(line)
        if not match:
            if said.BELOW_ZERO.search(line):
                self.tally.add("step lines", "their iteration is below zero: refused", offset)
            return
        fields = fields_of(match[2], cut_off=not whole)
        elapsed = next((fields[name] * unit for name, unit in said.ELAPSED.items() if name in fields), None)
        said.with_utilised(fields, elapsed, self.told_before)
        self.told_before = None
        step, each_ns = int(match[1]), seconds_to_ns(elapsed)
        if not fits(step) or each_ns is None or each_ns < 0:
            self.tally.add("step lines", "they name an iteration but give no time for it", offset)
        else:
            before = line[: match.start()]
            host = host_prefix(before)
            at = self.clock.time_ns(before, offset)
            if (host, step, match[2]) == self.last_line and not much_later(self.last_line_ns, at, each_ns):
                self.tally.add("step lines", "each repeats the line before it word for word", offset)
                return
            taken = self._taken(host, step, at, each_ns)
            self.last_line, self.last_line_ns = (host, step, match[2]), at
            self._steps(taken, host, step, self._covered(taken, step, offset), each_ns, at, fields)

    def utilised(self, offset: int, line: str, whole: bool) -> None:
        self.told_before = said.utilised(line) if whole else None

    def nemo_step(self, offset: int, line: str, whole: bool) -> None:
        match = nemo.STEP.match(line)
        if not match or (not whole and not line[match.end() :].strip()):
            return
        step, dur_ns, before = int(match[2]), seconds_to_ns(float(match[3])), line[: match.start("step")]
        host = host_prefix(before)
        if any(lane.last == step for lane in self.hosts[host].now) or not fits(step):
            return  # a progress bar shows each step many times
        fields = nemo.metrics(line, cut_off=not whole)
        self.arguments.batch(fields)
        at = self.clock.time_ns(before, offset)
        taken = self._taken(host, step, at, dur_ns)
        gap = None if taken.lane.took_ns is None else taken.lane.took_ns - self.paused_ns
        count, each_ns = stood_for(step, taken.before, self.nemo_apart, dur_ns or 0, gap)
        self.usual_ns = self.usual_ns or each_ns  # what is printed holds no save
        self._steps(taken, host, step, count, each_ns, at, fields, BETWEEN)

    def nemo_checkpoint(self, offset: int, line: str, whole: bool) -> None:
        """A save, behind which undated steps go on; a restore, with which the program begins."""
        if (found := nemo.checkpoint(line, offset, self.clock)) is None:
            return
        if found.kind == "checkpoint_restore" and self.last_step is not None:
            self.close_job()
            self._next_attempt()
        start, took = found.start, found.end - found.start
        if self.last_step is None:
            self.cursor = found.end
        elif self.cursor is not None and found.step in (self.last_step, self.last_step + 1):  # by either count
            if self.printed_ns is None:  # steps that are laid end to end may have come beyond
                start = max(start, self.cursor)
            self.cursor = start
        self._live(found.kind, start, start + took, found.step)
        if self.last_step is not None:
            self.paused_ns += took
            self.pauses.append((start, start + took))

    def _taken(self, host: str | None, step: int, at: int | None, dur_ns: int | None) -> Taken:
        """Where a step line belongs. Where the iteration drops, the same process goes on from an earlier one."""
        lanes = self.hosts[host]
        before = lanes.attempt
        taken = lanes.take(step, at, dur_ns)
        attempt = highest(self.attempt, before, lanes, self.hosts.values())
        if attempt > self.attempt:
            job, cursor = self.job, self.cursor
            self._begin()
            self.job, self.cursor = job, cursor
        self.attempt = attempt
        return taken

    def _leads(self, lane: Lane) -> bool:
        """Whether a lane is the one by which the log's own time goes on: the first that is still alive."""
        if self.leader is not lane and not any(self.leader in lanes.now for lanes in self.hosts.values()):
            self.leader = lane
        return self.leader is lane

    def _covered(self, taken: Taken, step: int, offset: int) -> int:
        """How many iterations the line of `step` stands for."""
        interval = self.arguments.number("log_interval")
        if not interval and taken.before is None and self.loaded_step is None and step % self.apart == 0:
            interval = self.apart  # a log that was rotated: the arguments stand in its first part
        begun = taken.before if taken.before is not None else self.loaded_step
        since = step - begun if begun is not None else step if interval else 1
        covered = min(since, interval) if interval else since
        if not 1 <= covered <= MOST:
            self.tally.add("gaps between iterations", "too long for one line to stand for all of them", offset)
            return 1
        return covered

    def _steps(
        self,
        taken: Taken,
        host: str | None,
        step: int,
        count: int,
        each_ns: int | None,
        at: int | None,
        fields: dict[str, float],
        averaged: str = "their time is the mean over the log interval",
    ) -> None:
        """Rows of the `count` iterations up to `step`, of which each took `each_ns` in the mean."""
        total, end, leads = (each_ns or 0) * count, at, self._leads(taken.lane)
        if leads:
            self.begun = self.cursor
            gap = None if at is None or self.printed_ns is None else at - self.printed_ns
            usual = None if gap is not None or self.usual_ns is None else self.usual_ns * count
            paused = 0 < self.paused_ns < total and timing.ran_on(total, self.paused_ns, gap, usual)
            self.taken_off_ns = self.paused_ns if paused else 0
            self.beside_ns = self.paused_ns - self.taken_off_ns
            self.around = self.pauses if count > 1 else []
        if at is None and self.begun is not None:
            end = self.begun + self.beside_ns + total
            self.tally.add("times of steps", "laid end to end from the start of training: their lines have no time")
        tokens, flops = self.arguments.tokens_per_s(fields, each_ns), first(fields, said.TFLOPS)
        flops = None if flops is None or not each_ns else flops * 1e12 * each_ns / 1e9
        if 0 < self.taken_off_ns < total:
            tokens = tokens and tokens * total / (total - self.taken_off_ns)
            each_ns = (total - self.taken_off_ns) // count
        laid = None if end is None or each_ns is None else laid_around(end, [each_ns] * count, self.around)
        if laid and self.last_step is None and self.job[0] is not None and 0 < self.job[0] - laid[0] <= NS_PER_S:
            self.job[0] = laid[0]  # both are dated to the second: no step began before its job
        for n in range(count):
            start = None if laid is None else laid[n]
            last = n == count - 1
            self.steps.add(
                taken.start,
                step - count + 1 + n,
                host,
                start,
                each_ns,
                tokens,
                flops,
                first(fields, said.LOSSES, finite=False) if last else None,
                self.order,
                at if last else None,
                NAME,
                self.name,
            )
            self.order += 1
        if count > 1:
            self.averaged.add(count)
            self.tally.add("iterations", averaged, count=count)
        for name, value in fields.items():
            if name not in said.OWN:
                self.scalars.add(end, step, name, value, said.UNITS.get(name), self.name)
        self.last_step = step
        if leads:
            if not self.paused_ns and taken.before is not None:
                self.usual_ns = each_ns
            self.cursor, self.printed_ns, self.paused_ns, self.pauses = end, at, 0, []

    # --- what the log times

    def timers(self, offset: int, line: str, whole: bool) -> None:
        self.timed(offset, self.printed.on_line(line) if whole else [], line)

    def timed(self, offset: int, timers: list[tuple[str, str]], line: str = "") -> None:
        for name, milliseconds in timers:
            dur_ns = seconds_to_ns(float(milliseconds) / 1e3)
            if dur_ns is None:
                continue
            if name == "save-checkpoint":
                if self._first_told("checkpoint_save", line, offset):
                    self._pause("checkpoint_save", self.save_ns, dur_ns, self.save_step, offset)
                self.save_step = self.save_ns = None
            elif name in ("evaluate", "eval-time"):
                if self._first_told("eval", line, offset):
                    self._pause("eval", None, dur_ns, self.last_step, offset)
            elif name == "load-checkpoint":
                self.restore_ns = dur_ns
            else:
                self.scalars.add(None, self.last_step, f"timers/{name}", float(milliseconds), "ms", self.name)

    def _first_told(self, kind: str, line: str, offset: int) -> bool:
        """Whether no other of several hosts that write into one log has timed this pause before."""
        several = sum(len(lanes.now) for lanes in self.hosts.values()) > 1
        first = self.told.first(kind, self.last_step, host_prefix(line)) or not several
        if not first:
            self.tally.add("saves and evaluations", "another host of the same log timed them too: entered once", offset)
        return first

    def _pause(self, kind: str, start: int | None, dur_ns: int, step: int | None, offset: int) -> None:
        """An interval between two iterations."""
        if start is None and self.cursor is not None:
            start = max(self.cursor, self.pauses[-1][1]) if self.pauses else self.cursor
        self.paused_ns += dur_ns
        if start is not None:
            self.pauses.append((start, start + dur_ns))
        if start is None:
            self.tally.add("saves and evaluations", "the log dates nothing: no place in the lifecycle", offset)
        else:
            self._live(kind, start, start + dur_ns, step)

    def saving(self, offset: int, line: str, whole: bool) -> None:
        if match := said.SAVING.search(line):
            self.save_step = int(match[1]) if fits(int(match[1])) else None
            self.save_ns = self.clock.time_ns(line[: match.start()], offset)

    def loading(self, offset: int, line: str, whole: bool) -> None:
        self.restoring = True
        if (match := said.LOADED.match(line)) and fits(int(match[1])):
            self.loaded_step = int(match[1])

    def validation(self, offset: int, line: str, whole: bool) -> None:
        if match := said.VALIDATED.search(line):
            step = int(match[2]) if match[2] and fits(int(match[2])) else self.last_step
            for name, value in fields_of(match[3], cut_off=not whole).items():
                self.scalars.add(self.cursor, step, f"{match[1]}/{name}", value, None, self.name)

    # --- starts and ends of the program

    def program(self, offset: int, line: str, whole: bool) -> None:
        if "end of arguments" not in line and (self.last_step is not None or self.job[0] is not None):
            self.close_job()
            self._next_attempt()
        self.arguments.program(offset, line, self.order)

    def processes(self, offset: int, line: str, whole: bool) -> None:
        if whole:
            self.arguments.processes(offset, line, self.order)

    def initialised(self, offset: int, line: str, whole: bool) -> None:
        if (match := said.INITIALISED.search(line)) and whole:
            self.initialising_ns = seconds_to_ns(float(match[1])) or 0

    def moment(self, offset: int, line: str, whole: bool) -> None:
        if (told := said.moment(line, offset, self.clock)) is None:
            return
        what, at = told
        self.cursor = at
        if self.job[0] is None:
            self.job[0] = at - (self.initialising_ns if what == "after megatron is initialized" else 0)
        if what == "after megatron is initialized":
            self.initialised_ns = at
            if self.initialising_ns:
                self._live("accelerator_initialization", at - self.initialising_ns, at)
        elif what.startswith("after model"):
            if self.restoring and self.restore_ns:
                self._live("checkpoint_restore", at - self.restore_ns, at)
        elif what.startswith("before the start of training"):
            self.printed_ns = at
            if self.initialised_ns is not None:
                self._live("training_preparation", self.initialised_ns, at)
        elif what == "after training is done" or (what.startswith("exiting program") and "SIGTERM" not in what):
            self.job[1] = at

    def close_job(self) -> None:
        """Enter the attempt: open-ended where the log does not say that the program came to its end."""
        start, end, attempt = self.job
        if start is not None:
            self._live("job", start, end, attempt=attempt)

    def _next_attempt(self) -> None:
        self.attempt += 1
        self.hosts.clear()
        self._begin()

    def _live(
        self, kind: str, start: int, end: int | None, step: int | None = None, attempt: int | None = None
    ) -> None:
        if fits(start) and (end is None or fits(end)):
            attempt = self.attempt if attempt is None else attempt
            self.life.add(kind, start, end, attempt, step, None, self.order, self.name)
            self.order += 1

    def facts(self) -> Iterator[Fact]:
        yield from self.arguments.facts()
        if self.averaged:
            yield Fact("steps_averaged_over", max(self.averaged))
