"""`chipledger doctor --server HOST:PORT` of one that is about to be started here: what it would meet."""

import contextlib
import ipaddress
import os
import resource
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from app.operations.readiness import LEAST_FREE_BYTES, kernels_said
from app.operations.routes import metrics_token
from app.operations.seen import Seen
from app.operations.versions import versions
from app.registry_place import FILE, asked, read_note
from app.serve.guard import is_loopback
from app.serve.upload_room import SPARE_BYTES, limit_bytes
from app.workspace import open_store
from errors import ChipledgerError, InputError
from errors import format as fmt
from runs.machine import memory_here
from runs.postgres.server import server

LEAST_FILES = 4096  # descriptors: each session and each table that is read takes some
LEAST_MEMORY_BYTES = 2_000_000_000
PROXIES_VARIABLE = "FORWARDED_ALLOW_IPS"


def listened_at(address: str) -> tuple[str, int]:
    """(host, port) of `HOST:PORT`. Raises InputError."""
    host, colon, text = address.rpartition(":")
    if not colon or not (text.isascii() and text.isdigit()) or not 0 < int(text) < 1 << 16 or not host.strip("[]"):
        expected = "HOST:PORT of a server that is about to be started, or http://... of one that runs"
        raise InputError("this is no address", where=address[:80], expected=expected)
    return host.strip("[]"), int(text)


def check_start(host: str, port: int, store: Path) -> list[Seen]:
    """What a server started with these would meet. Makes and changes nothing that stays."""
    looks = (_versions, _user, _files, _memory, _temporary, _compiled, _monitor, _proxies)
    seen = [_address(host, port), *_store(store), _registry(store), _uploads(store), _clock(store)]
    return [*seen, *(look() for look in looks)]


def _address(host: str, port: int) -> Seen:
    where = f"{host}:{port}"
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with contextlib.closing(socket.create_server((host, port), family=family)):
            pass
    except OSError as e:
        wrong = f"It cannot be listened on ({e.strerror or e}): give another --port or --host."
        return Seen(what="address", found=where, wrong=wrong, fails=True)
    others = "Other machines can reach it: put TLS in front and set up identity (docs/security.md)."
    return Seen(what="address", found=f"{where} is free", wrong="" if is_loopback(host) else others)


def _store(store: Path) -> Iterator[Seen]:
    nearest = next(p for p in (store, *store.parents) if p.exists())
    may = nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)
    wrong = "" if may else f"{nearest} cannot be written by this user: runs could not be added."
    yield Seen(what="store", found=str(store), wrong=wrong, fails=not may)
    if store.is_dir():
        mode = stat.S_IMODE(store.stat().st_mode)
        wrong = f"Others on this machine can read it: chmod 700 {store}" if mode & 0o077 else ""
        yield Seen(what="permissions", found=f"{mode:o}", wrong=wrong)
    free = shutil.disk_usage(nearest).free
    least = fmt.size(LEAST_FREE_BYTES)
    wrong = "" if free >= LEAST_FREE_BYTES else f"Free some space: a server with less than {least} is not ready."
    yield Seen(what="disk", found=f"{fmt.size(free)} free", wrong=wrong, fails=bool(wrong))


def _registry(store: Path) -> Seen:
    """Of one on PostgreSQL whether it can be reached, and whether tables can be made there; nothing is."""
    try:
        noted = read_note(store)
        url = asked() or (noted.url if noted else None)
        if url is None:
            there = store / FILE
            may = os.access(there, os.R_OK | os.W_OK) or not there.exists()
            return Seen(
                what="registry",
                found=f"the file {FILE} in the store",
                wrong="" if may else "It cannot be written by this user.",
                fails=not may,
            )
        seen = server(url).look()
    except ChipledgerError as e:
        return Seen(what="registry", found="PostgreSQL, or where it is cannot be told", wrong=str(e), fails=True)
    wrong = "Its tables are to be made, and this user may not make any."
    wrong = wrong if seen.which is None and not seen.may_make else ""
    if noted is not None and seen.which not in (None, noted.which):
        wrong = f"It is not the registry of this store, which was at {noted.url.partition('?')[0]}."
    tables = "not made yet" if seen.which is None else "there"
    found = f"{server(url).name}, PostgreSQL {seen.version}, its tables are {tables}"
    return Seen(what="registry", found=found, wrong=wrong, fails=bool(wrong))


def _uploads(store: Path) -> Seen:
    nearest = next(p for p in (store, *store.parents) if p.exists())
    try:
        limit = limit_bytes()
    except ChipledgerError as e:
        return Seen(what="uploads", found="no limit is understood", wrong=str(e), fails=True)
    room = shutil.disk_usage(nearest).free - SPARE_BYTES
    fits = f"Only {fmt.size(max(room, 0))} of one fit, but for what is kept free: lower --upload-limit-bytes."
    return Seen(what="uploads", found=f"up to {fmt.size(limit)}", wrong="" if room >= limit else fits)


def _clock(store: Path) -> Seen:
    """A clock that runs behind what was already written here was set back."""
    now_ns, newest_ns = time.time_ns(), 0
    if (store / "runs").is_dir():
        with contextlib.suppress(ChipledgerError):
            newest_ns = max((r.manifest.created_ns for r in open_store(store).look().runs), default=0)
    wrong = ""
    if newest_ns > now_ns + 60 * 10**9:
        wrong = f"A run was written at {fmt.date(newest_ns)}, which is still to come: set the clock by NTP."
    return Seen(what="clock", found=fmt.date(now_ns), wrong=wrong, fails=bool(wrong))


def _versions() -> Seen:
    told = versions()
    return Seen(what="version", found=f"{told['version']}, Python {told['python']}, Streamlit {told['streamlit']}")


def _user() -> Seen:
    root = os.geteuid() == 0
    wrong = "It would run with all rights of this machine: start it as a user of its own." if root else ""
    return Seen(what="user", found="root" if root else f"user {os.geteuid()}", wrong=wrong)


def _files() -> Seen:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    wrong = (
        "" if soft >= LEAST_FILES or soft < 0 else f"Many sessions at once may find none left: ulimit -n {LEAST_FILES}"
    )
    return Seen(what="open files", found="no limit" if soft < 0 else f"{soft:,} at once", wrong=wrong)


def _memory() -> Seen:
    most = memory_here()
    least = fmt.size(LEAST_MEMORY_BYTES)
    wrong = "" if most >= LEAST_MEMORY_BYTES else f"Reading large profiles may be ended by the system: give it {least}."
    return Seen(what="memory", found=f"{fmt.size(most)}, {os.cpu_count() or 1} processors", wrong=wrong)


def _temporary() -> Seen:
    try:
        with tempfile.TemporaryFile() as file:
            file.write(b"x")
    except OSError as e:
        wrong = f"Nothing can be unpacked there ({e.strerror}): name a folder that can be written in $TMPDIR."
        return Seen(what="temporary files", found="cannot be written", wrong=wrong, fails=True)
    folder = tempfile.gettempdir()
    return Seen(what="temporary files", found=f"{folder}, {fmt.size(shutil.disk_usage(folder).free)} free")


def _compiled() -> Seen:
    said = kernels_said()
    return Seen(what="compiled code", found="not whole" if said else "there", wrong=said)


def _monitor() -> Seen:
    try:
        token = metrics_token()
    except ChipledgerError as e:
        return Seen(what="figures", found="no token is understood", wrong=str(e), fails=True)
    return Seen(what="figures", found="for who shows the token" if token else "for this machine alone")


def _proxies() -> Seen:
    """From whom X-Forwarded-* is believed."""
    text = os.environ.get(PROXIES_VARIABLE, "")
    if not text:
        return Seen(what="proxy headers", found="believed of this machine alone")
    if "*" in text:
        wrong = f"Whoever reaches the server can claim any address: name the proxy's in ${PROXIES_VARIABLE}."
        return Seen(what="proxy headers", found="believed of all", wrong=wrong)
    odd = [p for p in map(str.strip, text.split(",")) if not _network(p)]
    wrong = f"{odd[0][:60]!r} in ${PROXIES_VARIABLE} is no address and no network." if odd else ""
    return Seen(what="proxy headers", found=f"believed of {text[:120]}", wrong=wrong, fails=bool(odd))


def _network(text: str) -> bool:
    with contextlib.suppress(ValueError):
        ipaddress.ip_network(text, strict=False)
        return True
    return False
