"""How attention is cut into blocks of queries. No JAX here.

One block is the queries of one key head in one sequence. Its scores against the keys that it can reach are float32;
they stay in on-chip memory where they are small enough, as a hand-written kernel would keep them.
"""

from catalog.models import Attention
from errors import QuestionError

MOST_QUERIES, LEAST_QUERIES = 512, 64  # a shorter block would leave the matrix unit empty
SCORE_BYTES = 16 << 20


def query_block(a: Attention, heads_per_key: int, tokens: int, queries: int) -> int | None:
    """Queries in a block: the largest divisor of `queries` whose scores fit, None where there is none.

    `heads_per_key`: query heads that share a key head on one device; `tokens` of a sequence; `queries` of it that lie
    on one device.
    """
    if queries <= LEAST_QUERIES:
        return queries
    fit = SCORE_BYTES // (4 * heads_per_key * min(tokens, (a.window_tokens or tokens) + MOST_QUERIES))
    most = min(queries, MOST_QUERIES, max(LEAST_QUERIES, fit))
    return next((n for n in range(most, LEAST_QUERIES - 1, -1) if queries % n == 0), None)


def fitting_block(a: Attention, heads_per_key: int, tokens: int, queries: int) -> int:
    """The same. Raises QuestionError where there is none."""
    block = query_block(a, heads_per_key, tokens, queries)
    if block is None:
        raise QuestionError(
            f"no block of {LEAST_QUERIES} to {MOST_QUERIES} queries divides the sequence length, {tokens:,}",
            expected=f"a multiple of {LEAST_QUERIES}, or attention full",
        )
    return block


def reach(a: Attention, tokens: int, block: int) -> int:
    """Keys that a block of queries is multiplied with: all, or those that its window can hold."""
    window = a.window_tokens or tokens
    if a.span == "sliding":
        return min(tokens, window + block)
    return window if a.span == "chunked" and window < tokens and window % block == 0 else tokens
