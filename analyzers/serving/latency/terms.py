"""What the figures of `latency` mean."""

from catalog.terms import Term

TERMS = (
    Term(
        "TTFT",
        "Time to first token: from arrival (when the client sent it, where a client measured) to the first "
        "token. TTFT = queue + prefill where the engine says when it scheduled a request.",
        formula="first token - arrival",
        unit="s",
    ),
    Term(
        "TPOT",
        "Time per output token after the first: (E2E - TTFT) / (output tokens - 1), of each request with more "
        "than one output token; then mean and percentiles over requests.",
        formula="(E2E - TTFT) / (output tokens - 1)",
        unit="s",
    ),
    Term(
        "ITL",
        "Inter-token latency: every gap between two pieces of output, all requests together. A piece may be "
        "several tokens (speculation, or a client that read two at once).",
        formula="time of a piece of output - time of the piece before it",
        unit="s",
    ),
    Term("E2E", "From arrival to the last token.", formula="last token - arrival", unit="s"),
    Term(
        "Output tokens per second",
        "Tokens generated in completed requests over the duration, as vLLM counts.",
        formula="output tokens of completed requests / duration",
        unit="tokens/s",
        source="vLLM's benchmark",
    ),
    Term(
        "Duration",
        "As the tool printed it where it did, else from the first arrival to the last token.",
        formula="last token - first arrival",
        unit="s",
    ),
    Term("Percentiles", "Interpolated linearly between the two nearest requests."),
    Term(
        "Stall between tokens",
        "A gap of more than twice the median and more than six robust standard deviations above it. Caused by "
        "prefill where passes that also read prompts fill at least half of it.",
        formula="gap > 2 x median and gap > median + 6 x 1.4826 MAD",
        unit="s",
    ),
    Term(
        "Tokens lost",
        "Prompt and generated tokens of requests that did not complete. What failed early may never have "
        "been read, so at most so many.",
        unit="tokens",
    ),
)
