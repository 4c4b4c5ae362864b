"""The engine's process: `python -m reference.serve.server PLAN WEIGHTS`, in the job's folder.

Serves HTTP on a free port of the loopback address, written to the file `port` once every program is compiled:
`/v1/completions` (streaming), `/metrics`, and `/admin`, where the launcher withdraws pages and profiles. Ends when its
standard input closes, and leaves behind `requests.json`, `iterations.json` and `events.json`.
"""

import json
import os
import queue
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import jax
import jaxlib

from reference.serve import training
from reference.serve.engine import Engine, now_ns
from reference.serve.loggers import StatLines, logger_to
from reference.serve.model import parameters
from reference.serve.plan import Plan
from reference.serve.scheduler import Sequence
from reference.serve.service import Service
from reference.train.benchmark import matmul_rounds


class Handler(BaseHTTPRequestHandler):
    service: Service

    def log_message(self, *_) -> None:
        pass

    def do_GET(self) -> None:
        self._answer(200, self.service.metrics.text().encode(), "text/plain; version=0.0.4")

    def do_POST(self) -> None:
        arrival_ns = now_ns()
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/admin":
            self.service.administer(body)
            return self._answer(200, b"{}", "application/json")
        pieces: queue.SimpleQueue = queue.SimpleQueue()
        sequence = Sequence(
            self.headers["X-Request-Id"],
            body["user"],
            self.headers["X-Phase"],
            body["prompt"].encode("ascii"),
            body["max_tokens"],
            arrival_ns,
            send=pieces.put,
        )
        if (error := self.service.submit(sequence)) is not None:
            return self._answer(400, json.dumps({"error": {"message": error}}).encode(), "application/json")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        try:
            while (piece := pieces.get()) is not None:
                choice = {"index": 0, "text": piece.decode("latin-1"), "finish_reason": None}
                self._event(json.dumps({"id": sequence.id, "choices": [choice]}))
            usage = {"prompt_tokens": len(sequence.prompt), "completion_tokens": len(sequence.output)}
            self._event(json.dumps({"id": sequence.id, "choices": [], "usage": usage}))
            self._event("[DONE]")
        except OSError:
            sequence.left = True

    def _event(self, data: str) -> None:
        self.wfile.write(f"data: {data}\n\n".encode())
        self.wfile.flush()

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 256


def main(argv: list[str]) -> None:
    plan = Plan.load(Path(argv[0]))
    # Programs carry the paths of their source: keep what follows the checkout's or the environment's folder.
    jax.config.update("jax_hlo_source_file_canonicalization_regex", r"^.*/(?=reference/|site-packages/)")
    log, closed = logger_to("engine.log"), threading.Event()
    threading.Thread(target=lambda: (os.read(0, 1), closed.set()), daemon=True).start()
    started_ns = now_ns()
    log.info(
        "Reference serving engine of Chipledger (JAX %s, jaxlib %s, %s), not vLLM; it logs in vLLM's format",
        jax.__version__,
        jaxlib.__version__,
        jax.default_backend(),
    )
    config, dims = plan.engine, plan.dims
    log.info(
        "%d layers, %s parameters, float32; draft model of 1 layer, %d draft tokens",
        dims.layers,
        f"{parameters(dims):,}",
        config.row - 1,
    )
    rounds = matmul_rounds(0, 1, plan.benchmark_round_s, lambda _: None)
    loading_ns = now_ns()
    engine = Engine(plan, *training.load(Path(argv[1])))
    service = Service(plan, engine)
    service.event("start", started_ns=started_ns, peak_rounds=rounds, loading_ns=loading_ns)
    tokens = config.pages * config.page
    per_token = 2 * dims.kv_heads * dims.head_dim * 4 * (dims.layers + 1)
    log.info("Available KV cache memory: %.2f GiB", tokens * per_token / (1 << 30))
    log.info("GPU KV cache size: %s tokens", f"{tokens:,}")
    log.info("Maximum concurrency for %s tokens per request: %.2fx", f"{config.context:,}", tokens / config.context)
    programs = engine.warm_up()
    service.event("warm", programs=programs)
    took_s = (programs[-1]["end_ns"] - programs[0]["start_ns"]) / 1e9
    log.info("Compiling %d programs took %.2f s", len(programs), took_s)
    server = Server(("127.0.0.1", 0), type("Bound", (Handler,), {"service": service}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Path("port.partial").write_text(str(server.server_port))
    Path("port.partial").rename("port")
    service.run(StatLines(log, service.metrics, plan.log_every_s), closed)
    service.event("stop")
    service.leave_records()


if __name__ == "__main__":
    main(sys.argv[1:])
