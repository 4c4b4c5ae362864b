"""What can be asked of `chipledger alerts`: a threshold for each rule, as on its page, and where messages go."""

from argparse import Namespace
from dataclasses import dataclass

from app.options import from_args
from errors.numbers import SHARE, Number
from errors.options import SWITCH, Option

RECENT_STEPS = 50  # their median is compared with that of all usual steps before them
SHAPES = ("slack", "json")
SHAPE_DEFAULT, BASE_URL_DEFAULT = SHAPES[0], "http://localhost:8501"
NOWHERE = "none"  # in place of a webhook's address

GOODPUT = Option("goodput", SHARE, 0.9, "productive share of the job's time, exact rules", label="Goodput below")
MFU_DROP = Option(
    "mfu_drop",
    SHARE,
    0.1,
    f"median MFU of the last {RECENT_STEPS} steps against that of all before",
    label="MFU fell by more than",
)
STRAGGLER = Option(
    "straggler",
    SHARE,
    0.6,
    "share of the steps in which a persistent straggler was last",
    label="A rank is last in more than",
)
HANG = Option(
    "hang",
    Number(1, 1e6),
    10.0,
    "of a job that is being followed and has not ended",
    label="No step for so many median steps",
)
THRESHOLDS = (GOODPUT, MFU_DROP, STRAGGLER, HANG)
_NAMES = tuple(o.name for o in THRESHOLDS)

ON = Option(
    "on",
    str,
    (),
    "watch for: " + ", ".join(f"{o.name} ({o.title.lower()}; usually {o.default:g})" for o in THRESHOLDS),
    several=True,
    local=True,
    form="RULE[=THRESHOLD]",
)
OFF = Option("off", _NAMES, (), "no longer watch for it", several=True, local=True, form="RULE")
WEBHOOK = Option("webhook", str, None, f"where messages are posted; `{NOWHERE}` for nowhere", local=True, form="URL")
SHAPE = Option("shape", SHAPES, None, f"shape of the JSON (default: {SHAPE_DEFAULT})", local=True)
BASE_URL = Option(
    "base_url", str, None, f"of this dashboard, for links (default: {BASE_URL_DEFAULT})", local=True, form="URL"
)
TEST = Option("test", SWITCH, False, "post a message that says it is a test", local=True)
CHECK = Option("check", str, None, "evaluate the rules on a run now", of_run=True, local=True)
OPTIONS: tuple[Option, ...] = (ON, OFF, WEBHOOK, SHAPE, BASE_URL, TEST, CHECK)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """By the names of OPTIONS; None: the default that they tell, or what was set before."""

    on: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    webhook: str | None = None
    shape: str | None = None
    base_url: str | None = None
    test: bool = False
    check: str | None = None


def asked(args: Namespace) -> Asked:
    """What the command line asks. Raises QuestionError for what cannot be."""
    return Asked(**from_args(args, OPTIONS))
