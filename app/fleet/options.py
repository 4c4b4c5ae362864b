"""What can be asked of a fleet, on the command line, over the API, on its page and by agents."""

from errors.numbers import CHIPS, Number
from errors.options import SWITCH, Option

KEYS = ("team", "owner", "model", "chip", "group", "kind")
EVERY = ("day", "week", "month")
BY = Option(
    "by",
    str,
    "team",
    f"what runs are counted under: {', '.join(KEYS)}, or a tag as tag:KEY (team: the tag team; owner: the first of the "
    "tags owner, who, user, developer)",
    label="Count by",
    form="KEY",
)
SEARCH = Option("search", str, "", "only runs that a search finds, as the library searches", form="QUERY")
SINCE = Option("since", str, "", "count time from then on: a date, or a time ago such as 30d", form="TIME")
UNTIL = Option("until", str, "", "count time up to then: a date (its first instant), or a time ago", form="TIME")
TREND = Option("every", EVERY, "week", "periods of the trend; weeks begin on Monday", label="Periods")
ZONE = Option("zone", str, "UTC", "time zone whose days these are, such as Europe/Berlin", label="Time zone")
SIMULATED = Option("simulated", SWITCH, False, "count simulated runs, and no others")
CAPACITY = Option(
    "capacity_chips", CHIPS, None, "chips that the fleet has: the share that jobs held is told then", unit="chips"
)
RUNS = Option("runs", Number(0, 10_000, whole=True), 20, "runs that are listed one by one, the largest first")
OPTIONS: tuple[Option, ...] = (BY, SEARCH, SINCE, UNTIL, TREND, ZONE, SIMULATED, CAPACITY, RUNS)
