"""What may be asked of a query besides its SQL. Apart from `runs/query.py`, whose pyarrow no command line waits for."""

from errors.numbers import Number
from errors.options import Option

TIMEOUT = Option(
    "timeout", Number(1, 300), 30, "how long the query may take before it is ended", unit="s", label="Time limit"
)
ROWS = Option("rows", Number(1, 1_000_000, whole=True), 10_000, "the most rows of the answer; more are cut off")
OPTIONS = (TIMEOUT, ROWS)
