"""What the figures of `input` mean."""

from catalog.terms import Term

TERMS = (
    Term(
        "Waited for input",
        "Chip-seconds in which the host fetched data, or the device took it in, and the device did nothing else; of "
        "steps without a profile, stalls only.",
        unit="chip-seconds",
    ),
    Term(
        "Fetch",
        "The training loop loading a batch, on the slowest host. A fetch that the device's work covers is free.",
        unit="s",
    ),
    Term(
        "Input stall",
        "A step whose fetch and whose duration both exceed the usual by more than noise (5 % of a step and 3.5 "
        "robust standard deviations); it cost the smaller of the two.",
        formula="min(fetch - usual fetch, step - usual step)",
        unit="s",
    ),
    Term(
        "Slope",
        "Seconds that a step gets longer per second of fetch beyond the median, with a 95 % bootstrap interval: "
        "1 is wholly exposed, 0 wholly hidden.",
        formula="seconds of step gained / seconds of fetch beyond the median",
        unit="1",
    ),
    Term(
        "Bound by its input",
        "A usual step waits for input for 5 % of its time or more.",
        formula="time waiting for input / usual step >= 0.05",
    ),
)
