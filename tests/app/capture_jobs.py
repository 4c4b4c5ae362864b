"""Jobs to be captured, each a process of its own on loopback: JAX with its profiler server, JAX with our agent; and
servers that answer as a job never should."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc

from tests.app.serving import environment, free_port

TOKEN = "0123456789abcdef0123"
LOOP = """
import jax, jax.numpy as jnp, os, sys, time
{start}
work = jax.jit(lambda x: (x @ x).sum())
x = jnp.ones((128, 128))
work(x).block_until_ready()
print("ready", flush=True)
step, parent = 0, os.getppid()
while os.getppid() == parent:
    {step}
    time.sleep(0.02)
    step += 1
"""
SERVER = (
    "jax.profiler.start_server({port})",
    """with jax.profiler.StepTraceAnnotation("train", step_num=step):
        work(x).block_until_ready()""",
)
AGENT = (
    """import importlib.util
spec = importlib.util.spec_from_file_location("chipledger_agent", {file!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
agent = module.serve("127.0.0.1:{port}")""",
    """work(x).block_until_ready(); agent.step()""",
)
NEVER_STEPS = (AGENT[0], "work(x).block_until_ready()")
AGENT_FILE = Path(__file__).parents[2] / "app" / "capture" / "agent.py"


@contextlib.contextmanager
def job(kind: tuple[str, str]) -> Iterator[int]:
    """A job of JAX that steps until it is ended; the port at which it can be captured."""
    port = free_port()
    code = LOOP.format(start=kind[0].format(port=port, file=str(AGENT_FILE)), step=kind[1])
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment(JAX_PLATFORMS="cpu", CHIPLEDGER_CAPTURE_TOKEN=TOKEN),
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        yield port
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@contextlib.contextmanager
def listening(says: bytes = b"", drips: bytes = b"") -> Iterator[tuple[int, list[bytes]]]:
    """A server that takes every connection, says something or nothing, goes on dripping, and holds it open; its port,
    and an entry for each connection."""
    heard: list[bytes] = []
    held: list[socket.socket] = []
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection = server.accept()[0]
                held.append(connection)
                heard.append(b"")
                if says:
                    connection.sendall(says)
                while drips:
                    connection.sendall(drips)
                    time.sleep(0.1)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield server.getsockname()[1], heard
    finally:
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(5)
        for connection in held:
            connection.close()


@contextlib.contextmanager
def grpc_server(answer: Any, method: str = "/tensorflow.ProfilerService/Profile") -> Iterator[int]:
    """A server of the same protocol that answers with `answer(request, context)`."""

    class Handler(grpc.GenericRpcHandler):
        def service(self, handler_call_details: Any) -> Any:
            return grpc.unary_unary_rpc_method_handler(answer) if handler_call_details.method == method else None

    server = grpc.server(ThreadPoolExecutor(4), options=[("grpc.max_send_message_length", -1)])
    server.add_generic_rpc_handlers((Handler(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield port
    finally:
        server.stop(0).wait(5)


def slow(seconds: float) -> Any:
    """An answer that takes longer than anybody waits, or until who asked hangs up."""

    def answer(_: bytes, context: Any) -> bytes:
        until = time.monotonic() + seconds
        while time.monotonic() < until and context.is_active():
            time.sleep(0.05)
        return b""

    return answer


def clock() -> float:
    return time.monotonic()


def as_token(monkeypatch: Any) -> None:
    monkeypatch.setenv("CHIPLEDGER_CAPTURE_TOKEN", TOKEN)


os.environ.setdefault("GRPC_VERBOSITY", "NONE")
