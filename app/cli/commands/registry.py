"""`chipledger registry`: where what people added to runs is kept, and moving it to PostgreSQL or back into a file."""

import argparse
import os
import uuid
from pathlib import Path
from typing import Any

from app import registry_place
from app.cli.commands.base import JSON, print_json, print_table, printable
from app.options import add_arguments, add_flags, by_place, values
from app.registry_place import FILE
from app.workspace import open_store, store_path, workspace
from errors import InputError, QuestionError
from errors import format as fmt
from errors.options import SWITCH, Option
from runs.database import NOTE

NAME = "registry"
HELP = "say where tags, notes, jobs, tokens and all else that changes are kept, or move it to PostgreSQL or back"
SHOW, MOVE, BACK, TAKE = ACTS = ("show", "move", "back", "take")
ACT = Option(
    "act",
    ACTS,
    SHOW,
    "say where it is and what it holds; move it from the file to an address, or back into the file; or take the one at "
    "an address from the store whose place this one took",
    local=True,
)
ANYWAY = Option("anyway", SWITCH, False, "move it although jobs run, or a server of this store answers", local=True)
ARGUMENTS = MAY_LACK = (ACT,)
OPTIONS = (*registry_place.OPTIONS, ANYWAY, JSON)
OLD = "registry.db.moved"


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS, MAY_LACK)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    act, given = by_place(args, ARGUMENTS)[ACT.name], values(args, OPTIONS)
    registry_place.settle(given[registry_place.ADDRESS.name], given[registry_place.ADDRESS_FILE.name])
    root = store_path(args.store)
    if not root.is_dir():
        raise InputError("there is no store here", where=str(root), expected="the folder of one")
    told = _shown(args.store) if act == SHOW else _CHANGES[act](root, given[ANYWAY.name])
    if given[JSON.name]:
        print_json(told)
        return
    rows = sum(told["rows"].values())
    where = printable(told["at"])
    if act == SHOW:
        print(f"The registry is at {where}, {fmt.size(told['bytes'])}, {fmt.count(rows, 'row')}.")
        if rows:
            print_table(("table", "rows"), [(t, f"{n:,}") for t, n in told["rows"].items() if n], right=(1,))
    elif act == TAKE:
        print(f"The registry at {where} belongs to this store from now on: {fmt.count(rows, 'row')}.")
    else:
        print(f"The registry is at {where} from now on: {fmt.count(rows, 'row')}, counted on both sides.")


def _shown(store: str | None) -> dict[str, Any]:
    from runs.postgres.moving import Everything, every_table

    registry = Everything(workspace(store).registry.at)  # which makes the tables that nobody has needed yet
    with registry.everything() as db:
        rows = {table: db.execute(f"select count(*) from {table}").fetchone()[0] for table in every_table()}
    return {"at": registry.name, "bytes": registry.bytes(), "rows": rows}


def _moved(root: Path, anyway: bool) -> dict[str, Any]:
    """From the file to the address that was given."""
    from runs.postgres import moving
    from runs.postgres.server import server

    url, file = registry_place.asked(), root / FILE
    if noted := registry_place.read_note(root):
        raise QuestionError(
            f"the registry of this store is not in a file, but at {noted.url.partition('?')[0]}",
            expected="a store whose registry is a file",
            advice="`chipledger registry back` brings it back into one first.",
        )
    if url is None:
        raise QuestionError("nobody said where it is to be moved", expected="--registry or --registry-file")
    if not file.exists():
        raise QuestionError("this store has no registry yet", advice="Start a server with --registry: it makes one.")
    if not anyway:
        _is_quiet(root, file)
    at = server(url)
    rows = moving.to_server(file, at)
    which = registry_place.which_of(at)
    registry_place.write_note(root, registry_place.Noted(at.address.plain, which))
    for ending in ("", "-wal", "-shm"):
        if (old := file.with_name(file.name + ending)).exists():
            old.rename(root / (OLD + ending))
    return {"at": at.name, "rows": rows}


def _brought_back(root: Path, anyway: bool) -> dict[str, Any]:
    """From the address into the file."""
    from runs.postgres import moving
    from runs.postgres.server import server

    noted, file = registry_place.read_note(root), root / FILE
    if noted is None:
        raise QuestionError("the registry of this store is in a file already", where=str(file))
    at = registry_place.registry_at(root)
    if not anyway:
        _is_quiet(root, at)
    part = root / f"{FILE}.part"
    part.unlink(missing_ok=True)
    rows = moving.to_file(server(registry_place.asked() or noted.url), part, alone=True)
    os.chmod(part, 0o600)
    part.rename(file)
    (root / NOTE).unlink()
    return {"at": str(file), "rows": rows}


def _taken(root: Path, anyway: bool) -> dict[str, Any]:
    """From the store whose place this one took."""
    from runs.postgres.belonging import take
    from runs.postgres.server import server

    noted = registry_place.read_note(root)
    if (url := registry_place.asked() or (noted.url if noted else None)) is None:
        raise QuestionError("nobody said where it is", expected="--registry or --registry-file")
    if (root / FILE).exists():
        raise QuestionError(
            f"this store has a registry already, in the file {FILE}",
            advice="Move that file away where it is not meant.",
        )
    at = server(url)
    if not anyway:
        _is_quiet(root, at)
    store = open_store(root)
    told = registry_place.Noted(at.address.plain, registry_place.which_of(at), store.kept_identity or uuid.uuid4().hex)
    take(at, told.store, store.where)
    registry_place.write_note(root, told)
    return _shown(str(root))


_CHANGES = {MOVE: _moved, BACK: _brought_back, TAKE: _taken}


def _is_quiet(root: Path, at: Any) -> None:
    """Raises QuestionError where a server or a job would go on with what was moved."""
    from app.serve.here import server_of
    from runs.job_book import RUNNING, JobBook
    from runs.postgres.presence import workers
    from runs.postgres.server import Server

    if url := server_of(root):
        raise QuestionError(
            f"a server of this store answers at {url}", advice="Stop it, and all workers, or say --anyway."
        )
    if isinstance(at, Server) and (there := workers(at)):
        told = fmt.count(there, "server or worker", "servers or workers")
        told += " of this registry is there" if there == 1 else " of this registry are there"
        raise QuestionError(told, advice="Stop them, on all machines, or say --anyway.")
    if running := JobBook(at).counts().get(RUNNING, 0):
        told = fmt.count(running, "job")
        raise QuestionError(f"{told} of this store run", advice="Wait until they ended, or say --anyway.")
