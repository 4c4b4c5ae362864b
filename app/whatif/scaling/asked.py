"""What `whatif scaling` can be asked."""

from dataclasses import dataclass

from errors.options import Option

KINDS = ("strong", "weak")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """By the names of OPTIONS. points or runs must be given, of at least two numbers of chips."""

    points: str | None = None
    runs: str | None = None
    kind: str = KINDS[0]
    at: str | None = None


OPTIONS: tuple[Option, ...] = (
    Option(
        "points",
        str,
        None,
        "what was measured, by comma: chips, seconds of the job or of a step, and the samples that it learned from "
        "where they differ, such as 512:13841:276480,2048:3801:291840",
        label="Measured",
        form="CHIPS:SECONDS[:SAMPLES]",
    ),
    Option(
        "runs",
        str,
        None,
        "runs of the store by comma, each with its chips and its usual step",
        label="Runs",
        form="RUN",
    ),
    Option(
        "kind",
        KINDS,
        KINDS[0],
        "strong: the same work on more chips (the same global batch); weak: the same work a chip",
        label="Scaling",
    ),
    Option("at", str, None, "numbers of chips to reckon the time for, by comma", label="Reckon for chips", form="N"),
)
