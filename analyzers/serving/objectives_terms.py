"""What the figures of `objectives` mean."""

from analyzers.serving.objective_causes import CAUSES
from catalog.terms import Term

TERMS = (
    Term(
        "Attainment",
        "Share of all requests that were sent which completed within every objective. A request that failed "
        "missed; one with a single output token keeps any TPOT.",
        formula="requests within every objective / requests sent",
        unit="1",
    ),
    Term(
        "Serving goodput",
        "Requests per second that completed within every objective: vLLM's rate.",
        formula="requests within every objective / duration",
        unit="requests/s",
        source="vLLM's benchmark",
    ),
    Term(
        "Of completed",
        "The same share over completed requests alone: failed ones are not counted.",
        formula="requests within every objective / requests completed",
        unit="1",
    ),
    Term("p99 of gaps", "The 99th percentile of a request's own gaps between pieces of output.", unit="s"),
    *(
        Term(f"Cause: {name.replace('_', ' ')}", f"{meaning[0].upper()}{meaning[1:]}.")
        for name, meaning in CAUSES.items()
    ),
    Term(
        "One cause each",
        "A late first token counts before late tokens after it. Queue where it alone exceeds the "
        "objective or is the larger part. Stalled by prefill where at least half of the lateness was "
        "added to the engine's passes by reading others' prompts. Length where only fewer tokens would have helped.",
    ),
)
