"""What can be said of a run as its inputs are read: for `chipledger ingest` and for a request over HTTP, which takes
tags as an object."""

from dataclasses import replace

from errors.numbers import CHIPS, Number
from errors.options import SWITCH, Option
from runs.run import KINDS

FROM_INPUTS = " (default: from the inputs)"

NAME = Option("name", str, None, f"name of the run{FROM_INPUTS}", form="NAME")
KIND = Option(
    "kind",
    KINDS,
    None,
    f"what kind of run it is{FROM_INPUTS}",
    label="Kind of run",
    form=f"{{{','.join(KINDS)}}}",
)
CHIP = Option("chip", str, None, f"chip, by any usual name{FROM_INPUTS}", form="CHIP")
COUNT = Option("chips", CHIPS, None, f"number of chips{FROM_INPUTS}", label="Number of chips", form="CHIPS")
MODEL = Option("model", str, None, f"model{FROM_INPUTS}", form="MODEL")
TAG = Option("tag", str, (), "a tag", several=True, local=True, form="KEY=VALUE")
AGAIN = Option(
    "again",
    SWITCH,
    False,
    "read an input anew that is stored already, as read by an earlier version or damaged since; the run keeps its id, "
    "notes and tags",
    label="Read anew",
)
GROUP = Option(
    "group",
    str,
    None,
    "let only members of this group of people see the run, and admins (default: your usual group, else all who are "
    "signed in)",
    label="Who sees it",
    form="GROUP",
)
EVERYONE = Option(
    "everyone", SWITCH, False, "let all who are signed in see the run, whatever your usual group", label="Everyone"
)
AUDIENCE: tuple[Option, ...] = (GROUP, EVERYONE)
OF_A_TERMINAL = tuple(replace(option, local=True) for option in AUDIENCE)  # where a request cannot say it
PATHS = Option(
    "paths",
    str,
    (),
    "file, folder, quoted pattern such as 'logs/**/*.log', or address (gs://bucket/run, s3://..., file://...)",
    several=True,
    local=True,
    form="PATH",
)
PATHS_FROM = Option(
    "paths_from",
    str,
    None,
    "a file that names the files and folders to read, one a line, instead of PATH or beside it",
    local=True,
    form="FILE",
)
WITHIN = Option(
    "within",
    str,
    (),
    "read nothing that does not lie below this folder or prefix, wherever links lead",
    several=True,
    local=True,
    form="PREFIX",
)
CLUSTER = Option(
    "cluster",
    str,
    None,
    "read the files with the workers of a Dask cluster, by its scheduler's address (tcp://HOST:PORT), or `local` for "
    "processes of this machine, each writing its own part of the run; files of a bucket are read there "
    "(default: $CHIPLEDGER_CLUSTER, else here)",
    local=True,
    form="ADDRESS",
)
PRIORITY = Option(
    "priority",
    Number(-1000, 1000, whole=True),
    0,
    "of several ingests on one cluster, the files of the one with the higher number are read first",
    local=True,
)
OPTIONS: tuple[Option, ...] = (NAME, KIND, CHIP, COUNT, MODEL, TAG, AGAIN, *AUDIENCE)
