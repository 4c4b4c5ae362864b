"""What the figures of `prefix_cache` mean."""

from catalog.terms import Term

TERMS = (
    Term(
        "Found",
        "A block of a prompt is found if it and all blocks before it are in the cache: keys and values depend on "
        "all earlier tokens. Blocks found by blocks asked for.",
        formula="blocks found / blocks asked for",
        unit="1",
    ),
    Term(
        "Without end",
        "A cache that never gives a block up: the most that any cache of these requests can find.",
        formula="blocks found / blocks asked for, where none is given up",
        unit="1",
    ),
    Term(
        "By size",
        "The least recently used block goes first. A block is found by every cache larger than the number of "
        "distinct blocks touched since it was (stack distance), so that one pass answers for all sizes, exactly.",
        formula="blocks with a stack distance below the size / blocks asked for",
        unit="1",
        source="R. L. Mattson et al., Evaluation techniques for storage hierarchies, 1970",
    ),
    Term(
        "The engine's own",
        "Prompt tokens found by prompt tokens looked up, as the engine counts them. Tokens, not "
        "blocks; it may count other requests than are replayed here.",
        formula="prompt tokens found / prompt tokens looked up",
        unit="1",
    ),
    Term(
        "Saves",
        "FLOPs of reading the tokens that were found, by those of all prompts: matrices and attention. The part "
        "of the first token's time that is computing shrinks by as much; waiting does not.",
        formula="FLOPs of tokens found / FLOPs of all prompt tokens",
        unit="1",
    ),
)
