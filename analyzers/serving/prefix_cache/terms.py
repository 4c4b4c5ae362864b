"""What the figures of `prefix_cache` mean."""

from catalog.terms import Term

TERMS = (
    Term(
        "Found",
        "A block of a prompt is found if it and all blocks before it are in the cache: keys and values depend on "
        "all earlier tokens. Blocks found by blocks asked for.",
    ),
    Term("Without end", "A cache that never gives a block up: the most that any cache of these requests can find."),
    Term(
        "By size",
        "The least recently used block goes first. A block is found by every cache larger than the number of "
        "distinct blocks touched since it was (stack distance), so that one pass answers for all sizes, exactly.",
    ),
    Term(
        "The engine's own",
        "Prompt tokens found by prompt tokens looked up, as the engine counts them. Tokens, not "
        "blocks; it may count other requests than are replayed here.",
    ),
    Term(
        "Saves",
        "FLOPs of reading the tokens that were found, by those of all prompts: matrices and attention. The part "
        "of the first token's time that is computing shrinks by as much; waiting does not.",
    ),
)
