"""What a history can be asked."""

from errors.options import Option

METRIC = Option(
    "metric",
    str,
    None,
    "step_time, tokens_per_s, mfu, goodput, an account of the ledger such as input_wait (its share of the chip time, "
    "of what profiles alone tell of the step time that they cover), "
    "or of served runs ttft_p50, ttft_p99, tpot_p50, tpot_p99, e2e_p50 or e2e_p99",
    form="METRIC",
)
SEARCH = Option("search", str, "", "runs that this search finds, such as chip:v5p tag:branch=main")
GROUP = Option("group", str, "", "runs of this project or project/experiment", form="GROUP")
CALLED = Option("name", str, "", "runs of this name", form="NAME")
BY = Option(
    "by",
    str,
    "time",
    "one point a run in order of time, or one for each value of this tag, such as commit, in order of its first run",
    form="time|TAG",
)
ASKED = (METRIC, SEARCH, GROUP, CALLED, BY)
