"""What can be asked of `chipledger watch`: jobs in Cloud Logging or a server, and how they are followed."""

from argparse import Namespace
from dataclasses import dataclass, replace

from app.ingest_options import CHIP, COUNT, FROM_INPUTS, GROUP, MODEL
from app.ingest_options import NAME as NAMED
from app.options import from_args
from errors.numbers import Number
from errors.options import SWITCH, Option
from errors.times import Duration, Moment

ENDPOINT_VARIABLE = "CHIPLEDGER_LOGGING_ENDPOINT"
QUOTA_READS, READS = 60, 50  # of the service, a minute and project; and how many of them are taken
BACK = "30d"
EVERY_S, EVERY_METRICS_S = 30.0, 5.0
AT_LEAST = Duration(low_s=1.0)

METRICS = Option(
    "metrics", str, None, "poll a serving engine instead: such as http://127.0.0.1:8000/metrics", local=True, form="URL"
)
FOR = Option("for", Duration(), None, "with --metrics: how long, such as 10m", local=True)
PROJECT = Option(
    "project",
    str,
    None,
    "project id (default: $GOOGLE_CLOUD_PROJECT, else the credentials' own)",
    local=True,
    form="PROJECT",
)
JOB = Option("job", str, (), "job_name of its entries", several=True, local=True, form="JOB")
SINCE = Option(
    "since",
    Moment(),
    None,
    f"how far to go back: such as {BACK} or 12h, or a date (default: {BACK})",
    local=True,
    form="WHEN",
)
EVERY = Option(
    "every",
    AT_LEAST,
    None,
    f"how often to look (default: {EVERY_S:g}s, of metrics {EVERY_METRICS_S:g}s)",
    local=True,
)
ONCE = Option("once", SWITCH, False, "read what there is, then end", local=True)
LOG_NAME = Option(
    "log_name",
    str,
    (),
    "log that holds the entries (default: goodput_<job>)",
    several=True,
    local=True,
    form="LOG_NAME",
)
ALSO = Option(
    "also",
    str,
    (),
    "further entries, by a filter, whose text may tell why the job stopped",
    several=True,
    local=True,
    form="FILTER",
)
ENDPOINT = Option(
    "endpoint",
    str,
    None,
    f"another address than Google's (default: ${ENDPOINT_VARIABLE})",
    local=True,
    form="URL",
)
ANONYMOUS = Option("anonymous", SWITCH, None, "go without credentials (default: with --endpoint only)", local=True)
READS_PER_MINUTE = Option(
    "reads_per_minute",
    Number(1, QUOTA_READS, whole=True),
    READS,
    f"the most reads of the project's quota of {QUOTA_READS}",
    local=True,
)
OF_RUN = (  # as `chipledger ingest` takes them, but that the inputs are not there yet
    replace(NAMED, help="name of the live run, where there is one (default: the job's name)"),
    *(replace(o, help=o.help.removesuffix(FROM_INPUTS)) for o in (CHIP, COUNT, MODEL)),
)
FOR_GROUP = replace(
    GROUP, help="let only members of this group of people see the live run, and admins (default: as it is)", local=True
)
OF_JOBS = (PROJECT, JOB, LOG_NAME, ALSO, ENDPOINT)  # they have no meaning with --metrics
OPTIONS: tuple[Option, ...] = (
    METRICS,
    FOR,
    PROJECT,
    JOB,
    SINCE,
    EVERY,
    ONCE,
    *OF_RUN,
    FOR_GROUP,
    LOG_NAME,
    ALSO,
    ENDPOINT,
    ANONYMOUS,
    READS_PER_MINUTE,
)
UNITS = {"for": "for_s", "since": "since_ns", "every": "every_s"}  # what is a time, by the unit it is kept in


@dataclass(frozen=True, kw_only=True)
class Asked:
    """By the names of OPTIONS, times with their unit; None: the default that they tell."""

    metrics: str | None = None
    for_s: float | None = None
    project: str | None = None
    job: tuple[str, ...] = ()
    since_ns: int | None = None
    every_s: float | None = None
    once: bool = False
    name: str | None = None
    chip: str | None = None
    chips: int | None = None
    model: str | None = None
    group: str | None = None
    log_name: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    endpoint: str | None = None
    anonymous: bool | None = None
    reads_per_minute: int = READS

    @property
    def of_run(self) -> dict[str, str | int]:
        """What a person says of the run: name, chip, chips and model, as far as they are given."""
        said = {o.name: getattr(self, o.name) for o in OF_RUN}
        return {name: value for name, value in said.items() if value is not None}


def asked(args: Namespace) -> Asked:
    """What the command line asks. Raises QuestionError for what cannot be."""
    return Asked(**{UNITS.get(name, name): value for name, value in from_args(args, OPTIONS).items()})
