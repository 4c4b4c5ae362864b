"""What the figures of `speculation` mean."""

from catalog.terms import Term

TERMS = (
    Term(
        "Accepted",
        "Accepted by proposed draft tokens. A token counts only where all before it in its draft were accepted.",
        formula="accepted draft tokens / proposed draft tokens",
        unit="1",
    ),
    Term(
        "Tokens of a step",
        "1 + accepted draft tokens by drafts: each step gives one token of the model's own besides.",
        formula="1 + accepted draft tokens / drafts",
        unit="tokens",
    ),
    Term(
        "Chance",
        "a for which 1 + a + ... + a^k is that mean: what one token's chance would be if all were alike and "
        "independent.",
        formula="1 + a + ... + a^k = tokens of a step, solved for a",
        unit="1",
        source="Y. Leviathan et al., Fast inference from transformers via speculative decoding, 2023",
    ),
    Term(
        "Speed-up",
        "Tokens of a step / (k c + 1): k draft tokens, each costing c of a step; verifying them costs nothing "
        "more (Leviathan et al.). True while steps are bound by reading weights and caches.",
        formula="tokens of a step / (k c + 1)",
        unit="1",
        source="Y. Leviathan et al., Fast inference from transformers via speculative decoding, 2023",
    ),
    Term(
        "Break-even batch",
        "Sequences at a time beyond which verifying k + 1 tokens of each costs more than it "
        "brings, by a roofline of the model on the chip. Up to critical batch / (k + 1) verifying is free; not of a "
        "model with experts, whose drafts read some of their own: there it may pay only from some number on.",
        unit="sequences",
    ),
    Term(
        "Measured speed-up",
        "Time per output token of passes without drafts by that of passes with them, at equal "
        "numbers of sequences, where an engine records its passes.",
        formula="time per token without drafts / time per token with drafts",
        unit="1",
    ),
)
