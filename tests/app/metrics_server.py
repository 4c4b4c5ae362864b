"""A real HTTP server on loopback that answers /metrics as vLLM does: its counters grow, its process restarts."""

import contextlib
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

BOUNDS = ("0.001", "0.01", "0.1", "1.0", "+Inf")


def exposition(requests: int, began: float = 1_767_571_200.0, running: int = 3) -> str:
    """What vLLM tells after so many requests of 100 prompt and 20 generated tokens, half of them within 0.1 s."""
    who = '{engine="0",model_name="meta-llama/Llama-3.1-8B-Instruct"}'
    inside = {"0.001": 0, "0.01": requests // 4, "0.1": requests // 2, "1.0": requests, "+Inf": requests}
    lines = [
        "# HELP process_start_time_seconds Start time of the process.",
        "# TYPE process_start_time_seconds gauge",
        f"process_start_time_seconds {began}",
        "# HELP vllm:num_requests_running Number of requests in model execution batches.",
        "# TYPE vllm:num_requests_running gauge",
        f"vllm:num_requests_running{who} {running}.0",
        f"vllm:num_requests_waiting{who} 1.0",
        f"vllm:kv_cache_usage_perc{who} 0.25",
        f"vllm:prompt_tokens_total{who} {100.0 * requests}",
        f"vllm:generation_tokens_total{who} {20.0 * requests}",
        f"vllm:num_preemptions_total{who} {requests // 10}.0",
        "# TYPE vllm:time_to_first_token_seconds histogram",
    ]
    for bound in BOUNDS:
        lines.append(
            f'vllm:time_to_first_token_seconds_bucket{{engine="0",le="{bound}",model_name="m"}} '
            f"{inside[bound]}.0".replace('"m"', '"meta-llama/Llama-3.1-8B-Instruct"')
        )
    lines += [
        f"vllm:time_to_first_token_seconds_count{who} {requests}.0",
        f"vllm:time_to_first_token_seconds_sum{who} {requests * 0.125}",
    ]
    return "\n".join(lines) + "\n"


class MetricsServer:
    """`requests` and `began` are what it answers with, and may be changed at any time; `asked` counts. `cut` bytes are
    missing from an answer; one that `drip`s does not end. As a context it runs; `close` makes it go away, `open` come
    back at the same port."""

    def __init__(self) -> None:
        self.requests, self.began, self.asked = 100, 1_767_571_200.0, 0
        self.status, self.text, self.cut, self.drip = 200, None, 0, False
        self._server: ThreadingHTTPServer | None = None
        self.port = 0

    def open(self) -> None:
        told = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # noqa: N802 - the name that http.server calls
                told.asked += 1
                body = (exposition(told.requests, told.began) if told.text is None else told.text).encode()
                self.send_response(told.status)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(ConnectionError):  # who asked went away
                    while told.drip:
                        self.wfile.write(b"#\n")
                        time.sleep(0.02)
                    self.wfile.write(body[: len(body) - told.cut])

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/metrics"

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
