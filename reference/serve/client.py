"""The client of a run: sends the traffic by the clock, scrapes `/metrics`, and sums up what it saw as a load test does.

The summary has the keys of `vllm bench serve --save-result --save-detailed`, computed as that tool computes them.
"""

import http.client
import json
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from reference.serve.plan import Plan
from reference.serve.traffic import Ask

HOST = "127.0.0.1"
LEFT = "the client left"
PERCENTILES = (50, 90, 95, 99)


@dataclass
class Answer:
    """What the client saw of one request: times by its own clock, in seconds since the epoch and as durations."""

    ask: Ask
    sent_s: float = 0.0
    start_s: float = 0.0  # on the clock that durations are of
    ttft_s: float = 0.0
    gaps_s: list[float] = field(default_factory=list)
    latency_s: float = 0.0
    output_tokens: int = 0
    error: str = ""
    done: bool = False


def _send(port: int, answer: Answer) -> None:
    """One request, streamed; fills in `answer`."""
    ask = answer.ask
    body = {"prompt": ask.prompt.decode("ascii"), "max_tokens": ask.max_tokens, "stream": True, "user": ask.tenant}
    headers = {"Content-Type": "application/json", "X-Request-Id": ask.id, "X-Phase": ask.phase}
    answer.sent_s, answer.start_s = time.time(), time.perf_counter()
    try:
        connection = http.client.HTTPConnection(HOST, port, timeout=300)
        connection.request("POST", "/v1/completions", json.dumps(body), headers)
        with connection.getresponse() as response:
            if response.status != 200:
                answer.error = json.loads(response.read())["error"]["message"]
                return
            for line in response:
                if line.startswith(b"data: {"):
                    _take(answer, json.loads(line[6:]), time.perf_counter())
                if answer.error:
                    return
        answer.error = "" if answer.done else "the answer broke off"
    except OSError as e:
        answer.error = f"{type(e).__name__}: {e}"
    finally:
        connection.close()


def _take(answer: Answer, event: dict, now_s: float) -> None:
    """One event of the stream: a piece of output, or the count at the end."""
    if "usage" in event:
        answer.output_tokens, answer.done = event["usage"]["completion_tokens"], True
        return
    since_s = now_s - answer.start_s
    if answer.ttft_s:
        answer.gaps_s.append(since_s - answer.latency_s)
    else:
        answer.ttft_s = since_s
    answer.latency_s = since_s  # the time of the last piece
    if len(answer.gaps_s) + 1 == answer.ask.leave_after:
        answer.error = LEFT


def get(port: int, path: str) -> str:
    connection = http.client.HTTPConnection(HOST, port, timeout=60)
    connection.request("GET", path)
    text = connection.getresponse().read().decode()
    connection.close()
    return text


def order(port: int, **what) -> None:
    """Tells the engine to begin a phase or a profile; returns when it has."""
    connection = http.client.HTTPConnection(HOST, port, timeout=120)
    connection.request("POST", "/admin", json.dumps(what), {"Content-Type": "application/json"})
    connection.getresponse().read()
    connection.close()


class Scraper(threading.Thread):
    """Appends `/metrics` to a file at a steady pace, each time after a line with the time of the scrape."""

    def __init__(self, port: int, path: Path, every_s: float):
        super().__init__(daemon=True)
        self._port, self._path, self._every_s = port, path, every_s
        self._halt = threading.Event()

    def run(self) -> None:
        due_s = time.monotonic()
        with self._path.open("w") as f:
            last = False
            while not last:
                last = self._halt.wait(max(due_s - time.monotonic(), 0))  # the counters of the end are kept as well
                due_s += self._every_s
                at_ns, text = time.time_ns(), get(self._port, "/metrics")
                f.write(f"# scraped_at {at_ns // 10**9}.{at_ns % 10**9:09d}\n{text}")

    def stop(self) -> None:
        self._halt.set()
        self.join()


def replay(plan: Plan, port: int, asks: list[Ask]) -> tuple[list[Answer], float, float]:
    """Sends everything by the clock; what the client saw, and when the plan began and ended, s since the epoch."""
    start_s = time.time()
    answers = [Answer(ask) for ask in asks]
    todo: list[tuple[float, int, object]] = [(a.ask.at_s, i, a) for i, a in enumerate(answers)]
    begin_s = 0.0
    for n, phase in enumerate(plan.phases):
        todo.append((begin_s, -len(plan.phases) + n, phase))
        if phase.profile_s:
            middle_s = begin_s + phase.seconds / 2
            todo.append((middle_s, len(asks), {"profile": True}))
            todo.append((middle_s + phase.profile_s, len(asks), {"profile": False}))
        begin_s += phase.seconds
    threads = []
    for at_s, _, what in sorted(todo, key=lambda t: t[:2]):
        time.sleep(max(start_s + at_s - time.time(), 0))
        if isinstance(what, Answer):
            threads.append(threading.Thread(target=_send, args=(port, what), daemon=True))
            threads[-1].start()
        elif isinstance(what, dict):
            threads.append(threading.Thread(target=order, args=(port,), kwargs=what, daemon=True))
            threads[-1].start()
        else:
            order(port, phase=what.name, pages=what.pages)
    time.sleep(max(start_s + begin_s - time.time(), 0))
    deadline_s = time.monotonic() + plan.drain_s
    for thread in threads:
        thread.join(max(deadline_s - time.monotonic(), 0))
    if any(thread.is_alive() for thread in threads):
        raise RuntimeError(f"requests are still open {plan.drain_s:.0f} s after the last phase")
    return answers, start_s, start_s + begin_s


def summary(plan: Plan, answers: list[Answer]) -> dict:
    """The result file of a load test. Times are rounded to microseconds before anything is made of them."""
    done = [a for a in answers if a.done]
    first_s = min(a.start_s for a in answers)
    duration_s = max(a.start_s + a.latency_s for a in done) - first_s
    inputs, outputs = sum(len(a.ask.prompt) for a in done), sum(a.output_tokens for a in done)
    metrics = {
        "ttft": [_us(a.ttft_s) for a in done],
        "tpot": [(_us(a.latency_s) - _us(a.ttft_s)) / (a.output_tokens - 1) for a in done if a.output_tokens > 1],
        "itl": [_us(gap) for a in done for gap in a.gaps_s],
        "e2el": [_us(a.latency_s) for a in done],
    }
    planned_s = sum(p.seconds for p in plan.phases)
    result = {
        "date": datetime.fromtimestamp(max(a.sent_s + a.latency_s for a in done), UTC).strftime("%Y%m%d-%H%M%S"),
        "backend": "reference",
        "endpoint_type": "reference",
        "label": None,
        "model_id": plan.name,
        "tokenizer_id": "bytes",
        "num_prompts": len(answers),
        "request_rate": len(answers) / planned_s,
        "burstiness": plan.phases[0].cv ** -2,
        "max_concurrency": None,
        "duration": duration_s,
        "completed": len(done),
        "failed": len(answers) - len(done),
        "total_input_tokens": inputs,
        "total_output_tokens": outputs,
        "request_throughput": len(done) / duration_s,
        "output_throughput": outputs / duration_s,
        "total_token_throughput": (inputs + outputs) / duration_s,
        "input_lens": [len(a.ask.prompt) for a in answers],
        "output_lens": [a.output_tokens for a in answers],
        "ttfts": [_us(a.ttft_s) for a in answers],
        "itls": [[_us(g) for g in a.gaps_s] for a in answers],
        "latencies": [_us(a.latency_s) for a in answers],
        "start_times": [_us(a.start_s) for a in answers],
        "errors": [a.error for a in answers],
    }
    for name, values in metrics.items():
        ms = np.array(values) * 1e3
        result |= {f"mean_{name}_ms": ms.mean(), f"median_{name}_ms": np.median(ms), f"std_{name}_ms": ms.std()}
        result |= {f"p{p}_{name}_ms": np.percentile(ms, p) for p in PERCENTILES}
    return {k: float(v) if isinstance(v, np.floating) else v for k, v in result.items()}


def _us(seconds: float) -> float:
    return round(seconds, 6)
