"""What can be asked of `chipledger capture`, on the command line, on the page and in a request."""

from argparse import Namespace
from dataclasses import dataclass, replace

from app.capture.agent import MOST_SECONDS, MOST_STEPS
from app.ingest_options import CHIP, COUNT, MODEL, NAME, TAG
from app.options import from_args
from errors.numbers import Number
from errors.options import SWITCH, Option

LONGEST_S, USUAL_S = MOST_SECONDS, 2.0
ANSWER_S = 120.0
MEMORY_GB = 8.0
SERVER_MOST_S, SERVER_MOST_STEPS = 60.0, 100  # of what a page or a request may ask: it slows the job down

ADDRESS = Option(
    "address",
    str,
    (),
    "HOST:PORT of JAX's profiler server, or agent://HOST:PORT of the module for jobs; HOST:9012-9019 is eight",
    several=True,
    form="ADDRESS",
)
DURATION = Option(
    "duration_s",
    Number(0.05, LONGEST_S),
    None,
    f"how long to record (default: {USUAL_S:g}, unless --steps is given)",
    unit="s",
    label="How long to record",
)
STEPS = Option(
    "steps",
    Number(1, MOST_STEPS, whole=True),
    None,
    "record the next N steps instead; of agents alone, JAX's profiler server knows no steps",
    label="Steps to record",
)
PYTHON = Option("python", SWITCH, False, "record the calls of Python too, which slows the job", label="Python calls")
ALL = Option(
    "all_or_nothing",
    SWITCH,
    False,
    "store nothing unless every address answers",
    label="Only if every host answers",
)
ANSWER = Option(
    "timeout_s",
    Number(1, 3600),
    ANSWER_S,
    "how long to wait for answers once the recording is over: profilers take their time",
    unit="s",
    local=True,
)
SHARED = Option(
    "shared",
    str,
    None,
    "folder that this machine and the hosts reach by the same name: earlier servers write their trace there "
    "instead of sending it",
    local=True,
    form="FOLDER",
)
ADVANCED = Option(
    "advanced",
    str,
    (),
    "a setting of JAX's profiler by its name, such as tpu_trace_mode=TRACE_COMPUTE",
    several=True,
    local=True,
    form="KEY=VALUE",
)
MEMORY = Option(
    "memory_gb",
    Number(0.01, 512),
    MEMORY_GB,
    "the most memory for all answers of profiler servers: each is held whole as it comes in, and takes three times its "
    "bytes",
    unit="GB",
    local=True,
)
AGENT = Option(
    "print_agent", SWITCH, False, "print the module for jobs, one Python file to be copied there, and end", local=True
)
NAMED = replace(NAME, help="name of the run (default: where it was captured)")
RUN = (CHIP, COUNT, MODEL)
OPTIONS: tuple[Option, ...] = (
    DURATION,
    STEPS,
    NAMED,
    *RUN,
    TAG,
    PYTHON,
    ALL,
    ANSWER,
    SHARED,
    ADVANCED,
    MEMORY,
    AGENT,
)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """By the names of OPTIONS; None: the default that they tell."""

    duration_s: float | None = None
    steps: int | None = None
    name: str | None = None
    chip: str | None = None
    chips: int | None = None
    model: str | None = None
    tag: tuple[str, ...] = ()
    python: bool = False
    all_or_nothing: bool = False
    timeout_s: float = ANSWER_S
    shared: str | None = None
    advanced: tuple[str, ...] = ()
    memory_gb: float = MEMORY_GB
    print_agent: bool = False


def asked(args: Namespace) -> Asked:
    """What the command line asks. Raises QuestionError for what cannot be."""
    return Asked(**from_args(args, OPTIONS))
