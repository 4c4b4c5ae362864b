"""`chipledger capture`: record what running jobs do, on all their hosts at once, straight into one run."""

import argparse
import contextlib
import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.capture import options as capturing
from app.capture.addresses import Address, addresses
from app.capture.options import ADDRESS, RUN, Asked, asked
from app.cli.commands.base import JSON, pairs, print_json, printable
from app.cli.commands.ingest import alerts_of, remember, teller
from app.ingest_options import OF_A_TERMINAL
from app.options import add_arguments, add_flags, from_args
from app.serve.upload_runs import in_use
from app.serve.uploads import Uploads
from app.workspace import Workspace, workspace
from errors import ChipledgerError
from errors import format as fmt

if TYPE_CHECKING:
    from app.capture.session import Answer
    from runs.share_book import Audience

NAME = "capture"
HELP = "record running jobs on demand, all their hosts at once, into one run"
API = "POST /api/capture"
ARGUMENTS = (ADDRESS,)
OPTIONS = (
    *capturing.OPTIONS,
    *OF_A_TERMINAL,
    replace(JSON, help="print run_id, tables, warnings and what came of each host as JSON"),
)
CAPTURING = 0.9  # of the work; the rest reads what came
NOTED = 5_000  # characters of the note that goes with the run
MAY_LACK = ARGUMENTS


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS, MAY_LACK)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    wanted = asked(args)
    if wanted.print_agent:
        from app.capture import agent

        print(Path(agent.__file__).read_text(encoding="utf-8"), end="")
        return
    from app.capture.together import checked
    from app.sharing import audience

    where = addresses(args.address)
    checked(wanted, where)
    _of_run(wanted)
    place = workspace(args.store)
    told = captured(place, where, wanted, audience(place, from_args(args, OF_A_TERMINAL)))
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    print_json(told) if args.json else _say(told)


def captured(
    place: Workspace, where: Sequence[Address], wanted: Asked, audience: "Audience | None" = None
) -> dict[str, Any]:
    """Record and ingest; traces are kept like uploads, as long as their run. Raises InputError with nothing stored."""
    from app.capture.together import capture
    from collectors.ingest import ingest
    from collectors.own import sidecar

    sidecar.check("name", wanted.name, NAME)  # before anything is recorded
    stop, tell = threading.Event(), teller()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: stop.set())  # the server's way to cancel

    def told(part: float, doing: str) -> None:
        tell(round(part * 1e6), 1_000_001, doing)

    with _kept(place) as folder:
        began_ns = time.time_ns()
        answers = capture(where, wanted, folder, lambda part, doing: told(CAPTURING * part, doing), stop.is_set)
        _note(folder, answers, wanted, began_ns)
        told(CAPTURING, "Reading what came")
        with in_use([folder], place.store.uploads_folder):
            done = ingest(
                sorted(folder.iterdir()),
                place.store,
                name=wanted.name or _name(where, began_ns),
                tags={**_partly(answers), **pairs(wanted.tag, "tag")},
                cancel=stop.is_set,
                audience=audience,
                **_of_run(wanted),
            )
            warnings = [*_odd(answers), *done.warnings]
            try:
                remember(sorted(folder.iterdir()), place, done.run_id)
            except ChipledgerError as e:
                warnings.append(f"the run is stored; where its traces lie could not be noted: {e}")
    tell(1, 1, "Stored")
    return {
        "run_id": done.run_id,
        "tables": dict(done.tables),
        "warnings": warnings,
        "hosts": [_told(a) for a in answers],
        "alerts": alerts_of(place, done.run_id).to_dict(),
    }


@contextlib.contextmanager
def _kept(place: Workspace):
    """A folder for the traces, which goes again where no run comes of them."""
    uploads = Uploads(place.store.uploads_folder, place)
    upload = uploads.begin()
    try:
        yield uploads.files(upload)
    except BaseException:
        with contextlib.suppress(ChipledgerError):
            uploads.discard(upload)
        raise


def _of_run(wanted: Asked) -> dict[str, Any]:
    """What a person says of the run, checked before anything is dialled. Raises InputError."""
    from collectors.own import sidecar

    said = {o.name: getattr(wanted, o.name) for o in RUN if getattr(wanted, o.name) is not None}
    tags = pairs(wanted.tag, "tag")
    named = {"name": wanted.name} if wanted.name else {}
    for key, value in {**said, **named, **({"tags": tags} if tags else {})}.items():
        sidecar.check(key, value, "command line")
    return said


def _name(where: Sequence[Address], began_ns: int) -> str:
    more = f" and {len(where) - 1} more" if len(where) > 1 else ""
    return f"{where[0].host}:{where[0].port}{more}, {fmt.date(began_ns)}"


def _note(folder: Path, answers: "Sequence[Answer]", wanted: Asked, began_ns: int) -> None:
    """What a trace cannot tell: that it was asked for, of whom, and who did not answer."""
    from collectors.own.sidecar import FILE_NAME

    came = [a for a in answers if not a.problem]
    lasts = f"{wanted.duration_s or capturing.USUAL_S:g} s" if wanted.steps is None else fmt.count(wanted.steps, "step")
    few = f"{len(came)} of " if len(came) < len(answers) else ""
    said = f"Captured on demand for {lasts}, from {fmt.date(began_ns)} on: {few}{fmt.count(len(answers), 'host')}."
    note = " ".join([said, *(f"{w}." for w in _odd(answers))])[:NOTED]
    (folder / FILE_NAME).write_text(json.dumps({"note": note}), encoding="utf-8")


def _partly(answers: "Sequence[Answer]") -> dict[str, str]:
    """A tag where hosts are missing: wherever the run is seen, it is seen not to be all of the job."""
    came = sum(not a.problem for a in answers)
    return {"captured": f"{came} of {len(answers)} hosts"} if came < len(answers) else {}


def _odd(answers: "Sequence[Answer]") -> list[str]:
    from app.capture.together import failures

    lacking = [a for a in answers if a.problem]
    missing = [f"No trace of {failures(lacking)}"] if lacking else []
    return missing + [f"{a.address}: {a.note}" for a in answers if a.note]


def _told(answer: "Answer") -> dict[str, Any]:
    return {
        "address": str(answer.address),
        "host": answer.host or None,
        "bytes": answer.bytes if answer.file else None,
        "problem": answer.problem or None,
    }


def _say(told: dict[str, Any], out: Callable[[str], None] = print) -> None:
    out(f"Stored: run {told['run_id']}")
    for host in told["hosts"]:
        came = fmt.size(host["bytes"]) if host["problem"] is None else f"nothing: {host['problem']}"
        out(f"  {host['address']}: {printable(came)}")
    for table, rows in told["tables"].items():
        out(f"  {table}: {rows:,} rows")
    for warning in told["warnings"] + told["alerts"]["problems"]:
        out(f"  warning: {printable(warning)}")
    for rule in told["alerts"]["open"]:
        out(f"  alert: {rule} is open; `chipledger alerts` says why")
