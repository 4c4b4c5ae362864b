"""What of a timeline is written for Perfetto. Ticks are the API's, seconds the command line's."""

from errors.numbers import Number
from errors.options import Option

FARTHEST = 1 << 62
MOST_EVENTS = 5_000_000
TICK = Number(-FARTHEST, FARTHEST, whole=True)
SECONDS = Number(-1e12, 1e12)
START = Option("start", TICK, None, "where the window begins, in ticks since the timeline's origin", "ticks")
END = Option("end", TICK, None, "where it ends; default: with the last event", "ticks")
FROM = Option(
    "from", SECONDS, None, "where the window begins, in seconds since the first event; default: there", "s", local=True
)
TO = Option("to", SECONDS, None, "where it ends; default: with the last event", "s", local=True)
ROWS = Option("rows", str, None, "which rows, by number from the top: 0-39,52; default: all", form="A-B,C")
LANES = Option(
    "lanes",
    str,
    (),
    "which lanes, beside the rows: a host, a device as HOST/DEVICE, a group (job, serving, device, host), or part of "
    "a lane's title; default: all",
    several=True,
)
MOST = Option("most", Number(1, 1e9, whole=True), MOST_EVENTS, "how many events at most")
ASKED = (START, END, ROWS, LANES, MOST)
TYPED = (FROM, TO, ROWS, LANES, MOST)
