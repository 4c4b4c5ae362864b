"""Records of Slurm's accounting, as `sacct` writes them in tables (its JSON: `slurm_json`).

    sacct -P, -p, --delimiter    a head of field names in any order, then a row a record; `|` ends each row or does not
    sacct                        fields of fixed widths below a line of dashes; what is too long is cut and ends in `+`

Times of a table are local and name no zone unless SLURM_TIME_FORMAT asked for one: they are read as UTC, and that is
said. `Elapsed` is of the clock of the scheduler: a start or an end that is not told follows from it, and where it tells
that summer time began or ended meanwhile, the end is put right by that hour. GPUs are what was allocated, of all nodes.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from collectors.base import Source
from collectors.reading.documents import text
from collectors.reading.textlog import DATED, NS_PER_S, Tally, clean, digits, lines, moment_ns, zone_doubt

STATES = (
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "COMPLETING",
    "CONFIGURING",
    "DEADLINE",
    "FAILED",
    "LAUNCH_FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PENDING",
    "PREEMPTED",
    "RECONFIG_FAIL",
    "REQUEUED",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "RESIZING",
    "REVOKED",
    "RUNNING",
    "SIGNALING",
    "SPECIAL_EXIT",
    "STAGE_OUT",
    "STOPPED",
    "SUSPENDED",
    "TIMEOUT",
)
GOING_ON = ("PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "RESIZING", "SIGNALING", "STAGE_OUT")
TOLD_BY_STEPS = ("OUT_OF_MEMORY", "NODE_FAIL")  # what a step tells beyond its job's state
EXPECTED = "what `sacct -j JOBID -D -P -o ...` or `sacct -j JOBID --json` writes"
_ID = re.compile(
    r"(\d{1,18})(?:_(\d{1,9}|\[[\d,:%-]{1,2000}(?:\.\.\.)?\]?))?(?:\+(\d{1,6}))?(?:\.(\S{0,60}))?", re.ASCII
)
_ID_CUT = re.compile(r"\s*\d{1,40}(?:[._+\[]\S*)?(?:\s|$)", re.ASCII)  # of a field of a fixed width
_FIELDS = frozenset(
    re.findall(
        r"\w+",
        "account alloccpus allocnodes alloctres allocgres cluster comment admincomment systemcomment constraints "
        "container cputime cputimeraw derivedexitcode elapsed elapsedraw eligible end exitcode failednode flags gid "
        "group jobid jobidraw jobname maxrss averss ncpus nnodes nodelist ntasks partition planned priority qos reason "
        "reqcpus reqmem reqnodes reqtres reservation reserved restarts start state stdout stderr submit submitline "
        "suspended systemcpu timelimit timelimitraw totalcpu uid user usercpu wckey workdir maxvmsize avevmsize avecpu",
    )
)
_WORDS = ("jobname", "comment", "admincomment", "systemcomment", "submitline", "workdir", "stdout", "stderr")
_MOST_BEFORE = 50  # lines that a shell printed before the head
_ELAPSED = re.compile(r"(?:(\d{1,6})-)?(?:(\d{1,6}):)?(\d{1,6}):(\d\d)(?:\.\d+)?", re.ASCII)
_NAMED_TWICE = re.compile(r"\s*(?:UTC|GMT)(?=[+-]\d)")  # a zone by its name and by its hours: the hours tell
_SLICE = re.compile(r"\dg\.\d+gb")  # of a GPU that several share
_HOUR_NS = 3600 * NS_PER_S
MOST_TEXT = 300  # characters of a name that are kept


@dataclass(slots=True)
class Record:
    """One row of a job, or of a step of it. Times in ns since the epoch, None where not told; `gpus`: allocated."""

    job: str  # without its part of a heterogeneous job
    part: str  # of a heterogeneous job; empty for any other
    step: str  # batch, extern, 0 ...; empty for the job itself
    state: str
    offset: int | None
    name: str | None = None
    user: str | None = None
    folder: str | None = None
    submit_ns: int | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    gpus: int | None = None
    gpu: str | None = None  # its type, where that is told
    nodes: str | None = None
    failed_node: str | None = None
    ran: bool = True
    restarts: int = 0
    told: dict[str, str] = field(default_factory=dict)  # what its evidence says


def is_table(head: str) -> tuple[str, list[str]] | None:
    """(separator, names in small letters) of a line that is the head of a table of sacct; None for any other. The
    separator is a space where fields have fixed widths."""
    bare = head.strip("\ufeff \t")
    low = bare.lower()
    if "jobid" not in low or len(bare) > 8192:
        return None
    for separator in ("|", ",", ";", "\t", " "):
        if separator not in bare and separator != " ":
            continue
        names = [n.strip() for n in (low.split() if separator == " " else low.split(separator))]
        names = names[:-1] if names[-1:] == [""] else names
        known = sum(name in _FIELDS for name in names)
        told = {"jobid", "jobidraw"} & {*names} and {"state", "start", "end", "elapsed", "submit"} & {*names}
        if told and 2 * known > len(names) and bare != bare.upper():  # squeue shouts
            return separator, names
        return None
    return None


def begins_table(first: Sequence[str]) -> bool:
    """Whether the first lines of a file are a table of sacct: most of what stands behind its head look like records. A
    script may print one before the log of its job."""
    heads = ((n, found) for n, line in enumerate(first[:_MOST_BEFORE]) if (found := is_table(line)) is not None)
    if (begun := next(heads, None)) is None:
        return False
    at, (separator, names) = begun
    rows = [line for line in first[at:] if line.strip("- |,;\t\r\n") and is_table(line) is None]
    return 2 * sum(_like_record(row, separator, names) for row in rows) >= len(rows)


def _like_record(row: str, separator: str, names: list[str]) -> bool:
    number = names.index("jobid" if "jobid" in names else "jobidraw")
    if separator == " ":
        return number > 0 or bool(_ID_CUT.match(row))
    cells = row.split(separator)
    return len(cells) >= len(names) and bool(_ID.fullmatch(cells[number].strip()))


def of_table(source: Source, tally: Tally) -> Iterator[Record]:
    """The records of a table. Rows that are none are counted in `tally`."""
    head: tuple[str, list[str]] | None = None
    widths: list[slice] = []
    before, dashed = 0, False
    for offset, line, ended in lines(source):
        if not line.strip():
            continue
        if (found := is_table(line)) is not None:
            head, widths, dashed = found, [], False
            continue
        if head is None:
            before += 1
            if before > _MOST_BEFORE:
                return
            tally.add("lines", "they stand before the head of the table", offset)
            continue
        separator, names = head
        if not dashed and set(line.strip()) <= {"-", " ", separator}:
            widths, dashed = [slice(*m.span()) for m in re.finditer("-+", line)], True
            continue
        cells = _cells(line, separator, names, widths if separator == " " else [])
        told = {} if cells is None else dict(zip(names, cells, strict=True))
        match = _ID.fullmatch(told.get("jobid") or told.get("jobidraw") or "")
        if match is None:
            what = "rows" if ended else "the last row"
            tally.add(
                what,
                "cut off, or no record of a job: another number of fields than the head, or no job's number",
                offset,
            )
            continue
        yield _of_row(match, told, offset, tally)


def _cells(line: str, separator: str, names: list[str], widths: list[slice]) -> list[str] | None:
    """The fields of a row; None where there are more or fewer than names."""
    if separator == " ":
        if len(widths) != len(names):
            return None
        return [line[width].strip() for width in widths]
    cells = next(csv.reader([line]), []) if separator == "," and '"' in line else line.split(separator)
    if len(cells) == len(names) + 1 and not cells[-1].strip():
        cells.pop()
    more = len(cells) - len(names)
    if more > 0:  # a name may hold what separates the fields: where one alone may, it does
        free = [n for n, name in enumerate(names) if name in _WORDS]
        if len(free) != 1:
            return None
        cells[free[0] : free[0] + more + 1] = [separator.join(cells[free[0] : free[0] + more + 1])]
    return None if more < 0 else [cell.strip() for cell in cells]


def _of_row(match: re.Match[str], told: dict[str, str], offset: int, tally: Tally) -> Record:
    number, task, het, step = match.groups()
    state = told.get("state", "")
    word = state_of(state)
    if state and not word:
        tally.add("states", f"{clean(state)[:40]!r} is none of Slurm's", offset)

    def time(name: str) -> int | None:
        return _moment(told.get(name, ""), offset, tally)

    names = {"state": "State", "exitcode": "ExitCode", "derivedexitcode": "DerivedExitCode", "reason": "Reason"}
    said = {title: clean(told[name])[:MOST_TEXT] for name, title in names.items() if told.get(name)}
    if step is not None:  # of which there may be thousands
        record = Record(number if task is None else f"{number}_{task}", het or "", step or "?", word, offset, told=said)
        if word in TOLD_BY_STEPS:
            record.start_ns, record.end_ns, record.nodes = time("start"), time("end"), nodes_of(told.get("nodelist"))
        return record
    gpus, gpu = _of_tres(told.get("alloctres", ""), tally, offset)
    record = Record(
        job=number if task is None else f"{number}_{task}",
        part=het or "",
        step="",
        state=word,
        offset=offset,
        name=text(told.get("jobname"), MOST_TEXT),
        user=text(told.get("user"), MOST_TEXT),
        folder=text(told.get("workdir"), MOST_TEXT),
        submit_ns=max((at for at in (time("submit"), time("eligible")) if at is not None), default=None),
        start_ns=time("start"),
        end_ns=time("end"),
        gpus=gpus,
        gpu=gpu,
        nodes=nodes_of(told.get("nodelist")),
        failed_node=nodes_of(told.get("failednode")),
        restarts=digits(told.get("restarts", "")) or 0,
        told=said,
    )
    elapsed = digits(told.get("elapsedraw", ""))
    elapsed = elapsed if elapsed is not None else _seconds(told.get("elapsed", ""))
    put_right(record, elapsed, _seconds(told.get("suspended", "")) or 0, tally)
    return record


def state_of(said: str) -> str:
    """A state by its name, whole or cut off (`CANCELLED by 1000`, `OUT_OF_ME+`); empty where it is none."""
    word = (said.split() or [""])[0].upper()
    if word in STATES:
        return word
    cut = [state for state in STATES if word.endswith("+") and len(word) > 3 and state.startswith(word[:-1])]
    return cut[0] if len(cut) == 1 else ""


def _moment(said: str, offset: int | None, tally: Tally) -> int | None:
    if not said or said[0] not in "0123456789":  # Unknown, None, N/A
        return None
    if len(said) < 12 and (seconds := digits(said)) is not None:
        return seconds * NS_PER_S or None
    match = DATED.fullmatch(_NAMED_TWICE.sub("", said))
    at = moment_ns(match) if match else None
    if match is None or at is None:
        tally.add("times", "they are no dates as sacct writes them (SLURM_TIME_FORMAT=standard)", offset)
    elif doubt := zone_doubt(match):
        tally.add("times", f"{doubt}; `TZ=UTC sacct ...` writes them in UTC", offset)
    return at


def _seconds(said: str) -> int | None:
    """Seconds of [DAYS-][HOURS:]MINUTES:SECONDS."""
    if (match := _ELAPSED.fullmatch(said)) is None:
        return None
    days, hours, minutes, seconds = (int(found or 0) for found in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def put_right(record: Record, elapsed_s: int | None, suspended_s: int, tally: Tally) -> None:
    """What the elapsed time tells of start and end."""
    if elapsed_s is None or elapsed_s > 10**9 or suspended_s > 10**9:
        return
    lasted = (elapsed_s + suspended_s) * NS_PER_S
    over = record.state not in (*GOING_ON, "")
    # A job that was cancelled while it waited has a start at its end in some versions.
    record.ran = bool(lasted) or record.state not in ("CANCELLED", "PENDING", "REVOKED", "DEADLINE", "BOOT_FAIL")
    if record.start_ns is not None and record.end_ns is None and over:
        record.end_ns = record.start_ns + lasted
    elif record.start_ns is None and record.end_ns is not None and over and lasted:
        record.start_ns = record.end_ns - lasted
    elif record.start_ns is not None and record.end_ns is not None and over:
        more = record.end_ns - record.start_ns - lasted
        if abs(abs(more) - _HOUR_NS) <= NS_PER_S:
            record.end_ns -= more
            tally.add(
                "ends",
                "summer time began or ended meanwhile, as the elapsed time tells: put right by an hour",
                record.offset,
            )


def _of_tres(said: str, tally: Tally, offset: int | None) -> tuple[int | None, str | None]:
    """(GPUs, their type) of `billing=8,cpu=64,gres/gpu=8,gres/gpu:h100=8`; what is cut off tells none."""
    parts = said.removesuffix("+").split(",")
    counts: dict[str, int | None] = {}
    for one in parts[:-1] if said.endswith("+") else parts:
        name, _, count = one.partition("=")
        if name == "gres/gpu" or name.startswith("gres/gpu:"):
            counts[name.removeprefix("gres/gpu").removeprefix(":")] = digits(count)
    return gpus_of(counts, tally, offset)


def gpus_of(counts: dict[str, int | None], tally: Tally, offset: int | None) -> tuple[int | None, str | None]:
    """(GPUs, their type) of counts by type; the empty type is the sum of all. None where nothing tells."""
    kinds = {kind: n for kind, n in counts.items() if kind and n}
    if any(_SLICE.search(kind) for kind in kinds):
        tally.add("GPUs", "slices of GPUs (MIG) are no chips: how many chips were held is not told", offset)
        return None, None
    total = counts.get("") or sum(kinds.values())
    return (total if 0 < total < 1 << 31 else None), (clean(next(iter(kinds)))[:100] if len(kinds) == 1 else None)


def nodes_of(said: str | None) -> str | None:
    """The list of nodes as it was written; None where it says that there is none."""
    found = text(said, MOST_TEXT)
    return None if found is None or found.lower() in ("none assigned", "none", "unknown", "n/a", "(null)") else found
