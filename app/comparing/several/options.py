"""What a comparison of several runs can be asked."""

from errors.numbers import Number
from errors.options import Option

CURVES = ("step_time", "loss", "throughput", "mfu")
OVERS = ("step", "time", "tokens")
RUNS = Option(
    "runs",
    str,
    (),
    "ids or names of the runs, or the beginning of either, commas between; 2 to 200 of them",
    several=True,
    form="RUN,...",
)
QUERY = Option("q", str, "", "a search that finds the runs, such as tag:sweep chip:v5p", form="QUERY", label="Search")
GROUP = Option("group", str, "", "a group of runs: project/experiment", form="GROUP")
SORT = Option("sort", str, "", "figure or setting to put the runs in order by, - before it for the largest first")
BASELINE = Option(
    "baseline",
    str,
    None,
    "the run of these that the others are held against; default: the first",
    of_run=True,
    form="RUN",
)
CURVE = Option("curve", CURVES, None, "the curves that are told, of at most 20 runs; default: none")
OVER = Option("over", OVERS, "step", "what curves run over: step number, hours since the first step, or tokens so far")
SMOOTH = Option("smooth", Number(1, 10_000, whole=True), 1, "neighbouring steps that a curve is the mean of")
ASKED = (RUNS, QUERY, GROUP, SORT, BASELINE, CURVE, OVER, SMOOTH)

X = Option("x", str, None, "figure or setting that runs across the picture")
Y = Option("y", str, None, "figure or setting that runs up it")
COLOUR = Option("colour", str, None, "setting by which the runs are coloured; default: each run its own")
