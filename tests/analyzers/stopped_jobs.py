"""Jobs whose interruptions are known: attempts laid end to end by plain arithmetic, and what their logs said."""

from dataclasses import dataclass, field

from runs.tables import MemoryTables

EPOCH = 1_767_571_200_000_000_000
S = 1_000_000_000
STEP_S, INIT_S, COMPILE_S = 10, 30, 60


@dataclass
class Attempt:
    """`steps` steps are begun; then it dies `down_s` before the next start and `lost` of them are taken again.

    `lines`: (seconds after the last step began, cause, host, severity, text).
    """

    steps: int
    lost: int = 0
    down_s: int = 100
    lines: list[tuple] = field(default_factory=list)


@dataclass
class Job:
    """`begun` (of the job) and `last_sign` (of the attempt) in ns, `resumed` and `reached` step numbers, by attempt."""

    attempts: list[Attempt]
    end: bool = True
    begun: list[int] = field(default_factory=list)
    last_sign: list[int] = field(default_factory=list)
    resumed: list[int] = field(default_factory=list)
    reached: list[int] = field(default_factory=list)

    def columns(self) -> dict[str, dict]:
        now, step = EPOCH, 0
        steps = {"attempt": [], "step": [], "start_ns": [], "order": []}
        life = {"kind": [], "start_ns": [], "end_ns": [], "attempt": [], "order": []}
        said = {c: [] for c in ("ts_ns", "attempt", "host", "cause", "severity", "text", "offset", "order", "source")}

        def event(kind: str, start: int, end: int | None, attempt: int) -> None:
            for name, value in zip(life, (kind, start, end, attempt, len(life["kind"])), strict=True):
                life[name].append(value)

        for k, attempt in enumerate(self.attempts):
            last = k == len(self.attempts) - 1
            self.begun.append(now)
            self.resumed.append(step)
            event("accelerator_initialization", now, now + INIT_S * S, k)
            begin, at = now, now + INIT_S * S
            for n in range(attempt.steps):
                for name, value in zip(steps, (k, step, at, len(steps["step"])), strict=True):
                    steps[name].append(value)
                sign, step = at, step + 1
                at += (COMPILE_S if n == 0 else STEP_S) * S
            self.last_sign.append(sign)
            self.reached.append(step - 1)
            event("job", begin, at if last and self.end else None, k)
            for after_s, cause, host, severity, text in attempt.lines:
                n = len(said["text"])
                row = (sign + round(after_s * S), k, host, cause, severity, text, 100 * n, n, "syslog")
                for name, value in zip(said, row, strict=True):
                    said[name].append(value)
            step -= attempt.lost
            now = sign + attempt.down_s * S
        return {"steps": steps, "lifecycle": life, "evidence": said}

    def tables(self) -> MemoryTables:
        return MemoryTables(self.columns())
