"""The engine in its process: requests in, iterations, and at the end its records."""

import json
import queue
import threading
from pathlib import Path

import jax

from reference.serve.engine import Engine, now_ns
from reference.serve.loggers import Metrics, StatLines
from reference.serve.plan import Plan
from reference.serve.scheduler import Sequence

IDLE_S = 0.05  # how long an idle engine waits before it looks whether a line of the log is due


class Service:
    """The one engine and what its threads share: handlers put jobs into `inbox`, the main thread does them."""

    def __init__(self, plan: Plan, engine: Engine):
        self.plan, self.engine = plan, engine
        self.metrics = Metrics(plan, engine.scheduler)
        self.inbox: queue.SimpleQueue = queue.SimpleQueue()
        self.refused: list[Sequence] = []
        self.events: list[dict] = []
        self.idle_ns = 0  # waiting with no request in the engine
        self._ended = 0
        engine.on_step = self._on_step

    def event(self, what: str, **fields) -> None:
        self.events.append({"event": what, "ns": now_ns(), **fields})

    def _on_step(self, row: dict, pieces: list[tuple[Sequence, int]]) -> None:
        self.metrics.record(row, pieces, self.engine.accepted_at, self.engine.drafts)

    def run(self, lines: StatLines, closed: threading.Event) -> None:
        """Iterations and the inbox, until `closed`."""
        while not closed.is_set():
            self._empty_inbox()
            if self.engine.busy:
                with jax.profiler.TraceAnnotation("iteration"):
                    self.engine.step()
            if ended := self.engine.done[self._ended :]:
                self.metrics.finish(ended)
                self._ended += len(ended)
                for sequence in ended:  # counted first: who knows that all is done may ask for the counters at once
                    sequence.send(None)
            lines.tick()

    def _empty_inbox(self) -> None:
        while True:
            idle, since_ns = not self.engine.busy, now_ns()
            try:
                job = self.inbox.get(block=idle, timeout=IDLE_S)
            except queue.Empty:
                return
            finally:
                self.idle_ns += idle * (now_ns() - since_ns)
            job()

    def leave_records(self) -> None:
        """Writes what happened, for `bundle` to read."""
        cache, engine = self.engine.scheduler.cache, self.engine
        everyone = sorted((*engine.done, *self.refused), key=lambda s: s.id)
        said = {
            "events": self.events,
            "idle_ns": self.idle_ns,
            "accepted_at": engine.accepted_at,
            "drafts": engine.drafts,
            "counters": self.metrics.counters,
            "finished": self.metrics.finished,
        }
        requests = [record(s) | {"hash_ids": cache.blocks(s.prompt)} for s in everyone]
        Path("requests.json").write_text(json.dumps(requests))
        Path("iterations.json").write_text(json.dumps(engine.iterations))
        Path("events.json").write_text(json.dumps(said))

    def submit(self, sequence: Sequence) -> str | None:
        """Takes a request up; or says why not."""
        asked, most = len(sequence.prompt) + sequence.max_tokens, self.plan.engine.context
        if asked <= most:
            self.inbox.put(lambda: self.engine.add(sequence))
            return None
        sequence.status = "failed"
        sequence.error = (
            f"This model's maximum context length is {most} tokens. However, you requested {asked} tokens "
            f"({len(sequence.prompt)} in the prompt, {sequence.max_tokens} in the completion)."
        )
        self.refused.append(sequence)
        return sequence.error

    def administer(self, order: dict) -> None:
        """What the launcher wants: {phase, pages} or {profile: true or false}; returns when it is done."""
        if "phase" in order:
            done = threading.Event()
            self.inbox.put(lambda: (self._begin(order["phase"], order["pages"]), done.set()))
            done.wait()
        elif order["profile"]:
            options = jax.profiler.ProfileOptions()
            options.python_tracer_level, options.host_tracer_level = 0, 1
            jax.profiler.start_trace("profile", profiler_options=options)
            self.event("profile_start")
        else:
            self.event("profile_stop")
            jax.profiler.stop_trace()
            self.event("profile_exported")

    def _begin(self, phase: str, pages: int | None) -> None:
        self.engine.scheduler.cache.allow(pages or self.plan.engine.pages)
        self.event("phase", phase=phase, pages_allowed=self.engine.scheduler.cache.allowed)


def record(s: Sequence) -> dict:
    """A request as the table `requests` has it, but for its hash_ids."""
    gaps = [b - a for a, b in zip(s.pieces_ns, s.pieces_ns[1:], strict=False)]
    return {
        "id": s.id,
        "stage": s.stage,
        "replica": "0",
        "tenant": s.tenant,
        "arrival_ns": s.arrival_ns,
        "scheduled_ns": s.scheduled_ns,
        "first_token_ns": s.pieces_ns[0] if s.pieces_ns else None,
        "last_token_ns": s.pieces_ns[-1] if s.pieces_ns else None,
        "prompt_tokens": len(s.prompt),
        "cached_tokens": s.cached_tokens,
        "output_tokens": len(s.output) if s.tokens else 0,
        "gaps_ns": gaps,
        "preemptions": s.preemptions,
        "accepted": s.accepted,
        "drafted": s.drafted,
        "status": s.status,
        "error": s.error,
    }
