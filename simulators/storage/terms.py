"""What the figures of storage and input mean by their names."""

from catalog.terms import Term

TERMS = (
    Term(
        "Time per batch",
        "From one batch to the next, on chips that take no time: what the input can give. Of all hosts, the slowest.",
        unit="s",
    ),
    Term(
        "Wait for a batch",
        "What a step takes longer because its batch is not there when the step before ends, on average.",
        formula="time between the beginnings of steps - step time",
        unit="s",
    ),
    Term(
        "Share of time waited",
        "Of the time from one step to the next: what chips wait for their input. Of chip-hours and dollars the same "
        "share.",
        formula="input wait / (step time + input wait)",
        unit="1",
    ),
    Term(
        "Requests in flight",
        "Requests that must be under way at any time, on average, so that a host gets a batch each step (Little's "
        "law).",
        formula="files of a batch / step time x (mean latency + file / stream)",
        unit="1",
    ),
    Term(
        "Prefetch",
        "Batches that a host may fetch or hold while a step runs. It evens out latencies; it gives no more bytes a "
        "second.",
    ),
)
