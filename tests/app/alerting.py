"""Jobs to be alerted about, and a real webhook on this machine that takes the messages."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from runs.alert_book import Judged
from runs.live import Live
from tests.app import made_runs

S = 1_000_000_000


@contextmanager
def webhook(*answers: int):
    """A server that keeps every message posted to it; it answers with these codes, then with 200."""
    got, codes = [], list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            got.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self.send_response(codes.pop(0) if codes else 200)
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/services/SECRET", got
    finally:
        server.shutdown()
        server.server_close()


def followed(read_ns: int, **more) -> Live:
    """A live run whose log was read until then."""
    return Live("j", "p", "llama", read_ns=read_ns, **more)


def job(place, name: str, steps: int, lost: int, job_name: str = "llama"):
    """A run of `job_name`: `steps` of 20 s kept; before them a failure costs `lost` seconds of waiting."""
    start = made_runs.START_NS
    begun = start + (5 + lost) * S
    numbers = list(range(steps + 5))
    starts = [start + 20 * S * n for n in range(5)] + [begun + 100 * S + 20 * S * n for n in range(steps)]
    tables = {
        "steps": {"step": numbers, "start_ns": starts, "order": numbers, "model_flops_per_chip": [1e15] * len(numbers)},
        "lifecycle": {
            "kind": ["job", "job"],
            "start_ns": [start, begun + 99 * S],
            "end_ns": [None, starts[-1] + 20 * S],
            "order": [0, 1],
        },
    }
    return made_runs.write(place.store, name, tables, {"chips": 4, "chip": "v5p", "job_name": job_name})


def judged(subject: str, state: str = "open", moment=(1, 1), **more):
    usual = {"rule": "goodput", "run_id": "r", "name": "n", "value": 0.5, "threshold": 0.9, "sentence": "low"}
    return Judged(subject=subject, state=state, moment=moment, **{**usual, **more})
