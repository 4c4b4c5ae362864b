"""All addresses of a capture at once, each in a thread: what came of each, in the order in which they were named."""

import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import replace
from pathlib import Path

from app.capture import job_agent, profiler_server
from app.capture.addresses import Address
from app.capture.options import USUAL_S, Asked
from app.capture.session import LOOK_S, Answer, Session
from app.capture.wire import Tracing
from collectors.ingesting.gather import Cancelled
from errors import InputError, QuestionError
from errors import format as fmt

Tell = Callable[[float, str], None]  # done, from 0 to 1, and what is being done
COPIES = 3  # of an answer in memory as it comes in, as measured with grpcio 1.85: 1.8 GB for 600 MB
RECORDING, NAMED = 0.7, 3  # the part of the work that recording is; hosts that are named one by one


def checked(wanted: Asked, where: Sequence[Address]) -> None:
    """Raises QuestionError or InputError for what cannot be asked of these addresses, before any is dialled."""
    if not where:
        raise QuestionError("no address is named", expected="HOST:PORT of a job that runs")
    if wanted.steps is not None and wanted.duration_s is not None:
        raise QuestionError("--steps with --duration-s", expected="one of them")
    servers = [a for a in where if a.kind == "jax"]
    agents = [a for a in where if a.kind == "agent"]
    if servers and wanted.steps is not None:
        raise QuestionError(
            f"--steps of {servers[0]}, a profiler server, which knows no steps",
            expected="--duration-s, or the address of an agent (agent://HOST:PORT)",
        )
    if agents and (wanted.shared or wanted.advanced):
        raise QuestionError(f"--shared or --advanced of {agents[0]}, an agent", expected="a profiler server of JAX")
    if agents:
        job_agent.token()
    settings(wanted)


def settings(wanted: Asked) -> dict[str, str]:
    """Settings of JAX's profiler by name. Raises QuestionError."""
    found: dict[str, str] = {}
    for text in wanted.advanced:
        name, equals, value = text.partition("=")
        if not name.strip() or not equals or name.strip() in found:
            raise QuestionError(f"--advanced {text[:80]!r}", expected="KEY=VALUE, each key once")
        found[name.strip()] = value.strip()
    return found


def capture(
    where: Sequence[Address],
    wanted: Asked,
    folder: Path,
    tell: Tell = lambda done, what: None,
    stop: Callable[[], bool] = lambda: False,
) -> list[Answer]:
    """What came of each address; traces lie below `folder`. Raises Cancelled, and InputError where not one came."""
    checked(wanted, where)
    most = int(wanted.memory_gb * 1e9 / COPIES / max(sum(a.kind == "jax" for a in where), 1))
    name = f"chipledger-{uuid.uuid4().hex[:12]}"
    session = Session(name, folder, tuple(where), wanted.timeout_s, most, wanted.shared or "", stop)
    duration_s = USUAL_S if wanted.duration_s is None else wanted.duration_s
    tracing = Tracing(duration_s, wanted.python, settings(wanted))

    def one(address: Address) -> Answer:
        if address.kind == "jax":
            return profiler_server.take(address, tracing, session)
        return job_agent.take(address, wanted.steps, duration_s, wanted.python, session)

    with ThreadPoolExecutor(len(where)) as threads:
        futures = {threads.submit(_of, address, one, session): address for address in where}
        _followed(futures, duration_s, wanted.steps, session, tell)
    answers = _told_apart([f.result() for f in futures])
    lacking = [a for a in answers if a.problem]
    if lacking and (wanted.all_or_nothing or len(lacking) == len(answers)):
        raise InputError(failures(lacking), advice=_advice(lacking, len(answers)))
    return answers


def _of(address: Address, take: Callable[[Address], Answer], session: Session) -> Answer:
    """What came of an address; a problem of its own is no problem of the others."""
    try:
        return take(address)
    except Cancelled:
        raise
    except InputError as e:
        return Answer(address, problem=str(e))
    finally:
        session.reached(address)


def _followed(
    futures: dict[Future[Answer], Address], duration_s: float, steps: int | None, session: Session, tell: Tell
) -> None:
    """Until all are done; how far that is."""
    pending = set(futures)
    while pending:
        pending = wait_for(pending, timeout=LOOK_S)[1]
        hosts = f"{len(pending)} of {fmt.count(len(futures), 'host')}"
        ran_s = None if session.began_s is None else time.monotonic() - session.began_s
        if ran_s is None:
            tell(0.0, f"Connecting to {fmt.count(len(futures), 'host')}")
        elif steps is not None:
            tell(RECORDING * (1 - len(pending) / len(futures)), f"Recording {fmt.count(steps, 'step')} of {hosts}")
        elif ran_s < duration_s:
            tell(RECORDING * ran_s / duration_s, f"Recording {hosts}: {ran_s:.1f} of {duration_s:g} s")
        else:
            came = 1 - len(pending) / len(futures)
            tell(RECORDING + (1 - RECORDING) * came, f"Waiting for {hosts}: {_names([futures[f] for f in pending])}")


def _names(where: Sequence[Address]) -> str:
    shown = sorted(map(str, where))
    return ", ".join(shown[:NAMED]) + (f" and {len(shown) - NAMED} more" if len(shown) > NAMED else "")


def _told_apart(answers: list[Answer]) -> list[Answer]:
    """Traces of one name of a host go into folders with numbers, in the order in which their addresses were named:
    that is how readers tell the processes of one machine apart."""
    xplane = [a for a in answers if a.file is not None and a.file.name.endswith(".xplane.pb")]
    shared = {host for host, n in Counter(a.host for a in xplane).items() if n > 1}
    moved: dict[Address, Path] = {}
    number: Counter[str] = Counter()
    for answer in xplane:
        if answer.host in shared and answer.file is not None:
            folder = answer.file.parent / f"process_{number[answer.host]}"
            number[answer.host] += 1
            folder.mkdir(mode=0o700)
            moved[answer.address] = answer.file.rename(folder / answer.file.name)
    return [replace(a, file=moved.get(a.address, a.file)) for a in answers]


def failures(lacking: Sequence[Answer]) -> str:
    """Which host did not answer, and why; alike reasons once."""
    by_why: dict[str, list[Address]] = {}
    for answer in lacking:
        by_why.setdefault(answer.problem, []).append(answer.address)
    return "; ".join(f"{_names(where)}: {why}" for why, where in by_why.items())


def _advice(lacking: Sequence[Answer], asked: int) -> str:
    return "Nothing was stored." if len(lacking) == asked else "Nothing was stored, as --all-or-nothing asks."
