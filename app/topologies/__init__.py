"""Networks as pages, HTTP API and command line get them: by name, or from an edge list; built once and kept.

`graph:NAME` is an edge list. On the command line (no store given) NAME is a file of the user's own; over HTTP it is the
id of a list kept in the store, never a path.
"""

import hashlib
import re
import uuid
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from app.identity.may import changing
from app.workspace import Workspace
from errors import InputError, QuestionError
from runs.kept import Answers
from simulators import topology
from simulators.topology import failures
from simulators.topology.loads import LinkLoads, link_loads
from simulators.topology.network import Network
from simulators.topology.report import Report
from simulators.topology.report import report as report_of
from simulators.topology.spec import Spec
from simulators.topology.systems import edge_list

if TYPE_CHECKING:
    from simulators.topology.failures import Broken

GRAPH = "graph:"
FOLDER = "topologies"
LARGEST_BYTES = 8 << 20  # of an edge list: 65,536 chips with 200,000 links take a third
MOST_KEPT = 500  # edge lists of one store
_ID = re.compile(r"[0-9a-f]{16}")
_reports = Answers(20 << 20)


def network(text: str, place: Workspace | None) -> tuple[Spec, Network]:
    """The topology of this name, without faults. `place` None: the command line, which may name a file.

    Raises QuestionError or InputError: the rule that the name or the list breaks.
    """
    text = text.strip()
    if not text.startswith(GRAPH):
        return topology.parse(text), topology.build(text)
    content = _content(text.removeprefix(GRAPH), place)
    return _graph(text, content)


def broken(net: Network, failed: Sequence[str]) -> "Broken":
    """What is left after the failures, such as ("chip=5", "ocs=7"). Raises QuestionError for a part it has not."""
    return _broken(net, tuple(failed))


def report(text: str, failed: Sequence[str], place: Workspace | None) -> Report:
    """Everything counted of a topology after the failures. Raises as `network` and `broken`."""
    spec, net = network(text, place)
    failed = tuple(failed)

    def count() -> Report:
        return report_of(spec, net, broken(net, failed) if failed else None)

    return _reports.get((spec.text, failed), count)


def is_known(text: str, failed: Sequence[str]) -> bool:
    """Whether the report of this topology, by its full name, was made already."""
    return _reports.known((text, tuple(failed))) is not None


@lru_cache(maxsize=16)
def loads(net: Network, pattern: str, routing: str, seed: int = 0) -> LinkLoads:
    """`link_loads`, kept for the last networks asked for."""
    return link_loads(net, pattern, routing, seed)


@changing("keep an edge list")
def keep(place: Workspace, text: str) -> str:
    """Keeps an edge list in the store; gives its name, `graph:ID`. Raises QuestionError for one that cannot be read."""
    content = text.encode()
    number = hashlib.sha256(content).hexdigest()[:16]
    _graph(GRAPH + number, _bounded(content, "the edge list"))
    folder = place.store.root / FOLDER
    file = folder / f"{number}.txt"
    try:
        folder.mkdir(exist_ok=True)
        if not file.exists():
            if sum(1 for _ in folder.iterdir()) >= MOST_KEPT:
                raise InputError(
                    f"this store holds {MOST_KEPT} edge lists already",
                    where=str(folder),
                    advice="Remove those that nobody needs.",
                )
            partial = folder / f"{number}.{uuid.uuid4().hex}.partial"
            partial.write_bytes(content)
            partial.replace(file)
    except OSError as e:
        raise InputError(f"the edge list cannot be kept ({e.strerror})", where=str(folder)) from e
    return GRAPH + number


def in_store(text: str) -> bool:
    """Whether a name means an edge list of the store, rather than a file of the user's own."""
    name = text.strip().removeprefix(GRAPH)
    return text.strip().startswith(GRAPH) and _ID.fullmatch(name) is not None and not Path(name).exists()


def _content(name: str, place: Workspace | None) -> bytes:
    if place is None:
        file = Path(name).expanduser()
    elif _ID.fullmatch(name):
        file = place.store.root / FOLDER / f"{name}.txt"
    else:
        raise QuestionError(
            f"graph {name!r} is no edge list of this store",
            expected="graph: and 16 digits, 0 to f",
            advice="Paste or upload the list on the page, or ask the command line about a file.",
        )
    try:
        if not file.is_file():
            raise QuestionError(
                f"there is no edge list {name!r}" + (" in this store" if place else ""),
                expected="a text file with one link on each line, such as `0 1`",
            )
        with file.open("rb") as opened:
            return _bounded(opened.read(LARGEST_BYTES + 1), name)
    except OSError as e:
        raise InputError(f"cannot be read ({e.strerror})", where=name) from e


def _bounded(content: bytes, name: str) -> bytes:
    if len(content) > LARGEST_BYTES:
        raise InputError(f"an edge list of more than {LARGEST_BYTES >> 20} MiB", where=name)
    return content


@lru_cache(maxsize=8)
def _graph(text: str, content: bytes) -> tuple[Spec, Network]:
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as e:
        raise InputError("no text", where=text, expected="one link on each line, such as `0 1`") from e
    net = edge_list.read(lines, text)
    return Spec(text=text, kind=net.kind, chip=net.chip, chips=net.chips), net


@lru_cache(maxsize=16)
def _broken(net: Network, failed: tuple[str, ...]) -> "Broken":
    return failures.fail(net, failed)
