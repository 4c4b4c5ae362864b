"""Which tokens of which sequences go through the next iteration, and who must give up its pages for them."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from reference.serve.cache import PageCache
from reference.serve.plan import EngineConfig


@dataclass(eq=False)
class Sequence:
    """A request on its way. `tokens` is its prompt and its answer so far; of the first `computed` of them the cache
    has keys and values. It generates from `until` on; before, tokens are read (again, after a preemption)."""

    id: str
    tenant: str
    stage: str
    prompt: bytes
    max_tokens: int
    arrival_ns: int
    send: Callable[[bytes | None], None] = lambda piece: None  # to the client; None: that was all
    tokens: bytearray = field(default_factory=bytearray)
    computed: int = 0
    until: int = 0
    furthest: int = 0  # most tokens that were ever computed
    pages: list[int] = field(default_factory=list)
    names: list[int] = field(default_factory=list)  # of its full pages
    scheduled_ns: int | None = None
    pieces_ns: list[int] = field(default_factory=list)
    cached_tokens: int | None = None
    preemptions: int = 0
    drafted: int = 0
    accepted: int = 0
    status: str | None = None
    error: str | None = None
    left: bool = False  # the client is gone

    @property
    def output(self) -> bytes:
        return bytes(self.tokens[len(self.prompt) :])

    @property
    def reading(self) -> bool:
        return self.computed < self.until


@dataclass(frozen=True)
class Part:
    """What one sequence has in an iteration: `count` tokens from `sequence.computed` on, the last `drafts` of them
    draft tokens. `recomputed` of them had been computed before a preemption."""

    sequence: Sequence
    count: int
    reading: bool
    drafts: int = 0
    recomputed: int = 0

    def rows(self, row: int) -> int:
        return -(-self.count // row)


class Scheduler:
    """First come, first served. Running sequences first, each that generates with one row; then new ones, their
    prompts cut to what is left of the budget. Where pages run out, the latest arrival gives up all of its own."""

    def __init__(self, config: EngineConfig):
        self.config, self.cache = config, PageCache(config.pages, config.page)
        self.running: list[Sequence] = []  # in order of arrival
        self.waiting: deque[Sequence] = deque()
        self.prefix_queries = self.prefix_hits = 0

    def drop(self, sequence: Sequence) -> None:
        """Forget a sequence that is finished or whose client left."""
        (self.running if sequence in self.running else self.waiting).remove(sequence)
        self.cache.release(sequence.pages)
        sequence.pages = []

    def schedule(self, now_ns: int) -> tuple[list[Part], int]:
        """The parts of the next iteration, and how many sequences were put back for it."""
        preempted = 0
        while self.cache.held > self.cache.allowed:  # pages were withdrawn
            preempted += self._preempt()
        parts, rows = [], self.config.token_budget // self.config.row
        position = 0
        while position < len(self.running):
            sequence = self.running[position]
            part = self._part(sequence, rows)
            while part and position < len(self.running) and not self._reserve(sequence, part.count):
                preempted += self._preempt()
            if position == len(self.running):
                break  # it was itself the latest
            if part:
                parts.append(part)
                rows -= part.rows(self.config.row)
            position += 1
        while not preempted and self.waiting and len(self.running) < self.config.max_seqs and rows:
            part = self._admit(self.waiting[0], rows, now_ns)
            if part is None:
                break
            self.running.append(self.waiting.popleft())
            parts.append(part)
            rows -= part.rows(self.config.row)
        return parts, preempted

    def _part(self, s: Sequence, rows: int) -> Part | None:
        """What it can do with so many rows; None where there are none."""
        if not rows:
            return None
        if s.reading:
            count = min(s.until - s.computed, rows * self.config.row)
            again = max(min(s.computed + count, s.furthest) - s.computed, 0)
            return Part(s, count, True, recomputed=again)
        missing = s.max_tokens - (len(s.tokens) - len(s.prompt))
        drafts = min(self.config.row, missing) - 1  # all may be kept, and one token is sure
        return Part(s, 1 + drafts, False, drafts)

    def _reserve(self, s: Sequence, count: int) -> bool:
        """Whether `s` has pages for `count` more tokens, new ones taken where it lacks some."""
        lacking = -(-(s.computed + count) // self.config.page) - len(s.pages)
        taken = self.cache.allocate(lacking) if lacking > 0 else []
        if taken is None:
            return False
        s.pages += taken
        return True

    def _admit(self, s: Sequence, rows: int, now_ns: int) -> Part | None:
        """Its first part, its pages held; None, and nothing changed, where there are too few."""
        self.cache.names(s.tokens, s.names)
        found = self.cache.find(s.names[: (len(s.tokens) - 1) // self.config.page])  # one token at least is computed
        self.cache.hold(found)
        s.pages, s.computed, s.until = found, len(found) * self.config.page, len(s.tokens)
        part = self._part(s, rows)
        if not self._reserve(s, part.count):
            self.cache.release(found)
            s.pages, s.computed = [], 0
            return None
        if s.scheduled_ns is None:
            s.scheduled_ns, s.cached_tokens = now_ns, s.computed
            self.prefix_queries += len(s.prompt)
            self.prefix_hits += s.computed
        return part

    def _preempt(self) -> int:
        s = self.running.pop()
        self.cache.release(s.pages)
        s.pages, s.computed, s.preemptions = [], 0, s.preemptions + 1
        self.waiting.appendleft(s)
        return 1
