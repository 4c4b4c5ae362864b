"""A trace from the profiler server of one process: `jax.profiler.start_server(PORT)`, TensorFlow's alike.

Servers of jaxlib 0.10 send the trace where they are asked to (`emit_xspace`). Earlier ones write it into the
folder that a request names: where none is shared, it is one that cannot be: they refuse, and leave nothing behind.
"""

import os
import queue
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.capture.addresses import Address
from app.capture.session import CONNECT_S, LOOK_S, Answer, Session, connected, line
from app.capture.wire import METHOD, Tracing, host_name, profile_request, trace_of
from errors import InputError
from runs.durable import writing

if TYPE_CHECKING:
    import grpc

NOWHERE = "/dev/null/no-shared-folder"
MESSAGE_BYTES = (1 << 31) - 1  # no message of the protocol holds more
BUSY, TOO_LARGE = "profiling session active", "larger than max"


def take(address: Address, tracing: Tracing, session: Session) -> Answer:
    """The trace of one server, written below the session's folder. Raises InputError where none comes, and Cancelled.

    The others wait until this address has been reached: whoever calls says so where this raises before it was.
    """
    channel = _channel(address, session)
    try:
        _ready(channel, session)
        session.meet(address)
        folder = session.shared or NOWHERE
        request = profile_request(tracing, session.name, session.called(address), folder)
        answer = _called(channel, request, tracing, session)
    finally:
        channel.close()
    space, empty = trace_of(answer)
    name = f"{session.called(address)}.xplane.pb"
    if not len(space):
        space = _from_shared(session, name, tracing)
    return _kept(address, space, empty, session.place(address, len(space)) / name)


def _channel(address: Address, session: Session) -> "grpc.Channel":
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what it would say on stderr is told as an error here
    connected(address).close()  # the system says better why it cannot be reached
    import grpc

    host = f"[{address.host}]" if ":" in address.host else address.host
    options = [
        ("grpc.max_receive_message_length", min(session.most_bytes, MESSAGE_BYTES)),
        ("grpc.enable_http_proxy", 0),
        ("grpc.service_config_disable_resolution", 1),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    return grpc.insecure_channel(f"dns:///{host}:{address.port}", options)


def _ready(channel: "grpc.Channel", session: Session) -> None:
    """Raises InputError unless what listens there speaks the protocol in time."""
    import grpc

    states: queue.SimpleQueue[Any] = queue.SimpleQueue()
    channel.subscribe(states.put, try_to_connect=True)
    deadline = time.monotonic() + CONNECT_S
    while time.monotonic() < deadline:
        session.check()
        try:
            state = states.get(timeout=LOOK_S)
        except queue.Empty:
            continue
        if state is grpc.ChannelConnectivity.READY:
            return
        if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
            raise InputError("something else than a profiler server listens there")
    raise InputError(f"it accepts a connection but says nothing within {CONNECT_S:g} s")


def _called(channel: "grpc.Channel", request: bytes, tracing: Tracing, session: Session) -> bytes:
    import grpc

    allowed_s = tracing.duration_s + session.answer_s
    call = channel.unary_unary(METHOD).future(request, timeout=allowed_s)
    try:
        while True:
            session.check()
            try:
                return call.result(timeout=LOOK_S)
            except grpc.FutureTimeoutError:
                continue
    except grpc.RpcError as e:
        raise InputError(_why(e, session, allowed_s)) from e
    finally:
        call.cancel()  # the server hears of it, and records no longer


def _why(error: Any, session: Session, allowed_s: float) -> str:
    import grpc

    code, details = error.code(), line(error.details() or "")
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return f"no answer within {allowed_s:g} s"
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and TOO_LARGE in details:
        return f"its answer holds more than {session.most_bytes:,} bytes: record for a shorter time, or see --memory-gb"
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return "it is no profiler server"
    if code is grpc.StatusCode.UNAVAILABLE:
        return f"the connection ended ({details}): did the job?"
    if BUSY in details:
        return "a profile is being taken there already"
    if NOWHERE.rpartition("/")[0] in details:
        return "its server cannot send a trace, it only writes into a folder: `chipledger capture --shared` names one"
    return f"it failed ({details or code.name})"


def _from_shared(session: Session, name: str, tracing: Tracing) -> memoryview:
    """The trace that a server wrote into the shared folder."""
    if not session.shared:
        raise InputError("its answer holds no trace")
    file = Path(session.shared) / session.name / name
    try:
        if file.stat().st_size > session.most_bytes:
            raise InputError(f"its trace holds more than {session.most_bytes:,} bytes: record for a shorter time")
        return memoryview(file.read_bytes())
    except OSError as e:
        raise InputError(f"it wrote its trace, but {file} is not here ({e.strerror})") from e


def _kept(address: Address, space: memoryview, empty: bool, file: Path) -> Answer:
    host = line(host_name(space))
    with writing(file):
        file.write_bytes(space)
    note = "nothing happened there while it was recorded" if empty else ""
    return Answer(address, file, len(space), host, note=note)
